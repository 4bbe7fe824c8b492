"""`masked_fill` with a number, beside the overload with a tensor, which `masked` declares."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Batching, Layout, Overlap
from ..._dispatch.registry import op
from ..pointwise.arithmetic import fitting_number
from . import masked  # masked_fill with a tensor is declared first: a 0-d one would pass for a number

_BOOL = np.dtype(np.bool_)


@op(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    layout=Layout.ROW_MAJOR,
    inplace=True,
    shape=lambda self, mask, value: (np.broadcast_shapes(self._array.shape, mask._array.shape), self._array.dtype),
    samples=lambda make: [(make(3, 4), make.bools(3, 4), 0.5), (make(3, 4), make.bools(4), 0.5)],
    batching=Batching.POINTWISE,
    checks_overlap=Overlap.PART,
    out=False,
)
def masked_fill(self, mask, value, out=None):
    if mask.dtype is not _BOOL:
        raise masked.no_mask(mask)
    return masked.filled(self, mask, fitting_number(value, self.dtype), out)


masked_fill.vjp(self=lambda g, mask: g.masked_fill(mask, 0))
