"""Which dtypes a normalization takes together: half precision goes with parameters of float32, nothing else mixes."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from .._support.common import scalar_name, unexpected_dtype
from .._support.half import in_float32

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


def statistics_dtype(input: np.ndarray, *parameters: np.ndarray | None) -> np.dtype:
    """The dtype of means and deviations: that of the parameters, if there are any."""
    return next((p.dtype for p in parameters if p is not None), input.dtype)


def in_float32_with_parameters(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """As `in_float32`, but beside wider parameters or statistics only the first result is rounded to the input's dtype.

    The first argument of the kernel is the input or its gradient, the first result has its shape.
    """
    alike = in_float32(kernel)

    @wraps(kernel)
    def run(first: Any, *rest: Any) -> Any:
        kind = first.dtype
        if kind.itemsize != 2:
            return kernel(first, *rest)
        if all(each.dtype == kind for each in rest if isinstance(each, np.ndarray)):
            return alike(first, *rest)
        wide = (each.astype(_F32) if isinstance(each, np.ndarray) else each for each in rest)
        result, *others = kernel(first.astype(_F32), *wide)
        return result.astype(kind), *others

    return run


def check_gradient(grad_out: np.ndarray, input: np.ndarray, *parameters: np.ndarray | None) -> None:
    """RuntimeError, in torch's words, for a gradient, statistics and parameters that do not go with the input."""
    if grad_out.dtype != input.dtype:
        raise RuntimeError("Expected scalar types of X and dY are same.")
    if input.dtype.kind in "iubcW":  # W: complex32
        raise RuntimeError(f"normalization: a gradient of {scalar_name(input)} is not supported")
    check_mixed(input, *parameters)
