"""Convolution, and images as columns of windows."""

from . import conv, conv_tbc, fold
