"""Files and JSON: every file of the profiler is written by `files`, whole or not at all, and every JSON text is strict."""
