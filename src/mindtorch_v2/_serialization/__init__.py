"""Reading and writing torch's own checkpoint files."""
