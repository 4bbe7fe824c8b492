"""Autograd: the graph that ops leave behind, and the engine that walks it."""
