"""See what it did."""
