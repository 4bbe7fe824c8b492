"""Checks of the index_* ops for a 1-d index and its source, with torch's messages."""

from __future__ import annotations

import numpy as np

from .._support.common import scalar_name

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def check_index(index: np.ndarray, name: str) -> None:
    """A 1-d (or 0-d) int index for one dim."""
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: "
            f"{scalar_name(index)} and size: {list(index.shape)}"
        )
    if index.dtype is not _INT64 and index.dtype not in (_INT64, _INT32):
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index but got: {scalar_name(index)}")


def size_at(array: np.ndarray, dim: int) -> int:
    """How many places an index for a dim may name; a number without dims is one."""
    return array.shape[dim] if array.ndim else 1


def check_same_type(self: np.ndarray, source: np.ndarray, name: str) -> None:
    if self.dtype != source.dtype:
        raise RuntimeError(
            f"{name}(): self ({scalar_name(self)}) and source ({scalar_name(source)}) must have the same scalar type"
        )


def check_count(source: np.ndarray, dim: int, index: np.ndarray, name: str) -> None:
    if dim and dim >= source.ndim:
        raise RuntimeError(f"{name}(): Indexing dim {dim} is out of bounds of the source tensor with dim {source.ndim}")
    if size_at(source, dim) != index.size:
        if not source.ndim:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        raise RuntimeError(
            f"{name}(): Number of indices ({index.size}) should be equal to source.size(dim): "
            f"({size_at(source, dim)}), for dim: {dim}"
        )


def other_shape(self: np.ndarray, source: np.ndarray) -> RuntimeError:
    """For a source that differs in another dim than the one that is indexed."""
    return RuntimeError(
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got "
        f"self.shape = {list(self.shape)} source.shape = {list(source.shape)}"
    )


def check_long(index: np.ndarray, name: str) -> None:
    """RuntimeError, in torch's words, for an index that is not of int64."""
    if index.dtype != _INT64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {scalar_name(index)}")
