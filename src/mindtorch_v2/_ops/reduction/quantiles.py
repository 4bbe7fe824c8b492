"""Quantiles, of all elements or of those that are not nan."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import BACKENDS, META
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite
from .._support.common import home_of, normal_dim, normal_dims
from ..pointwise.scalar_forms import mul_number

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")
_DOCS = {
    "quantile": """Quantiles of all elements or along `dim`, by linear interpolation unless another is named.

    >>> torch.quantile(torch.tensor([0.0, 1.0, 2.0]), torch.tensor([0.25, 0.5]))
    tensor([0.5000, 1.0000])
    """,
    "nanquantile": """Quantiles of the elements that are not nan.

    >>> torch.nanquantile(torch.tensor([1.0, float("nan"), 3.0]), 0.5)
    tensor(2.)
    """,
}


def _check_quantile(self, q, interpolation, name):
    if self._array.size == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if q._array.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if self._array.dtype not in (np.float32, np.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if self._array.dtype != q._array.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if (self._keys ^ q._keys) & BACKENDS:
        raise RuntimeError(f"{name}() q tensor must be on the same device as the input tensor")
    if not q._keys & META and not ((q._array >= 0) & (q._array <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _ordered(self, dim):
    """The values sorted along the last dim, where what is reduced has been moved."""
    ndim = self._array.ndim
    if dim is None:
        return aten.sort(aten.flatten(self))[0]
    dim = normal_dim(dim, ndim)
    if dim == ndim - 1:
        return aten.sort(self)[0]
    moved = aten.transpose(aten.unsqueeze(self, -1), dim, -1)
    return aten.sort(moved)[0]


def _ranks(values, q, ignore_nan):
    """Where in the sorted values each quantile lies; the last place, which is nan, for a row that has one."""
    size = values._array.shape[-1]
    missing = aten.isnan(values)
    if ignore_nan:
        last = aten.sum(aten.logical_not_(missing), (-1,), True) - 1
        ranks = q * last
        return aten.masked_fill_(ranks, ranks < 0, 0)
    ranks = mul_number(q, size - 1)
    spoiled = aten.any(missing, (-1,), True)
    if ranks._array.shape != spoiled._array.shape[:-1] + ranks._array.shape[-1:]:
        ranks = aten.expand(ranks, spoiled._array.shape[:-1] + ranks._array.shape[-1:])
    return aten.masked_fill(ranks, spoiled, size - 1)


def _quantile(self, q, dim, keepdim, interpolation, ignore_nan):
    _check_quantile(self, q, interpolation, "nanquantile" if ignore_nan else "quantile")
    values = _ordered(self, dim)
    shape = self._array.shape
    gone = set(normal_dims(None if dim is None else (dim,), len(shape)))
    groups = tuple(1 if i in gone else n for i, n in enumerate(shape) if keepdim or i not in gone)
    values = aten.view(values, (*groups, values._array.shape[-1]))
    ranks = _ranks(values, q if q._array.ndim else aten.view(q, (1,)), ignore_nan)
    if ranks._array.shape[:-1] != groups:
        ranks = aten.expand(ranks, (*groups, ranks._array.shape[-1]))
    if interpolation in ("lower", "higher", "nearest"):
        place = {"lower": aten.floor, "higher": aten.ceil, "nearest": aten.round}[interpolation](ranks)
        quantiles = aten.gather(values, -1, aten.to(place, dtype=dt.int64))
    else:
        below = aten.to(ranks, dtype=dt.int64)
        low = aten.gather(values, -1, below)
        weight = aten.full_like(ranks, 0.5) if interpolation == "midpoint" else aten.sub(ranks, below)
        high = aten.gather(values, -1, aten.to(aten.ceil(ranks), dtype=dt.int64))
        quantiles = aten.lerp_(low, high, weight)
    # The quantiles lie along the last dim and come first in the result, which is no view of them.
    if not q._array.ndim:
        return aten.squeeze_(quantiles, -1)
    return aten.squeeze_(aten.transpose_(aten.unsqueeze_(quantiles, 0), 0, -1), -1)


def _quantile_samples(make):
    return [(make(3, 4), make().detach()), (make(3, 4), make(2).detach(), 0), (make(3, 4), make(2).detach(), 1, True)]


def _number_samples(make):
    return [(make(3, 4), 0.4), (make(3, 4), 0.4, 1, True), (make(2, 3, 4), 0.7, 1)]


for _name in ("quantile", "nanquantile"):
    composite(
        f"{_name}(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        lambda self, q, dim, keepdim, interpolation, nan=_name == "nanquantile": _quantile(
            self, q, dim, keepdim, interpolation, nan
        ),
        samples=_quantile_samples,
        autocast=Autocast.FLOAT32,
        out=True,
        doc=_DOCS[_name],
    )
    composite(
        f"{_name}.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
        lambda self, q, dim, keepdim, interpolation, nan=_name == "nanquantile": _quantile(
            self, _checked_q(self, q), dim, keepdim, interpolation, nan
        ),
        samples=_number_samples,
        autocast=Autocast.FLOAT32,
        out=True,
    )


def _checked_q(self, q):
    if not 0 <= q <= 1:
        raise RuntimeError(f"quantile() q must be in the range [0, 1] but got {q}")
    return aten.scalar_tensor(q, dtype=self.dtype, device=home_of(self))
