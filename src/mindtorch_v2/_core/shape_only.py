"""Arrays with a shape, strides and a dtype whose elements must not be read: sparse tensors, and samples inside vmap."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np


class CannotBatch(RuntimeError):
    """An operation that vmap can do only sample by sample."""


class ShapeOnlyArray(np.ndarray):
    """The `_array` of a sparse tensor, or of one sample of a batched one. Reading or computing with elements raises."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise CannotBatch(
            "this function reads the elements of a tensor directly, which cannot be done for one that is sparse "
            "or batched by vmap"
        )

    __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __bool__ = __float__ = __int__ = _refuse
    item = tolist = copy = reshape = transpose = tobytes = fill = ravel = swapaxes = squeeze = _refuse

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """The same shape in another dtype: an op's entry promotes its operands before it looks at their keys."""
        return np.broadcast_to(np.zeros((), dtype), self.shape).view(ShapeOnlyArray)


_scalars: dict[Any, Any] = {}


def without_first_dim(array: np.ndarray) -> Any:
    """Shape, strides and dtype of an array's entries along dim 0."""
    shape = array.shape
    if len(shape) == 1:
        scalar = _scalars.get(array.dtype)
        if scalar is None:
            scalar = _scalars[array.dtype] = np.empty((), array.dtype).view(ShapeOnlyArray)
        return scalar
    if shape[0]:
        return np.ndarray.__getitem__(array, 0).view(ShapeOnlyArray)
    return np.lib.stride_tricks.as_strided(np.empty(1, array.dtype), shape[1:], array.strides[1:]).view(ShapeOnlyArray)
