"""The op families. Importing a family registers its ops; the order does not matter."""

from __future__ import annotations

from .._dispatch import dispatcher  # noqa: F401  ops become callable as they are declared
from . import activation, compare, copy, creation, loss, matmul, pointwise, reduce, view

__all__ = ["activation", "compare", "copy", "creation", "loss", "matmul", "pointwise", "reduce", "view"]
