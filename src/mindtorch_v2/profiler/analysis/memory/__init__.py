"""Memory: what held it, what it was used for, how two recordings differ, and torch's own analysis of it in `flow`."""
