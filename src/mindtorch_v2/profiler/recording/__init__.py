"""The hot path: each event appends one row to a list of its thread, without a lock. `recorder` is where to begin reading."""
