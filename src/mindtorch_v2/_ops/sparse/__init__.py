"""Sparse tensors: by coordinates or compressed, the ops that keep them sparse, and products with them."""

from . import attributes, compressed, coordinates, kernels, products
