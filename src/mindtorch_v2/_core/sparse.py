"""Sparse tensors in coordinate form: a tensor of indices, a tensor of values, and a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from .keys import SPARSE
from .outline import Outline
from .tensor import Tensor


class SparseTensor(Tensor):
    """`_coordinates` is (sparse dims, entries), `_entries` (entries, *dense dims). Ops find it by the SPARSE key."""

    _coordinates: Any
    _entries: Any
    _coalesced: bool

    @property  # type: ignore[misc]
    def requires_grad(self) -> bool:
        return bool(self._entries.requires_grad)


def make_sparse(coordinates: Any, entries: Any, size: tuple[int, ...], coalesced: bool) -> SparseTensor:
    """A sparse tensor of checked parts."""
    made = object.__new__(SparseTensor)
    made._coordinates, made._entries, made._coalesced = coordinates, entries, coalesced
    # Only the outline of the dense form exists: every element is the same byte, and nobody may read it.
    made._array = np.broadcast_to(np.zeros((), entries._array.dtype), size).view(Outline)
    made._keys = SPARSE
    made._storage = made._base = made._grad = None
    return made
