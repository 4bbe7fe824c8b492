"""Reading Kineto traces: a stream of JSON becomes rows, tables and links."""
