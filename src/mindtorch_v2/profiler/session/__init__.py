"""One recording from start to stop: its options and schedule, and what is recorded beside the rows."""
