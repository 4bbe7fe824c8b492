"""One recording from start to stop: its schedule, its options, and what is recorded beside the rows."""
