"""The hot path: one appended row for each event, by thread, without a lock."""
