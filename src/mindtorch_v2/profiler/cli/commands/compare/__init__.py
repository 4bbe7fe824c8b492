"""Compare recordings, and see what is possible."""
