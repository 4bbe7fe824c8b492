"""What a finished recording answers, whether it ran in this process or was read from a file."""
