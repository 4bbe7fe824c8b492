"""Functions of two large float32 tensors: the bits that they give for small ones, at any arguments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mindtorch_v2 as torch

_TINY, _LARGEST = float(np.float32(1e-45)), float(np.finfo(np.float32).max)
_EDGES = [
    0.0,
    -0.0,
    1,
    -1,
    2,
    -3,
    0.5,
    7,
    1 / 3,
    -0.1,
    1e-20,
    -1e-20,
    _TINY,
    -_TINY,
    1e-39,
    2.0**20,
    2.0**28 + 32,
    -(2.0**31),
    1e30,
]
_EDGES += [_LARGEST, -_LARGEST, np.inf, -np.inf, np.nan, float(np.nextafter(np.float32(1), np.float32(2)))]
_FEW = 1000  # a size that NumPy's own functions compute
EXACT = ("fmod", "remainder", "floor_divide", "nextafter", "copysign")
CLOSE = ("hypot", "logaddexp")


def _pairs():
    draw = np.random.default_rng(0)
    edges = np.array(list(itertools.product(_EDGES, _EDGES)), np.float32)
    bits = draw.integers(0, 1 << 32, (60_000, 2), dtype=np.uint32).view(np.float32)
    whole = np.rint(draw.uniform(-60, 60, (20_000, 2))).astype(np.float32)
    # Dividends at, and next to, a multiple of the divisor.
    divisor = draw.standard_normal(60_000).astype(np.float32)
    multiple = divisor * np.rint(10 ** draw.uniform(0, 8, 60_000)).astype(np.float32)
    beside = np.nextafter(multiple, draw.standard_normal(60_000).astype(np.float32) * 1e9, dtype=np.float32)
    usual = draw.standard_normal((60_000, 2)).astype(np.float32)
    parts = edges, bits, whole, np.stack([multiple, divisor], 1), np.stack([beside, divisor], 1), usual
    return [torch.from_numpy(np.ascontiguousarray(column)) for column in np.concatenate(parts).T]


def _in_small_parts(function, a, b):
    return torch.cat([function(x, y) for x, y in zip(a.split(_FEW), b.split(_FEW), strict=True)])


def _same_bits(a, b):
    nan = torch.isnan(b)
    return torch.equal(torch.isnan(a), nan) and torch.equal(a.view(torch.int32)[~nan], b.view(torch.int32)[~nan])


@pytest.mark.parametrize("name", EXACT)
def test_bits_are_those_of_small_tensors(name):
    a, b = _pairs()
    function = getattr(torch, name)
    expected = _in_small_parts(function, a, b)
    assert _same_bits(function(a, b), expected)
    assert _same_bits(getattr(a.clone(), name + "_")(b), expected)
    target = torch.empty_like(a)
    function(a, b, out=target)
    assert _same_bits(target, expected)


@pytest.mark.parametrize("name", CLOSE)
def test_numbers_are_as_close_as_float32_can_show(name):
    a, b = _pairs()
    function = getattr(torch, name)
    got, few = function(a, b), _in_small_parts(function, a, b)
    exact = function(a.double(), b.double())
    torch.testing.assert_close(got, few, rtol=5e-7, atol=2e-7 if name == "logaddexp" else 0, equal_nan=True)
    usual = slice(-60_000, None)
    torch.testing.assert_close(got[usual].double(), exact[usual], rtol=3e-7, atol=1.5e-7 if name == "logaddexp" else 0)


@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_divide", "copysign"])
@pytest.mark.parametrize("number", [3, -0.7, 0.0, float("inf"), 2.0**-140])
def test_numbers_as_the_second_operand(name, number):
    a = _pairs()[0]
    function = getattr(torch, name)
    expected = torch.cat([function(x, number) for x in a.split(_FEW)])
    assert _same_bits(function(a, number), expected)


def test_floor_is_the_rounding_mode_of_div():
    a, b = _pairs()
    assert _same_bits(torch.div(a, b, rounding_mode="floor"), torch.floor_divide(a, b))


@pytest.mark.parametrize("name", EXACT + CLOSE)
def test_other_operands_take_the_usual_way(name):
    a, b = torch.randn(80, 90), torch.randn(80, 90)
    function = getattr(torch, name)
    units = 0 if name in EXACT else 2e-7
    torch.testing.assert_close(function(a.t(), b.t()), function(a, b).t(), rtol=units, atol=units)
    # In small pieces, since broadcast operands are computed by NumPy's own functions.
    torch.testing.assert_close(function(a, b[0]), function(a, b[0].expand(80, 90).contiguous()), rtol=5e-7, atol=2e-7)
    wide = function(a.double(), b.double())
    assert wide.dtype is torch.float64
