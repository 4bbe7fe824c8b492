"""Outlines: arrays with a shape, strides and a dtype whose elements nobody may read."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


class CannotBatch(RuntimeError):
    """Something that vmap can only do sample by sample."""


class Outline(np.ndarray):
    """What a sparse tensor, or one sample of a batched one, looks like. Whoever wants its elements gets an error."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise CannotBatch(
            "this function reads the elements of a tensor directly, which cannot be done for one that is sparse "
            "or batched by vmap"
        )

    __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __bool__ = __float__ = __int__ = _refuse
    item = tolist = copy = reshape = transpose = tobytes = fill = ravel = swapaxes = squeeze = _refuse

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """Another outline: an op's entry promotes its operands before it looks at what kind they are."""
        return np.broadcast_to(np.zeros((), dtype), self.shape).view(Outline)


_scalars: dict[Any, Any] = {}


def without_first_dim(array: np.ndarray) -> Any:
    """The outline of an array's entries along dim 0."""
    shape = array.shape
    if len(shape) == 1:
        made = _scalars.get(array.dtype)
        if made is None:
            made = _scalars[array.dtype] = np.empty((), array.dtype).view(Outline)
        return made
    if shape[0]:
        return np.ndarray.__getitem__(array, 0).view(Outline)
    return np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), shape[1:], array.strides[1:]).view(Outline)
