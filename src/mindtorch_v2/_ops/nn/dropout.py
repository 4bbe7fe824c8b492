"""Dropout in its variants: composed as torch composes it, with the noise drawn by `bernoulli_`."""

from __future__ import annotations

import numpy as np

from ..._dispatch.facts import Batching
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, like_first


def _check(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _feature_shape(input):
    """The noise shape of feature dropout, (N, C, 1, ...): one draw per sample and channel."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*shape[:2], *(1,) * (len(shape) - 2))


def _empty(input, features):
    if features:
        return aten.empty(_feature_shape(input), dtype=input.dtype, device=home_of(input))
    return aten.empty_like(input)


def _noise(input, p, features):
    """The factors: 0 with probability p, else 1 / (1 - p), which keeps the mean."""
    return aten.div_(aten.bernoulli_(_empty(input, features), 1 - p), 1 - p)


# selu's scale * alpha: dropped elements become its negative, the value that selu saturates at.
_ALPHA = 1.7580993408473766


def _alpha_noise(input, p, features):
    """The factor and the shift of each element, which keep the mean and variance of selu's outputs."""
    noise = aten.bernoulli_(_empty(input, features), 1 - p)
    a = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    shift = aten.add_(aten.mul_(aten.add(noise, -1), _ALPHA * a), _ALPHA * a * p)
    return aten.mul_(noise, a), shift


def _declare(name, features, alpha, *, doc=None):
    @composite(
        f"{name}(Tensor input, float p, bool train) -> Tensor", samples=lambda make: [(make(2, 3, 4), 0.5, False)], doc=doc
    )
    def fresh(input, p, train):
        _check(p)
        if p == 0 or not train or input._array.size == 0:
            return input
        if p == 1:
            return aten.mul(input, aten.zeros((), dtype=input.dtype))
        if not alpha:
            return aten.mul(input, _noise(input, p, features))
        factor, shift = _alpha_noise(input, p, features)
        return aten.add_(aten.mul(input, factor), shift)

    @composite(f"{name}_(Tensor(a!) self, float p, bool train) -> Tensor(a!)", samples=lambda make: [])
    def in_place(self, p, train):
        _check(p)
        if p == 0 or not train or self._array.size == 0:
            return self
        if p == 1:
            return aten.mul_(self, aten.zeros((), dtype=self.dtype))
        if not alpha:
            return aten.mul_(self, _noise(self, p, features))
        factor, shift = _alpha_noise(self, p, features)
        return aten.add_(aten.mul_(self, factor), shift)


_declare(
    "dropout",
    False,
    False,
    doc="""Sets elements to 0 with probability `p` while training, and scales the others up.

    >>> F.dropout(torch.ones(2), 0.5, training=False)
    tensor([1., 1.])
    """,
)
_declare(
    "feature_dropout",
    True,
    False,
    doc="""Dropout of whole channels.

    >>> torch.feature_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """,
)
_declare(
    "alpha_dropout",
    False,
    True,
    doc="""Dropout that keeps mean and variance, for `selu` networks.

    >>> torch.alpha_dropout(torch.ones(2), 0.5, False)
    tensor([1., 1.])
    """,
)
_declare(
    "feature_alpha_dropout",
    True,
    True,
    doc="""`alpha_dropout` of whole channels.

    >>> torch.feature_alpha_dropout(torch.ones(1, 2), 0.5, False)
    tensor([[1., 1.]])
    """,
)

# ---------------------------------------------------------------- with the mask as a result


def _native_shape(input, p, train):
    return [like_first(input), (input._array.shape, np.dtype(np.bool_))]


@composite(
    "native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)",
    shape=_native_shape,
    samples=lambda make: [(make(3, 4), 0.5, False)],
    batching=Batching.RANDOM,
)
def native_dropout(input, p, train):
    """Dropout, and which elements it kept.

    >>> torch.native_dropout(torch.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    _check(p)
    if train is False or p == 0:
        return aten.clone(input), aten.ones_like(input).bool()
    if p == 1:
        return aten.zeros_like(input), aten.zeros_like(input).bool()
    mask = aten.bernoulli_(aten.empty_like(input), 1 - p).bool()
    return aten.mul(aten.mul(input, mask), 1 / (1 - p)), mask


@native_dropout.vjp
def _(g, p, train, result1):
    scale = 1.0 if train is False or p in (0, 1) else 1 / (1 - p)
    return aten.native_dropout_backward(g, result1, scale)


@op(
    "native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor",
    shape=like_first,
    samples=lambda make: [(make(3, 4), make.bools(3, 4), 2.0)],
)
def native_dropout_backward(grad_output, mask, scale):
    grad_input = np.multiply(grad_output, mask)
    return np.multiply(grad_input, grad_input.dtype.type(float(scale)), grad_input)


native_dropout_backward.vjp(grad_output=lambda g, mask, scale: aten.native_dropout_backward(g, mask, scale))
