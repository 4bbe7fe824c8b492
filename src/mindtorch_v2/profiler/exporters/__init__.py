"""From a store to a file or a text, one file each: table, Chrome trace, stacks, memory timeline, notebook table."""
