"""Files and JSON: every file of the profiler is written here, whole or not at all."""
