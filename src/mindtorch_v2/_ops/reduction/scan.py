"""Scans: running sums, products and extremes along a dim, differences and integrals."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import META
from ..._core.tensor import Tensor
from ..._core.threads import threads
from ..._dispatch.facts import Batching, Layout, Overlap
from ..._dispatch.registry import aten, composite, op
from .._support.common import existing_dim, home_of, like_first, no_kernel, normal_dim, normal_dims, np_dtype
from .._support.elementwise import log_add_exp, need_float, need_real
from .._support.flops import per_element
from .._support.half import is_narrow
from .._support.out_rules import computes_in_out, exactly
from ..creation.copy import converted
from ..pointwise.arithmetic import conj
from ._running import accumulate

_INT64 = np.dtype(np.int64)
_FLOAT32 = np.dtype(np.float32)
_INT16 = np.dtype(np.int16)
# Places of many elements are computed as int16, which has so many of them, in less time.
_MANY, _INT16_PLACES = 1 << 14, 1 << 15
_RARE = 8  # positions, of which one is set, that are filled sooner than scanned


def _one_dim(make):
    return [(make(3, 4), 1), (make(3, 4), -2)]


def _running(ufunc, array, dim, wanted):
    """ufunc.accumulate in the dtype asked for; what is narrow is carried in float32."""
    dim = normal_dim(dim, array.ndim)
    if array.dtype.kind == "c" and wanted.kind not in "cb":
        array = converted(array, wanted)
    if not array.ndim or not array.size:
        return array.astype(wanted)
    carried = _FLOAT32 if is_narrow(wanted) else wanted
    scan = accumulate(ufunc, array.astype(carried, copy=False), dim, carried)
    return scan if carried is wanted else scan.astype(wanted, copy=False)


def _sum_dtype(array, dtype):
    return np_dtype(dtype, _INT64 if array.dtype.kind in "iub" else array.dtype)


def _totals(name, ufunc, array, dim, dtype, out):
    wanted = _sum_dtype(array, dtype) if out is None else np_dtype(dtype, out.dtype)
    if out is not None and wanted != out.dtype:
        raise RuntimeError(
            f"Bad in-place call: input tensor dtype {dt.from_numpy(array.dtype).cpp_name} and output tensor dtype "
            f"{dt.from_numpy(wanted).cpp_name} should match"
        )
    if wanted.kind == "b" and array.ndim and array.size:
        normal_dim(dim, array.ndim)
        raise no_kernel(f"{name}_out_cpu", wanted)
    totals = _running(ufunc, array, dim, wanted)
    if out is not None:
        np.copyto(out, totals)
    return totals


def _scan_shape(self, dim, dtype):
    return self._array.shape, _sum_dtype(self._array, dtype)


# ---------------------------------------------------------------- sums and products


@op(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    checks_overlap=Overlap.PART,
    refuses_integer_results=True,
    layout=Layout.ROW_MAJOR,
    inplace=True,
    shape=_scan_shape,
    samples=_one_dim,
    batching=Batching.ALONG_DIM,
    flops=per_element(1),
    out_rule=computes_in_out,
)
def cumsum(self, dim, dtype, out=None):
    """The sum of the elements so far along `dim`.

    >>> torch.cumsum(torch.tensor([1, 2, 3]), dim=0)
    tensor([1, 3, 6])
    """
    return _totals("cumsum", np.add, self, dim, dtype, out)


def reversed_cumsum(t, dim):
    """The cumulative sum from the last element to the first."""
    return aten.flip(aten.cumsum(aten.flip(t, (dim,)), dim), (dim,))


def _cumsum_grad(g, self_dtype, dim):
    g = aten.to(g, dtype=self_dtype)
    return g if g._array.size <= 1 or g._array.shape[dim] == 1 else reversed_cumsum(g, dim)


cumsum.vjp(self=_cumsum_grad)


@op(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    checks_overlap=Overlap.PART,
    refuses_integer_results=True,
    layout=Layout.ROW_MAJOR,
    inplace=True,
    shape=_scan_shape,
    samples=_one_dim,
    batching=Batching.ALONG_DIM,
    flops=per_element(1),
    out_rule=computes_in_out,
)
def cumprod(self, dim, dtype, out=None):
    """The product of the elements so far along `dim`.

    >>> torch.cumprod(torch.tensor([1, 2, 3]), dim=0)
    tensor([1, 2, 6])
    """
    return _totals("cumprod", np.multiply, self, dim, dtype, out)


cumprod.vjp(
    self=lambda g, self, dim, result, self_dtype: aten.cumprod_backward(aten.to(g, dtype=self_dtype), self, dim, result)
)


@composite(
    "cumprod_backward(Tensor grad, Tensor input, int dim, Tensor output) -> Tensor",
    samples=lambda make: [(make(3, 4), make(3, 4), 1, make(3, 4))],
)
def cumprod_backward(grad, input, dim, output):
    if input._array.size <= 1:
        return grad
    dim = normal_dim(dim, input._array.ndim)
    size = input._array.shape[dim]
    if size == 1:
        return grad
    divisor = conj(input)
    weighted = conj(output) * grad
    if input._keys & META or not aten.item(aten.any(input == 0)):
        return aten.div(reversed_cumsum(weighted, dim), divisor)
    if threads.state.grad_enabled:
        return _cumprod_grad_of_products(grad, divisor, dim, size)
    # Up to the first zero of a line as without. The zero itself gets the product of what lies before it, times the sum over
    # what follows until the next zero; what comes after the first zero gets nothing.
    zero = input == 0
    seen = aten.cumsum(zero, dim)
    later = seen > 0
    first = zero & (seen == 1)
    head = aten.masked_fill(divisor, later, 1)
    early = aten.div(reversed_cumsum(aten.masked_fill(weighted, later, 0), dim), head)
    tail = aten.cumprod(aten.masked_fill(divisor, first | (seen != 1), 1), dim)
    total = aten.sum(tail * aten.masked_fill(grad, seen != 1, 0), (dim,), True)
    at_zero = aten.masked_fill(total * aten.prod(head, dim, True), ~first, 0)
    return aten.where(later, at_zero, early)


def _cumprod_grad_of_products(grad, factors, dim, size):
    """The gradient where it is differentiated again: the product of what lies before times that of what comes after."""
    shape = list(factors._array.shape)
    shape[dim] = 1
    ones = aten.ones(shape, dtype=factors.dtype, device=home_of(factors))
    before = aten.cumprod(aten.cat([ones, aten.narrow(factors, dim, 0, size - 1)], dim), dim)
    pieces = []
    for k in range(size):
        after = (
            ones if k == size - 1 else aten.cumprod(aten.cat([ones, aten.narrow(factors, dim, k + 1, size - k - 1)], dim), dim)
        )
        total = aten.sum(aten.narrow(grad, dim, k, size - k) * after, (dim,), True)
        pieces.append(aten.narrow(before, dim, k, 1) * total)
    return aten.cat(pieces, dim)


# ---------------------------------------------------------------- extremes


_as_scanned = exactly(lambda want, have: f"expected scalar_type {want.scalar_name} but found {have.scalar_name}")


def _latest(met, dim):
    """For each element of a mask the last position up to it along `dim` that is set; the first one is."""
    n = met.shape[dim]
    if met.size >= _MANY and dim == met.ndim - 1 and np.count_nonzero(met) * _RARE <= met.size:
        places = np.flatnonzero(met)
        return np.repeat(places % n, np.diff(places, append=met.size)).reshape(met.shape)
    kind = _INT16 if n <= _INT16_PLACES and met.size >= _MANY else _INT64
    places = np.arange(n, dtype=kind).reshape([-1 if d == dim else 1 for d in range(met.ndim)])
    return accumulate(np.maximum, np.multiply(met, places), dim, kind).astype(_INT64, copy=False)


def _extreme(name, ufunc, *, doc=None):
    @op(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        layout=Layout.ROW_MAJOR,
        samples=_one_dim,
        shape=lambda self, dim: [(self._array.shape, self._array.dtype), (self._array.shape, _INT64)],
        batching=Batching.ALONG_DIM,
        out_dtype=_as_scanned,
        doc=doc,
    )
    def kernel(self, dim):
        if not self.ndim and dim not in (0, -1):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        if not self.ndim or not self.size:  # torch looks neither at the dim nor at the dtype then
            return self.copy(), np.zeros(self.shape, np.int64)
        dim = normal_dim(dim, self.ndim)
        need_real(f"{name}_cpu", self)
        values = accumulate(ufunc, self, dim, self.dtype)
        # The latest place where the running extreme was met; nan, once there, is met by every nan.
        met = self == values
        if self.dtype.kind in "fV":
            met |= np.isnan(self)
        return values, _latest(met, dim)

    kernel.vjp(self=lambda g, self, dim, result1: aten.cummaxmin_backward(g, self, result1, dim))


_extreme(
    "cummax",
    np.maximum,
    doc="""The largest element so far along `dim`, and its position.

    >>> torch.cummax(torch.tensor([1, 3, 2]), dim=0)
    torch.return_types.cummax(
    values=tensor([1, 3, 3]),
    indices=tensor([0, 1, 1]))
    """,
)
_extreme(
    "cummin",
    np.minimum,
    doc="""The smallest element so far along `dim`, and its position.

    >>> torch.cummin(torch.tensor([3, 1, 2]), dim=0)
    torch.return_types.cummin(
    values=tensor([3, 1, 1]),
    indices=tensor([0, 1, 1]))
    """,
)


@composite(
    "cummaxmin_backward(Tensor grad, Tensor input, Tensor indices, int dim) -> Tensor",
    samples=lambda make: [(make(3, 4), make(3, 4), make.ints(4, 3, 4), 1)],
)
def cummaxmin_backward(grad, input, indices, dim):
    if not input._array.size or not input._array.ndim:
        return grad
    zeros = aten.zeros(input._array.shape, dtype=input.dtype, device=home_of(input))
    return aten.scatter_add_(zeros, dim, indices, grad)


# ---------------------------------------------------------------- logarithm of running sums of exponentials


@op(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    checks_overlap=Overlap.PART,
    out_dtype=_as_scanned,
    layout=Layout.ROW_MAJOR,
    shape=like_first,
    samples=_one_dim,
    batching=Batching.ALONG_DIM,
    flops=per_element(2),
)
def logcumsumexp(self, dim):
    """The logarithm of the sum of exponentials so far along `dim`.

    >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), dim=0)
    tensor([0.0000, 0.6931])
    """
    normal_dim(dim, self.ndim)
    need_float("logcumsumexp_out_cpu", self, "iub")
    if self.dtype.kind != "c" or not self.ndim:
        return _running(np.logaddexp, self, dim, self.dtype)
    result = np.empty_like(self)
    into, rows = np.moveaxis(result, dim, 0), np.moveaxis(self, dim, 0)
    for k, row in enumerate(rows):
        into[k] = log_add_exp(row, into[k - 1]) if k else row
    return result


# Stands for the logarithm of 0: as low as a dtype goes; any other holds the number of bfloat16.
_LOWEST = {dt.float64: float(np.finfo(np.float64).min), dt.float16: float(np.finfo(np.float16).min)}


def _logcumsumexp_grad(g, self, dim, result):
    """Each sign on its own, as logarithms, so that nothing overflows."""
    if not self._array.size or not self._array.ndim:
        return g
    if g._array.dtype.kind == "c":  # a complex logarithm needs no split by sign
        turned = aten.flip(conj(g).log() - result, (dim,))
        return conj((aten.flip(aten.logcumsumexp(turned, dim), (dim,)) + self).exp())
    lowest = aten.scalar_tensor(_LOWEST.get(g.dtype, -3.3e38), dtype=g.dtype)
    logs = g.abs().log()
    positive = aten.where(g > 0, logs, lowest)
    negative = aten.where(g < 0, logs, lowest)

    def part(log_grad):
        turned = aten.flip(log_grad - result, (dim,))
        return (aten.flip(aten.logcumsumexp(turned, dim), (dim,)) + self).exp()

    return part(positive) - part(negative)


def _logcumsumexp_tangent(t, self, dim):
    """Running means of the tangents, weighted by the exponentials; 0 while all of these are 0."""
    if not self._array.size or not self._array.ndim:
        return t
    wide = dt.complex128 if self._array.dtype.kind == "c" else dt.float64  # holds the exponentials of wider ranges
    values = aten.to(self, dtype=wide)
    largest = aten.amax(aten.real(values) if values.is_complex() else values, (dim,), True)
    weights = (values - largest).exp()
    total = aten.cumsum(weights, dim)
    means = aten.cumsum(weights * t, dim) / total
    return aten.to(aten.masked_fill(means, total == 0, 0), dtype=self.dtype)


logcumsumexp.vjp(self=_logcumsumexp_grad)
logcumsumexp.jvp(self=_logcumsumexp_tangent)

# ---------------------------------------------------------------- differences


def _check_ends(self, dim, ends):
    shape = self._array.shape
    for end in ends:
        other = end._array.shape
        if len(other) != len(shape):
            raise RuntimeError("diff expects prepend or append to be the same dimension as input")
        for i, (n, m) in enumerate(zip(shape, other, strict=True)):
            if n != m and i != dim:
                raise RuntimeError(
                    "diff expects the shape of tensor to prepend or append to match that of input except along "
                    f"the differencing dimension; input.size({i}) = {n}, but got tensor.size({i}) = {m}"
                )


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor",
    samples=lambda make: [(make(3, 4),), (make(3, 4), 2, 0), (make(3, 4), 1, 1, make(3, 1), make(3, 2))],
    out=True,
)
def diff(self, n, dim, prepend, append):
    """The differences of neighbors along `dim`, taken `n` times.

    >>> torch.diff(torch.tensor([1, 4, 9]))
    tensor([3, 5])
    """
    if not self._array.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    ends = [t for t in (prepend, self, append) if t is not None]
    if len(ends) > 1:
        _check_ends(self, normal_dim(dim, self._array.ndim), ends)
    if n == 0:
        return aten.copy_(aten.zeros_like(self), self)
    dim = normal_dim(dim, self._array.ndim)
    if len(ends) > 1:
        self = aten.cat(ends, dim)
    for _ in range(min(n, self._array.shape[dim])):
        size = self._array.shape[dim] - 1
        later, earlier = aten.narrow(self, dim, 1, size), aten.narrow(self, dim, 0, size)
        self = aten.logical_xor(later, earlier) if self._array.dtype.kind == "b" else aten.sub(later, earlier)
    return self


# ---------------------------------------------------------------- integrals by the trapezoid rule


def _neighbors(t, dim):
    return aten.slice(t, dim, 0, -1), aten.slice(t, dim, 1)


def _sampled(name, y, dim):
    """The dim to integrate along, of samples that can be added up."""
    if y._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    return existing_dim(dim, y._array.ndim)


def _steps(name, x, y, dim):
    """The distances between sample points, shaped to meet y."""
    if "b" in (x._array.dtype.kind, y._array.dtype.kind):
        raise RuntimeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported")
    if x._array.ndim == 1:
        if x._array.shape[0] != y._array.shape[dim]:
            raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
        shape = [1] * y._array.ndim
        shape[dim] = -1
        x = aten.view(x, shape)
    elif x._array.ndim < y._array.ndim:
        x = aten.view(x, (1,) * (y._array.ndim - x._array.ndim) + x._array.shape)
    left, right = _neighbors(x, dim)
    return right - left


def _xy(make):
    return [(make(3, 4), make(4)), (make(3, 4), make(3, 4), {"dim": 0})]


def _dx(make):
    return [(make(3, 4),), (make(3, 4), {"dx": 0.5, "dim": 0})]


def _empty_result(y, dim):
    shape = list(y._array.shape)
    del shape[dim]
    return aten.zeros(shape, dtype=y.dtype, device=home_of(y))


@composite("trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", samples=_xy)
def trapezoid_x(y, x, dim):
    """The integral along `dim`, by the trapezoidal rule.

    >>> torch.trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """
    dim = existing_dim(dim, y._array.ndim)
    if y._array.shape[dim] == 0:
        return _empty_result(y, dim)
    steps = _steps("trapezoid", x, y, dim)
    left, right = _neighbors(y, dim)
    return aten.sum(steps * (left + right), (dim,)) / 2


@composite("trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", samples=_dx)
def trapezoid_dx(y, dx, dim):
    dim = _sampled("trapezoid", y, dim)
    if y._array.shape[dim] == 0:
        return _empty_result(y, dim)
    total = aten.sum(y, (dim,))
    ends = aten.select(y, dim, 0) + aten.select(y, dim, -1)
    return (total - ends * 0.5) * dx


composite(
    "trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
    lambda y, x, dim: aten.trapezoid(y, x, dim=dim),
    samples=_xy,
    doc="""The integral along `dim`, by the trapezoidal rule, as `trapezoid`.

    >>> torch.trapz(torch.tensor([1.0, 2.0, 3.0]))
    tensor(4.)
    """,
)
composite(
    "trapz.dx(Tensor y, *, float dx=1, int dim=-1) -> Tensor", lambda y, dx, dim: aten.trapezoid(y, dx=dx, dim=dim), samples=_dx
)


@composite("cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", samples=_xy)
def cumulative_trapezoid_x(y, x, dim):
    """The integral so far along `dim`, by the trapezoidal rule.

    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 2.0, 3.0]))
    tensor([1.5000, 4.0000])
    """
    dim = normal_dim(dim, y._array.ndim)
    steps = _steps("cumulative_trapezoid", x, y, dim)
    left, right = _neighbors(y, dim)
    return aten.cumsum(steps * (left + right), dim) / 2


@composite("cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", samples=_dx)
def cumulative_trapezoid_dx(y, dx, dim):
    left, right = _neighbors(y, _sampled("cumulative_trapezoid", y, dim))
    return aten.cumsum((left + right) * (dx / 2), dim)


# ---------------------------------------------------------------- numerical derivatives


def _spaced(self, spacing, dim, edge_order):
    """The derivative along one dim: centered inside, one-sided at both ends; spacing is a number or the coordinates."""

    def part(start, stop):
        return aten.slice(self, dim, start, stop)

    if not isinstance(spacing, Tensor):
        inside = (part(2, None) - part(None, -2)) / spacing / 2
        if edge_order == 1:
            first, last = (part(1, 2) - part(0, 1)) / spacing, (part(-1, None) - part(-2, -1)) / spacing
        else:
            first = (part(1, 2) * 4 - part(0, 1) * 3 - part(2, 3)) / spacing / 2
            last = (part(-1, None) * 3 - part(-2, -1) * 4 + part(-3, -2)) / spacing / 2
        return aten.cat([first, inside, last], dim)
    shape = [1] * self._array.ndim
    shape[dim] = -1
    steps = aten.reshape(aten.slice(spacing, 0, 1) - aten.slice(spacing, 0, None, -1), shape)
    before, after = aten.slice(steps, dim, None, -1), aten.slice(steps, dim, 1)
    inside = (
        part(None, -2) * (-after / (before * (before + after)))
        + part(1, -1) * ((after - before) / (before * after))
        + part(2, None) * (before / (after * (before + after)))
    )
    if edge_order == 1:
        first = (part(1, 2) - part(0, 1)) / aten.slice(steps, dim, 0, 1)
        last = (part(-1, None) - part(-2, -1)) / aten.slice(steps, dim, -1)
    else:
        h, k = aten.slice(steps, dim, 0, 1), aten.slice(steps, dim, 1, 2)
        first = (
            part(0, 1) * (-(h * 2 + k) / (h * (h + k))) + part(1, 2) * ((h + k) / (h * k)) - part(2, 3) * (h / (k * (h + k)))
        )
        h, k = aten.slice(steps, dim, -2, -1), aten.slice(steps, dim, -1)
        last = (
            part(-3, -2) * (k / (h * (h + k)))
            - part(-2, -1) * ((h + k) / (h * k))
            + part(-1, None) * ((h + k * 2) / (k * (h + k)))
        )
    return aten.cat([first, inside, last], dim)


def _check_gradient(self, spacings, dim, edge_order):
    """Checks of torch.gradient's arguments; `spacings` is None unless one was given for each dim."""
    if self._array.dtype == np.uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    ndim = self._array.ndim
    if spacings is not None:
        if dim is None and len(spacings) != ndim:
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
                f"'self.dim() = {ndim}', since dim argument was not given, but got a list of length "
                f"{len(spacings)}"
            )
        if dim is not None and len(spacings) != len(dim):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments "
                f"to have the same length, but got a spacing argument of length {len(spacings)} and a dim "
                f"argument of length {len(dim)}."
            )
        for steps in spacings:
            if isinstance(steps, Tensor) and steps._array.ndim != 1:
                raise RuntimeError(
                    "torch.gradient expected each element of spacing to have one dimension, but got an element "
                    f"with {steps._array.ndim} dimensions!"
                )
            if isinstance(steps, Tensor) and steps.device != self.device:
                raise RuntimeError(
                    "torch.gradient expected each tensor to be on the same device, but got devices "
                    f"{self.device} and {steps.device}!"
                )
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if any(self._array.shape[d] < edge_order + 1 for d in normal_dims(dim, ndim)):
        raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")


def _gradient(self, spacing, dim, edge_order):
    dim = (dim,) if isinstance(dim, int) else dim
    listed = isinstance(spacing, list | tuple)
    _check_gradient(self, spacing if listed else None, dim, edge_order)
    if not listed:
        step = 1.0 if spacing is None else spacing.item() if isinstance(spacing, Tensor) else spacing
        spacing = [step] * (self._array.ndim if dim is None else len(dim))
    dims = normal_dims(dim, self._array.ndim)
    return tuple(_spaced(self, steps, d, edge_order) for steps, d in zip(spacing, dims, strict=True))


def _unit_gradient(self, dim, edge_order):
    return _gradient(self, None, dim, edge_order)


for _overload, _arguments, _sample in (
    ("scalarint", "Scalar? spacing=None, int? dim=None", {}),
    ("scalararray", "Scalar spacing, int[] dim", {"spacing": 0.5, "dim": (0,)}),
    ("array", "int[] dim", {"dim": (0, 1)}),
    ("scalarrayint", "Scalar[] spacing, int? dim=None", {"spacing": [0.5, 2.0], "edge_order": 2}),
    ("scalarrayarray", "Scalar[] spacing, int[] dim", {"spacing": [0.5], "dim": (1,)}),
):
    composite(
        f"gradient.{_overload}(Tensor self, *, {_arguments}, int edge_order=1) -> Tensor[]",
        _gradient if _overload != "array" else _unit_gradient,
        samples=lambda make, sample=_sample: [(make(3, 4), sample)],
        doc="""The gradient of sampled values, by central differences inside and one-sided ones at the ends.

        >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
        (tensor([3., 4., 6., 7.]),)
        """,
    )
composite(
    "gradient.tensorarrayint(Tensor self, *, Tensor[] spacing, int? dim=None, int edge_order=1) -> Tensor[]",
    _gradient,
    samples=lambda make: [(make(3, 4), {"spacing": [make(3).cumsum(0), make(4).cumsum(0)], "edge_order": 2})],
)
composite(
    "gradient.tensorarray(Tensor self, *, Tensor[] spacing, int[] dim, int edge_order=1) -> Tensor[]",
    _gradient,
    samples=lambda make: [(make(3, 4), {"spacing": [make(4).cumsum(0)], "dim": (1,)})],
)
