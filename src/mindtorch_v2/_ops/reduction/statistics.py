"""Statistics: variances, log-sum-exp, sums that pass over nan, covariance."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching, Layout
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, normal_dims, np_dtype, reduced_shape
from .._support.flops import per_element
from .._support.half import is_narrow
from .._support.out_rules import computes_in_out
from .._support.warn import warn
from ..creation.copy import converted
from ..pointwise.arithmetic import conj
from ..pointwise.scalar_forms import mul_number
from .reduce import add_up, axes_of, by_dims, expand_reduced, reduced_numel, unsqueezed

_FLOAT32 = np.dtype(np.float32)


# ---------------------------------------------------------------- variance and standard deviation


def _moments(self, dim, correction, keepdim, name):
    """The mean and the variance over `dim`; half precision is computed in float32. `name` is for the messages."""
    if self.dtype.kind not in "fcV":
        names = "std and var" if name in ("std", "var") else name
        raise RuntimeError(f"{names} only support floating point and complex dtypes")
    correction = 1 if correction is None else correction
    work = self.astype(_FLOAT32) if is_narrow(self.dtype) else self
    axes = normal_dims(dim, self.ndim)
    count = reduced_numel(self.shape, axes) if axes else self.size
    if correction >= max(count, 0):
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
            "numel divided by output numel)."
        )
    mean = np.divide(np.add.reduce(work, axes, None, None, True), count)
    centered = np.subtract(work, mean)
    square = np.multiply(centered, centered) if centered.dtype.kind != "c" else centered.real**2 + centered.imag**2
    total = np.add.reduce(square, axes, None, None, keepdim)
    variance = np.divide(total, max(0, count - correction) if count else 0)  # of nothing, it is nan whatever the correction
    return mean if keepdim else np.squeeze(mean, axes), variance


def _real_dtype(array):
    return dt.from_numpy(array.dtype).to_real().np


def var_grad(g, self, dim, correction, keepdim):
    """The gradient of a variance: twice the deviation from the mean."""
    correction = 1 if correction is None else correction
    shape = self._array.shape
    everything = dim is None or len(dim) == 0 or not shape
    freedom = (math.prod(shape) if everything else reduced_numel(shape, dim)) - correction
    if not everything:
        g = unsqueezed(g, shape, dim, keepdim)
    mean = aten.mean(self) if everything else aten.mean(self, dim, True)
    if freedom <= 0 and (dim is None or not shape):  # an infinite factor times the deviation
        return g * aten.where(self == mean, math.nan, math.inf)
    centered = self - mean
    return mul_number(g, 2.0 / freedom if freedom else math.inf) * centered


def std_grad(g, self, result, dim, correction, keepdim):
    """The gradient of a standard deviation, through that of the variance; 0 where nothing varies."""
    twice = mul_number(result, 2)
    through = aten.masked_fill_(g / twice, result == 0, 0)
    return var_grad(through, self, dim, correction, keepdim)


def real_sum(product, dim, keepdim):
    """The sum over some dims, or all, of the real parts."""
    product = aten.real(product) if product._array.dtype.kind == "c" else product
    return aten.sum(product, normal_dims(dim, product._array.ndim), keepdim)


def _var_tangent(t, self, dim, correction, keepdim):
    dims = normal_dims(dim, self._array.ndim)
    shape = [1 if d in dims else n for d, n in enumerate(self._array.shape) if keepdim or d not in dims]
    slope = var_grad(aten.new_ones(aten.real(self), shape), self, dim, correction, keepdim)
    return real_sum(conj(slope) * t, dim, keepdim)


def _std_tangent(t, self, result, dim, correction, keepdim):
    through = _var_tangent(t, self, dim, correction, keepdim) / mul_number(result, 2)
    return aten.masked_fill(through, result == 0, 0)


def _mean_tangent(t, dim, keepdim):
    return aten.mean(t, normal_dims(dim, t._array.ndim), keepdim)


def _with_unbiased(name, returns):
    """Declares the overloads that take `unbiased` in place of `correction`."""
    composite(
        f"{name}(Tensor self, bool unbiased=True) -> {returns}",
        lambda self, unbiased: getattr(aten, name)(self, None, correction=int(unbiased)),
        samples=lambda make: [(make(3, 4), False)],
        batching=Batching.REDUCTION,
        flops=per_element(4),
    )
    composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {returns}",
        lambda self, dim, unbiased, keepdim: getattr(aten, name)(self, dim, correction=int(unbiased), keepdim=keepdim),
        samples=lambda make: [(make(3, 4), 1, False), (make(3, 4), 0, True, True)],
        batching=Batching.REDUCTION,
        flops=per_element(4),
        out=returns == "Tensor",
        out_overload="out",
    )


def _spread_samples(make):
    return [(make(3, 4),), (make(3, 4), 1, {"correction": 0}), (make(3, 4), (0, 1), {"keepdim": True})]


_ARGUMENTS = "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False)"


def _spread_shape(self, dim, correction, keepdim):
    return reduced_shape(self._array.shape, dim, keepdim), _real_dtype(self._array)


def _pair_shape(self, dim, correction, keepdim):
    shape = reduced_shape(self._array.shape, dim, keepdim)
    return [(shape, _real_dtype(self._array)), (shape, self._array.dtype)]


@op(
    f"var.correction{_ARGUMENTS} -> Tensor",
    shape=_spread_shape,
    samples=_spread_samples,
    batching=Batching.REDUCTION,
    flops=per_element(4),
)
def var(self, dim, correction, keepdim):
    """The variance, with `correction` taken off the count.

    >>> torch.var(torch.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return np.asarray(_moments(self, dim, correction, keepdim, "var")[1]).astype(_real_dtype(self), copy=False)


var.vjp(self=var_grad)
var.jvp(self=_var_tangent)


@op(
    f"std.correction{_ARGUMENTS} -> Tensor",
    shape=_spread_shape,
    samples=_spread_samples,
    batching=Batching.REDUCTION,
    flops=per_element(4),
)
def std(self, dim, correction, keepdim):
    """The standard deviation, with `correction` taken off the count.

    >>> torch.std(torch.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return np.asarray(np.sqrt(_moments(self, dim, correction, keepdim, "std")[1])).astype(_real_dtype(self), copy=False)


std.vjp(self=std_grad)
std.jvp(self=_std_tangent)


def _mean_grad(g, self, dim, keepdim):
    shape = self._array.shape
    if dim is None or len(dim) == 0:
        return aten.expand(g, shape) / math.prod(shape)
    return expand_reduced(g, shape, dim, keepdim) / reduced_numel(shape, dim)


def _sum_of(parts):
    """The sum of the gradients through two results, of which one may be None."""
    present = [part for part in parts if part is not None]
    return present[0] if len(present) == 1 else present[0] + present[1]


@op(
    f"var_mean.correction{_ARGUMENTS} -> (Tensor, Tensor)",
    layout=Layout.ROW_MAJOR,
    shape=_pair_shape,
    samples=_spread_samples,
    takes_all_grads=True,
    batching=Batching.REDUCTION,
    flops=per_element(4),
    out=False,
)
def var_mean(self, dim, correction, keepdim):
    """The variance and the mean at once.

    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    mean, variance = _moments(self, dim, correction, keepdim, "var_mean")
    return np.asarray(variance).astype(_real_dtype(self), copy=False), np.asarray(mean).astype(self.dtype, copy=False)


@var_mean.vjp
def _(grads, self, dim, correction, keepdim):
    spread, mean = grads
    return (
        _sum_of(
            (
                None if spread is None else var_grad(spread, self, dim, correction, keepdim),
                None if mean is None else _mean_grad(mean, self, dim, keepdim),
            )
        ),
    )


var_mean.jvp(
    self=lambda t, self, dim, correction, keepdim: (
        _var_tangent(t, self, dim, correction, keepdim),
        _mean_tangent(t, dim, keepdim),
    )
)


@op(
    f"std_mean.correction{_ARGUMENTS} -> (Tensor, Tensor)",
    layout=Layout.ROW_MAJOR,
    shape=_pair_shape,
    samples=_spread_samples,
    takes_all_grads=True,
    batching=Batching.REDUCTION,
    flops=per_element(4),
    out=False,
)
def std_mean(self, dim, correction, keepdim):
    """The standard deviation and the mean at once.

    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    mean, variance = _moments(self, dim, correction, keepdim, "std_mean")
    return (
        np.asarray(np.sqrt(variance)).astype(_real_dtype(self), copy=False),
        np.asarray(mean).astype(self.dtype, copy=False),
    )


@std_mean.vjp
def _(grads, self, dim, correction, keepdim, result0):
    spread, mean = grads
    return (
        _sum_of(
            (
                None if spread is None else std_grad(spread, self, result0, dim, correction, keepdim),
                None if mean is None else _mean_grad(mean, self, dim, keepdim),
            )
        ),
    )


std_mean.jvp(
    self=lambda t, self, dim, correction, keepdim, result0: (
        _std_tangent(t, self, result0, dim, correction, keepdim),
        _mean_tangent(t, dim, keepdim),
    )
)

_with_unbiased("var", "Tensor")
_with_unbiased("std", "Tensor")
_with_unbiased("var_mean", "(Tensor, Tensor)")
_with_unbiased("std_mean", "(Tensor, Tensor)")

# ---------------------------------------------------------------- log-sum-exp


def _float_dtype(array):
    return dt.get_default_dtype().np if array.dtype.kind in "iub" else array.dtype


def _need_float_out(op, args, out):
    if not (out.dtype.is_floating_point or out.dtype.is_complex):
        raise RuntimeError(f"logsumexp(): Expected floating point type for result tensor, but got: {out.dtype.scalar_name}")
    return args


def _log_sum_exp(self, dim, keepdim, dtype):
    """The result in `dtype`, which is that of the sum as well, but for narrow ones."""
    wanted = _float_dtype(self)
    work = self.astype(_FLOAT32 if is_narrow(wanted) else wanted, copy=False)
    summed = _FLOAT32 if is_narrow(dtype) else dtype
    axes = normal_dims(dim, self.ndim)
    if not self.size:
        total = np.log(np.add.reduce(_in_kind(np.exp(work), summed), axes, summed, None, keepdim))
        return np.asarray(total).astype(dtype, copy=False)
    peak = np.maximum.reduce(work.real, axes, None, None, True)
    peak = np.where(np.isinf(peak), np.zeros((), peak.dtype), peak)
    total = np.log(np.add.reduce(_in_kind(np.exp(np.subtract(work, peak)), summed), axes, summed, None, True))
    total = np.add(total, peak)
    return (total if keepdim else np.squeeze(total, axes)).astype(dtype, copy=False)


def _in_kind(array, dtype):
    """The real parts of complex numbers whose sum is to be real, with torch's warning."""
    return converted(array, dtype) if array.dtype.kind == "c" and dtype.kind != "c" else array


@op(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    samples=by_dims,
    shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), _float_dtype(self._array)),
    batching=Batching.REDUCTION,
    flops=per_element(3),
    out_rule=_need_float_out,
    out_kernel=_log_sum_exp,
)
def logsumexp(self, dim, keepdim):
    """The logarithm of the sum of exponentials along `dim`, without overflow.

    >>> torch.logsumexp(torch.tensor([100.0, 100.0]), dim=0)
    tensor(100.6931)
    """
    return _log_sum_exp(self, dim, keepdim, _float_dtype(self))


def _logsumexp_grad(g, self, dim, keepdim, result):
    shape = self._array.shape
    whole = tuple(range(len(shape))) if len(dim) == 0 else dim
    g, result = unsqueezed(g, shape, whole, keepdim), unsqueezed(result, shape, whole, keepdim)
    return g * conj((self - result).exp())


logsumexp.vjp(self=_logsumexp_grad)

# ---------------------------------------------------------------- passing over nan


@op(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    refuses_integer_results=True,
    shape=lambda self, dim, keepdim, dtype: (
        reduced_shape(self._array.shape, dim, keepdim),
        np_dtype(dtype, np.dtype(np.int64) if self._array.dtype.kind in "iub" else self._array.dtype),
    ),
    samples=by_dims,
    batching=Batching.REDUCTION,
    flops=per_element(1),
    out_rule=computes_in_out,
)
def nansum(self, dim, keepdim, dtype):
    """The sum of the elements that are not nan.

    >>> torch.nansum(torch.tensor([1.0, float("nan"), 3.0]))
    tensor(4.)
    """
    if self.dtype.kind == "c":
        normal_dims(dim, self.ndim)  # a dim that is not there is told first
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex and self.dtype.kind in "fV" and self.size:
        raise no_kernel("nansum_cpu", dtype.np)
    if self.dtype.kind in "fV":
        self = np.where(np.isnan(self), np.zeros((), self.dtype), self)
    return add_up(self, axes_of(dim, self.ndim), keepdim, dtype)


def _nansum_grad(g, self, dim, keepdim):
    g = aten.to(g, dtype=self.dtype)
    counted = aten.logical_not(aten.isnan(self))
    if dim is None or len(dim) == 0:
        return aten.expand(g, self._array.shape) * counted
    return expand_reduced(g, self._array.shape, dim, keepdim) * counted


nansum.vjp(self=_nansum_grad)


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor", samples=by_dims, out=True
)
def nanmean(self, dim, keepdim, dtype):
    """The mean of the elements that are not nan.

    >>> torch.nanmean(torch.tensor([1.0, float("nan"), 3.0]))
    tensor(2.)
    """
    if self._array.dtype.kind not in "fcV":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {self.dtype.scalar_name}"
        )
    if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. Got: "
            f"{dtype.scalar_name}"
        )
    counted = aten.logical_not_(aten.ne(self, self))
    count = aten.sum(counted, () if dim is None else dim, keepdim)
    return aten.div(aten.nansum(self, dim, keepdim, dtype=dtype), count)


# ---------------------------------------------------------------- covariance


def _weights(name, t, count, kinds, words):
    if t._array.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {t._array.ndim} dimensions"
        )
    if t._array.dtype.kind not in kinds:
        raise RuntimeError(f"cov(): expected {name} to have {words} dtype but got {name} with {t.dtype.scalar_name} dtype")
    if t._array.size != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but "
            f"got {t._array.size} != {count}"
        )
    if count and aten.item(aten.min(t)) < 0:
        raise RuntimeError(f"cov(): {name} cannot be negative")
    return t


@composite(
    "cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor",
    samples=lambda make: [(make(3, 4),), (make(4), {"correction": 0})],
)
def cov(self, correction, fweights, aweights):
    """The covariance of the rows of a matrix with each other.

    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if self._array.ndim > 2:
        raise RuntimeError(
            f"cov(): expected input to have two or fewer dimensions but got an input with {self._array.ndim} dimensions"
        )
    if self._array.dtype.kind == "b":
        raise RuntimeError("cov(): bool dtype is not supported for input")
    rows = aten.view(self, (1, -1)) if self._array.ndim < 2 else self
    count = rows._array.shape[1]
    weight: Tensor | None = None
    if fweights is not None:
        weight = _weights("fweights", fweights, count, "iu", "integral")
    if aweights is not None:
        other = _weights("aweights", aweights, count, "fV", "floating point")
        weight = other if weight is None else weight * other
    if weight is None:
        total = count
        mean = aten.sum(rows, (1,)) / total
        freedom = total - correction
    else:
        total = aten.sum(weight)
        if count and aten.item(total) == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = aten.sum(rows * weight, (1,)) / total
        freedom = (
            total - correction
            if aweights is None or correction == 0
            else total - correction * aten.sum(weight * aweights) / total
        )
    centered = rows - aten.unsqueeze(mean, 1)
    other = centered if weight is None else centered * weight
    adjoint = aten.t(other) if other._array.dtype.kind != "c" else aten._conj(aten.t(other))
    product = aten.mm(centered, adjoint)
    return aten.squeeze(aten.true_divide(product, max(freedom, 0) if weight is None else aten.clamp_min(freedom, 0)))


@composite("corrcoef(Tensor self) -> Tensor", samples=lambda make: [(make(3, 4),)])
def corrcoef(self):
    """The correlation of the rows of a matrix with each other.

    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    if self._array.ndim > 2:
        raise RuntimeError(
            f"corrcoef(): expected input to have two or fewer dimensions but got an input with {self._array.ndim} dimensions"
        )
    covariance = aten.cov(self)
    if not covariance._array.ndim:
        return covariance / covariance
    deviation = aten.sqrt(aten.diagonal(covariance))
    scaled = covariance / aten.view(deviation, (-1, 1))
    scaled = scaled / aten.view(deviation, (1, -1))
    if scaled._array.dtype.kind == "c":
        return scaled
    return aten.clip(scaled, -1, 1)
