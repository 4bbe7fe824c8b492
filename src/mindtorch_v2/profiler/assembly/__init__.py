"""After `stop()`: the flat lists of the recorder become the columns of a store."""
