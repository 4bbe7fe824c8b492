"""How functions of one tensor are declared, and kernels that compute in float64."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Promotion
from ..._dispatch.registry import op
from .._support.blockwise import in_blocks
from .._support.common import scalar_name

# Of so many float64 numbers at a time the vectors of a formula stay in the cache.
_PART = 1 << 13


def unary(name, kernel, grad, **options):
    """Declare a function of one tensor that turns integers into floats, and its in-place form."""
    if isinstance(kernel, np.ufunc):
        options.setdefault("half_in_float32", "V")  # NumPy's own loops for float16 are fast, those for bfloat16 are not
    made = op(
        f"{name}(Tensor self) -> Tensor", kernel, promote=Promotion.FLOAT, inplace=not name.startswith("special_"), **options
    )
    made.vjp(self=grad)
    return made


def in_double(function):
    """A kernel that computes in float64, which the special functions take, and returns the input's dtype."""

    def kernel(self):
        if self.dtype.kind in "cW":  # W: complex32
            raise NotImplementedError(f"{function.__name__} not implemented for '{scalar_name(self)}'")
        if self.size > _PART and self.flags.c_contiguous:
            return in_blocks(fill, np.empty(self.shape, self.dtype), self, passes=100)
        return np.asarray(function(self.astype(np.float64, copy=False))).astype(self.dtype, copy=False)

    def fill(out, block):
        for start in range(0, block.size, _PART):
            part = slice(start, start + _PART)
            np.copyto(out[part], function(block[part].astype(np.float64, copy=False)), casting="unsafe")

    return kernel
