"""The dtype that an operation on two operands would give."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.registry import op


def _ranked(operand):
    if isinstance(operand, np.ndarray):
        return dt.from_numpy(operand.dtype), dt.DIM_TENSOR if operand.ndim else dt.ZERO_DIM_TENSOR
    return dt.number_dtype(operand), dt.NUMBER


def _result_type(first, second):
    return dt.result_type(_ranked(first), _ranked(second))


op(
    "result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType",
    _result_type,
    nondiff=True,
    doc="""The dtype that an operation on both arguments would give.

    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """,
)
op(
    "result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType",
    _result_type,
    nondiff=True,
    samples=lambda make: [(make(3, 4), 2)],
)
op(
    "result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType",
    _result_type,
    nondiff=True,
    samples=lambda make: [(2, make(3, 4))],
)
op(
    "result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType",
    _result_type,
    nondiff=True,
    samples=lambda make: [(2, 2.5)],
)
