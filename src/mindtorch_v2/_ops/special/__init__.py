"""Exponentials, logarithms, circular functions and the special functions."""

from . import functions
