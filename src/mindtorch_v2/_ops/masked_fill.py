"""masked_fill with a number."""

from __future__ import annotations

import numpy as np

from .._core import dtype as dt
from .._dispatch.registry import op
from . import compare, masked  # noqa: F401  masked_fill with a tensor is declared first: a 0-d one would pass for a number
from ._numbers import MOST, number_of

_array = np.array
_F32 = np.dtype(np.float32)
_BOOL = np.dtype(np.bool_)


@op("masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", inplace=True,
    shape=lambda self, mask, value: (np.broadcast_shapes(self._array.shape, mask._array.shape), self._array.dtype),
    samples=lambda make: [(make(3, 4), make.bools(3, 4), 0.5), (make(3, 4), make.bools(4), 0.5)])
def masked_fill(self, mask, value, out=None):
    if mask.dtype is not _BOOL:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype "
                           f"{dt.from_numpy(mask.dtype).scalar_name}")
    made = _array(value, _F32) if self.dtype is _F32 and value.__class__ is float and -MOST <= value <= MOST \
        else number_of(value, self.dtype)
    if out is None:
        return np.where(mask, made, self)
    masked.fill_places(out, made, mask)
    return out


masked_fill.vjp(self=lambda g, mask: g.masked_fill(mask, 0))
