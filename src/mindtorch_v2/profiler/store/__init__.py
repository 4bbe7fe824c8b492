"""`EventStore`: a finished recording as columns, and what follows from them."""
