"""Files of recordings."""
