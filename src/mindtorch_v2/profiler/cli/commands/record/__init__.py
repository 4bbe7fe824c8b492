"""Record a program."""
