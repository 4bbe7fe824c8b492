"""What becomes of rows while a recording runs: kept, streamed to a file, kept in a ring, or added up."""
