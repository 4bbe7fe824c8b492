"""Products of matrices group by group, as layers of many experts make them."""

from __future__ import annotations

from typing import Any

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten

__all__ = ["grouped_mm"]

_DTYPES = {dt.float32: "Float32", dt.bfloat16: "BFloat16", dt.float16: "Float16"}


def _check(mat_a: Tensor, mat_b: Tensor, offs: Tensor | None, bias: Any, out_dtype: Any) -> None:
    for name, matrix in (("mat_a", mat_a), ("mat_b", mat_b)):
        if matrix.ndim not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
        if matrix.dtype not in _DTYPES:
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {matrix.dtype.scalar_name}")
    if mat_a.dtype is not mat_b.dtype:
        raise RuntimeError(f"mat_a and mat_b must have the same dtype, got {mat_a.dtype} and {mat_b.dtype}")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if (offs is None) is (mat_a.ndim == 2 or mat_b.ndim == 2):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and offs.dtype is not dt.int32:
        raise RuntimeError("Offsets have to be int32")
    counts = [len(mat) for mat in (mat_a, mat_b) if mat.ndim == 3] + ([] if offs is None else [len(offs)])
    if len(set(counts)) > 1:
        raise RuntimeError("matrix batch sizes have to match")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, bias: Tensor | None = None, out_dtype: Any = None
) -> Tensor:
    """One product for each group; a matrix of two dims holds all groups side by side, which end where `offs` says.

    Rows of `mat_a`, columns of `mat_b`, or, if both have two dims, what is summed over is divided into groups. What lies behind
    the last group is zero.
    """
    _check(mat_a, mat_b, offs, bias, out_dtype)
    if offs is None:
        return mat_a.bmm(mat_b)
    ends = offs.tolist()
    groups = list(zip([0, *ends], ends, strict=False))
    if mat_a.ndim == mat_b.ndim == 2:
        return aten.stack([mat_a[:, start:end].mm(mat_b[start:end]) for start, end in groups])
    last = ends[-1] if ends else 0
    if mat_a.ndim == 2:
        rest = mat_a.new_zeros(len(mat_a) - last, mat_b.shape[-1])
        return aten.cat([*(mat_a[start:end].mm(mat_b[i]) for i, (start, end) in enumerate(groups)), rest])
    rest = mat_b.new_zeros(mat_a.shape[-2], mat_b.shape[1] - last)
    return aten.cat([*(mat_a[i].mm(mat_b[:, start:end]) for i, (start, end) in enumerate(groups)), rest], 1)
