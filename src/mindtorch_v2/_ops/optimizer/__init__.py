"""Ops on lists of tensors, and whole optimizer steps as one op."""

from . import foreach, fused
