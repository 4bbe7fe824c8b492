"""Whether all elements are true, or any."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Batching
from ..._dispatch.registry import op
from .._support.common import normal_dims, reduced_shape
from .reduce import by_dims

_BOOL = np.dtype(np.bool_)


def _truth_dtype(array):
    return array.dtype if array.dtype == np.uint8 else _BOOL  # torch's first bool was uint8, and stays so here


def _tested_dims(dim, ndim):
    """The dims to reduce; an empty list of them means none here, where other reductions take it for all."""
    return None if dim is None else normal_dims(dim, ndim) if len(dim) else ()


def _holds_truth(name):
    """The rule of `out=`: bool, or uint8, which stood for it once."""

    def check(computed, held):
        if held not in (dt.bool_, dt.uint8):
            raise RuntimeError(f"{name} only supports bool tensor for result, got: {held.scalar_name}")

    return check


def _truth(name, reduce, *, doc=None):
    def test(self, axes, keepdim):
        if self.dtype.kind == "W":  # complex32: its conversion to bools would lose the imaginary parts
            self = self.astype(np.complex64)
        truth = reduce(self, axes, None, None, keepdim)
        return np.asarray(truth).astype(np.uint8) if self.dtype == np.uint8 else truth

    op(
        f"{name}(Tensor self) -> Tensor",
        lambda self: test(self, None, False),
        nondiff=True,
        shape=lambda self: ((), _truth_dtype(self._array)),
        batching=Batching.REDUCTION,
        out_overload="all_out",
        out_dtype=_holds_truth(name),
        doc=doc,
    )
    op(
        f"{name}.dim(Tensor self, int[1]? dim=None, bool keepdim=False) -> Tensor",
        lambda self, dim, keepdim: test(self, _tested_dims(dim, self.ndim), keepdim),
        nondiff=True,
        samples=by_dims,
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), _truth_dtype(self._array)),
        batching=Batching.REDUCTION,
        out_overload="out",
        out_dtype=_holds_truth(name),
    )


_truth(
    "any",
    np.logical_or.reduce,
    doc="""Whether any element is true, of the whole tensor or along `dim`.

    >>> torch.any(torch.tensor([[False, False], [True, False]]), dim=1)
    tensor([False,  True])
    """,
)
_truth(
    "all",
    np.logical_and.reduce,
    doc="""Whether all elements are true, of the whole tensor or along `dim`.

    >>> torch.all(torch.tensor([[True, False], [True, True]]), dim=1)
    tensor([False,  True])
    """,
)
