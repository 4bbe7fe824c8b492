"""Dropout in its variants: composed as torch composes it, with the noise drawn by `bernoulli_`."""

from __future__ import annotations

from .._dispatch.registry import aten, composite


def _check(p):
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _noise(input, shape, p):
    noise = aten.empty(shape, dtype=input.dtype) if shape != input._array.shape else aten.empty_like(input)
    return aten.div_(aten.bernoulli_(noise, 1 - p), 1 - p)


def _dropped(input, shape, p, train):
    _check(p)
    if p == 0 or not train or input._array.size == 0:
        return input
    if p == 1:
        return aten.mul(input, aten.zeros((), dtype=input.dtype))
    return aten.mul(input, _noise(input, shape, p))


@composite("dropout(Tensor input, float p, bool train) -> Tensor")
def dropout(input, p, train):
    return _dropped(input, input._array.shape, p, train)


def _feature_shape(input):
    """One draw per channel."""
    shape = input._array.shape
    if len(shape) < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return (*shape[:2], *(1,) * (len(shape) - 2))


@composite("feature_dropout(Tensor input, float p, bool train) -> Tensor")
def feature_dropout(input, p, train):
    return _dropped(input, _feature_shape(input), p, train)


_ALPHA = 1.7580993408473766


def _alpha_dropped(input, shape, p, train):
    """Dropout that keeps mean and variance of selu's outputs: dropped elements become -alpha."""
    _check(p)
    if p == 0 or not train or input._array.size == 0:
        return input
    if p == 1:
        return aten.mul(input, aten.zeros((), dtype=input.dtype))
    noise = aten.bernoulli_(aten.empty(shape, dtype=input.dtype), 1 - p)
    a = 1.0 / ((_ALPHA * _ALPHA * p + 1) * (1 - p)) ** 0.5
    b = aten.add(aten.add(noise, -1), 0).mul_(_ALPHA * a).add_(_ALPHA * a * p)
    noise = noise.mul_(a)
    return input * noise + b


@composite("alpha_dropout(Tensor input, float p, bool train) -> Tensor")
def alpha_dropout(input, p, train):
    return _alpha_dropped(input, input._array.shape, p, train)


@composite("feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
def feature_alpha_dropout(input, p, train):
    return _alpha_dropped(input, _feature_shape(input), p, train)


@composite("dropout_(Tensor(a!) self, float p, bool train) -> Tensor(a!)")
def dropout_(self, p, train):
    _check(p)
    if p == 0 or not train or self._array.size == 0:
        return self
    if p == 1:
        return aten.zero_(self)
    return aten.mul_(self, _noise(self, self._array.shape, p))
