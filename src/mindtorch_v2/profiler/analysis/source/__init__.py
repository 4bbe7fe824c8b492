"""The program's own code: which files and lines are its own, and what time, memory and calls each line had."""
