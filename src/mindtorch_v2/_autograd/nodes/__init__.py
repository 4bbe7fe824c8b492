"""Nodes of the graph: derivatives read from declarations, compiled, with what they save and where gradients end."""
