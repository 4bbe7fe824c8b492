"""The saved format: frames of coded columns, and rebuilding a recording from a streamed file."""
