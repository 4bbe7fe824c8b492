"""Convolution, and images as columns of windows."""

from . import by_kernel, conv, conv_tbc, fold
