"""Which dtypes a normalization takes together: half precision goes with parameters of float32, nothing else mixes."""

from __future__ import annotations

import numpy as np

from .._support.common import unexpected_dtype

_F32 = np.dtype(np.float32)


def check_mixed(input: np.ndarray, *parameters: np.ndarray | None) -> None:
    """RuntimeError, in torch's words, for parameters that do not go with the input."""
    dtypes = [p.dtype for p in parameters if p is not None]
    kind = input.dtype
    if all(each is kind for each in dtypes) or all(each == kind for each in dtypes):
        return
    if dtypes[0] == kind:
        other = next(each for each in dtypes if each != kind)
        raise unexpected_dtype(kind, other)
    if any(each != _F32 for each in dtypes):
        raise RuntimeError("mixed dtype (CPU): expect parameter to have scalar type of Float")
    if kind.itemsize != 2 or kind.kind not in "fV":
        raise RuntimeError("mixed dtype (CPU): all inputs must share same datatype.")
