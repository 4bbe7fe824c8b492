"""The functions of torch.masked, in terms of the unmasked ones.

`mask` is True for elements that take part, and broadcasts to the input. Where no element takes part, the result is what
the function has for nothing: 0 for a sum, 1 for a product, the dtype's end for an extreme, nan for a mean.
"""

from __future__ import annotations

import math
from typing import Any

from .. import _surface as torch
from .._core import dtype as dt
from .._core.tensor import Tensor
from ._mask import Dims, all_dims, check_strided, fill, full_mask, highest, lowest, one_dim


def _counting_dtype(input: Tensor, dtype: dt.dtype | None) -> dt.dtype:
    """The dtype of sums and products: integers are added up as int64."""
    if dtype is not None:
        return dtype
    return input.dtype if _is_float(input.dtype) else dt.int64


def _is_float(dtype: dt.dtype) -> bool:
    return dtype.is_floating_point or dtype.is_complex


# ---------------------------------------------------------------- reductions


def sum(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The sum over some dims, or all."""
    check_strided("sum", input)
    dtype = _counting_dtype(input, dtype)
    return torch.sum(fill(input.to(dtype), mask, 0), all_dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def prod(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The product over some dims, or all."""
    check_strided("prod", input)
    dtype = _counting_dtype(input, dtype)
    product = fill(input.to(dtype), mask, 1)
    for d in reversed(all_dims(dim, input.ndim)):
        product = torch.prod(product, d, bool(keepdim))
    return product


def amax(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The largest elements over some dims, or all."""
    return _extreme("amax", input, dim, keepdim, dtype, mask)


def amin(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The smallest elements over some dims, or all."""
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def _without_others(name: str, input: Tensor, mask: Tensor | None) -> Tensor:
    """The input of a maximum or minimum, in which what is masked out cannot win."""
    if mask is None:
        return input
    return fill(input, mask, (lowest if name.endswith("max") else highest)(name, input.dtype))


def _extreme(name: str, input: Tensor, dim: Dims, keepdim: bool, dtype: dt.dtype | None, mask: Tensor | None) -> Tensor:
    check_strided(name, input)
    filled = _without_others(name, input if dtype is None else input.to(dtype), mask)
    return getattr(torch, name)(filled, all_dims(dim, input.ndim), bool(keepdim))


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest elements are, along a dim or in the flattened input; in the input's dtype, as in torch."""
    return _place("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest elements are, along a dim or in the flattened input; in the input's dtype, as in torch."""
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _place(name: str, input: Tensor, dim: int | None, keepdim: bool, dtype: dt.dtype | None, mask: Tensor | None) -> Tensor:
    check_strided(name, input)
    dtype = input.dtype if dtype is None else dtype
    return getattr(torch, name)(_without_others(name, input, mask), dim, bool(keepdim)).to(dtype)


def logsumexp(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The logarithm of the sum of exponentials over some dims, or all."""
    check_strided("logsumexp", input)
    dtype = input.dtype if dtype is None else dtype
    nothing = None if mask is None else -math.inf if input.dtype.is_complex else lowest("logsumexp", input.dtype)
    return torch.logsumexp(fill(input, mask, nothing), all_dims(dim, input.ndim), bool(keepdim)).to(dtype)


def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Dims = None,
    *,
    keepdim: bool = False,
    dtype: dt.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The vector norm of an order over some dims, or all. Masked-out elements count as 0, for the order -inf as inf."""
    check_strided("norm", input)
    filled = fill(input, mask, math.inf if ord == -math.inf else 0)
    return torch.linalg_vector_norm(filled, ord, all_dims(dim, input.ndim), bool(keepdim), dtype=dtype)


def median(
    input: Tensor, dim: Dims = -1, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The lower median along a dim, nans left out."""
    check_strided("median", input)
    dtype = input.dtype if dtype is None else dtype
    along = one_dim(dim, input.ndim)
    if mask is not None and not input.dtype.is_floating_point:
        if not bool(torch.any(full_mask(input, mask), along).all()):
            raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
        input = input.to(dt.float64)  # which has the nan that is left out
    return torch.nanmedian(fill(input, mask, math.nan), along, bool(keepdim)).values.to(dtype)


# ---------------------------------------------------------------- moments


def _count(input: Tensor, dim: Dims, keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements take part: a number, or a tensor where that depends on the place."""
    dims = all_dims(dim, input.ndim)
    if mask is None:
        return math.prod(input.shape[d] for d in dims) if input.ndim else 1
    return torch.sum(full_mask(input, mask), dims, keepdim)


def mean(
    input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The mean over some dims, or all."""
    check_strided("mean", input)
    for kind, what in ((dtype, "Optional"), (input.dtype if dtype is None else None, "Input")):
        if kind is not None and not _is_float(kind):
            raise ValueError(
                f"mean(): Could not infer output dtype. {what} dtype must be either a floating point or complex "
                f"dtype. Got: {kind}"
            )
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _count(input, dim, bool(keepdim), mask)


def var(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dt.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The variance over some dims, or all; the sum of squares is divided by the count less the correction, which is 1."""
    return _variance("var", input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Tensor,
    dim: Dims = None,
    unbiased: bool | None = None,
    *,
    correction: float | None = None,
    keepdim: bool = False,
    dtype: dt.dtype | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The standard deviation over some dims, or all: the root of the variance."""
    return _variance("std", input, dim, unbiased, correction, keepdim, dtype, mask)


def _variance(
    name: str,
    input: Tensor,
    dim: Dims,
    unbiased: bool | None,
    correction: float | None,
    keepdim: bool,
    dtype: dt.dtype | None,
    mask: Tensor | None,
) -> Tensor:
    check_strided(name, input)
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    if correction is None:
        correction = 0 if unbiased is False else 1
    if not isinstance(correction, int):
        correction = float(correction)
    own = input.dtype if _is_float(input.dtype) else dt.float32
    dtype = own if dtype is None else dtype
    work = dtype if _is_float(dtype) else own
    middle = sum(input, dim, keepdim=True, dtype=work, mask=mask) / _count(input, dim, True, mask)
    away = (input - middle).to(work)
    squares = sum(away * away.conj(), dim, keepdim=keepdim, mask=mask)
    count = _count(input, dim, bool(keepdim), mask) - correction
    variance = squares / (torch.clamp(count, min=0) if isinstance(count, Tensor) else max(count, 0))
    return (variance if name == "var" else torch.sqrt(variance)).to(dtype)


# ---------------------------------------------------------------- along a dim


def cumsum(input: Tensor, dim: int, *, dtype: dt.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Sums of what a dim has up to each place; integers keep their dtype."""
    return _scan("cumsum", 0, input, dim, dtype, mask)


def cumprod(input: Tensor, dim: int, *, dtype: dt.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Products of what a dim has up to each place; integers keep their dtype."""
    return _scan("cumprod", 1, input, dim, dtype, mask)


def _scan(name: str, nothing: int, input: Tensor, dim: int, dtype: dt.dtype | None, mask: Tensor | None) -> Tensor:
    check_strided(name, input)
    dtype = input.dtype if dtype is None else dtype
    if dtype is dt.bool_:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
    return getattr(torch, name)(fill(input.to(dtype), mask, nothing), one_dim(dim, input.ndim), dtype=dtype)


def softmax(input: Tensor, dim: int, *, dtype: dt.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Exponentials that sum to 1 along a dim; 0 where masked out."""
    return _softmax("softmax", "amax", input, dim, dtype, mask)


def log_softmax(input: Tensor, dim: int, *, dtype: dt.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of softmax; -inf where masked out."""
    return _softmax("log_softmax", "amax", input, dim, dtype, mask)


def softmin(input: Tensor, dim: int, *, dtype: dt.dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Softmax of the input's negative."""
    return _softmax("softmin", "amin", input, dim, dtype, mask)


def _softmax(name: str, extreme: str, input: Tensor, dim: int, dtype: dt.dtype | None, mask: Tensor | None) -> Tensor:
    check_strided(name, input)
    filled = _without_others(extreme, input if dtype is None else input.to(dtype), mask)
    if name == "softmin":
        name, filled = "softmax", -filled
    return getattr(torch, name)(filled, one_dim(dim, input.ndim))


def normalize(
    input: Tensor, ord: float, dim: Dims, *, eps: float = 1e-12, dtype: dt.dtype | None = None, mask: Tensor | None = None
) -> Tensor:
    """The input divided by its norm along a dim, or by eps if that is larger; 0 where masked out."""
    check_strided("normalize", input)
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    filled = fill(input if dtype is None else input.to(dtype), mask, 0)
    return filled / torch.maximum(length, torch.scalar_tensor(eps, dtype=length.dtype, device=length.device))


def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: dt.dtype | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """The logarithm of the sum of two exponentials, of which a mask may leave out either; -inf where both are."""
    check_strided("logaddexp", input, other)
    dtype = input.dtype if dtype is None else dtype
    filled = [
        operand if mask is None else fill(operand, mask, lowest("logaddexp", operand.dtype))
        for operand, mask in ((input, input_mask), (other, other_mask))
    ]
    return torch.logaddexp(*filled).to(dtype)
