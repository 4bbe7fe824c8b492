"""After `stop()`: the flat lists of a recorder become the columns and tables of an EventStore."""
