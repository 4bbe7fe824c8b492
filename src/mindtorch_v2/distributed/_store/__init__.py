"""Stores: keys and values by which processes find each other."""
