"""Processes that run, and other programs."""
