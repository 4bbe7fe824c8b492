"""Exponentials, logarithms, circular functions and the special functions."""

from . import circular, error_function, exponentials, gamma, log_products, modified_bessel, softmax_names
