"""Casts and arithmetic of large arrays of half precision: the bits that NumPy's own, one element at a time, give."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._core.half_precision import MANY, cast, fill

F16, F32 = np.dtype(np.float16), np.dtype(np.float32)
EVERY_HALF = np.arange(1 << 16, dtype=np.uint16).view(F16)
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}


def _singles():
    """Numbers on both sides of every border between two halves, and of any size."""
    with np.errstate(all="ignore"):
        finite = np.sort(EVERY_HALF[np.isfinite(EVERY_HALF)].astype(np.float64))
        borders = ((finite[1:] + finite[:-1]) / 2).astype(F32)
        largest = np.array([65504, 65519.996, 65520, 65536, 1e30, 3e38, np.inf, np.nan, 1e-45, 1e-38, 2.0**-25, 0], F32)
        bits = np.random.default_rng(0).integers(0, 1 << 32, 1 << 20, dtype=np.uint32)
        near = np.random.default_rng(1).integers(0x32000000, 0x47900000, 1 << 20, dtype=np.uint32)
        above, below = np.nextafter(borders, F32.type(np.inf)), np.nextafter(borders, F32.type(-np.inf))
        return np.concatenate([borders, above, below, largest, -largest, bits.view(F32), near.view(F32), -near.view(F32)])


def _bits(array):
    return array.view(np.dtype(f"i{array.itemsize}"))


def _check(array, kind):
    with np.errstate(all="ignore"):
        assert np.array_equal(_bits(cast(array, kind)), _bits(array.astype(kind)))


def test_every_half_becomes_the_same_float():
    nan = np.isnan(EVERY_HALF)
    wide, expected = cast(EVERY_HALF, F32), EVERY_HALF.astype(F32)
    assert np.array_equal(_bits(wide)[~nan], _bits(expected)[~nan])
    assert np.isnan(wide[nan]).all()
    _check(EVERY_HALF[:0x7C00], F32)  # no inf and no nan, which take another path


def test_floats_are_rounded_as_numpy_does():
    _check(_singles(), F16)
    singles = _singles()
    _check(singles[np.abs(singles) < 30000], F16)


def test_the_order_of_dims_stays():
    turned = np.random.default_rng(0).standard_normal((200, 300)).astype(F32).T
    assert cast(turned, F16).strides == turned.astype(F16, order="K").strides
    assert np.array_equal(cast(turned, F16), turned.astype(F16))


@pytest.mark.parametrize("kinds", [(np.float64, np.float16), (np.float32, np.float64), (np.float16, np.int32)])
def test_other_casts_are_left_to_numpy(kinds):
    source, target = np.ones(MANY, kinds[0]), np.zeros(MANY, kinds[1])
    assert not fill(target, source)
    assert not target.any()


def test_subnormal_halves_stay_where_denormals_are_flushed():
    tiny = torch.full((MANY,), 2.0**-20)
    halves = tiny.half()
    if not torch.set_flush_denormal(True):
        pytest.skip("this machine has no flush mode")
    try:
        narrow, wide = tiny.half(), halves.float()
    finally:
        torch.set_flush_denormal(False)
    assert np.array_equal(narrow.numpy(), halves.numpy())
    assert np.array_equal(wide.numpy(), tiny.numpy())


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_arithmetic_is_rounded_once(name, dtype):
    count = 5 * MANY + 3
    a, b = (torch.randn(count, generator=torch.Generator().manual_seed(seed)).to(dtype) * 100 for seed in (1, 2))
    a[:6] = torch.tensor([0.0, -0.0, float("inf"), float("nan"), 65504, 6e-8])
    with np.errstate(all="ignore"):
        expected = BINARY[name](a._array, b._array)
        of_row = BINARY[name](a._array[: MANY * 2].reshape(2, -1), b._array[:MANY])
    function = getattr(torch, name)
    target = torch.empty_like(a)
    function(a, b, out=target)
    written = getattr(a.clone(), name + "_")(b)
    for result in (function(a, b), target, written):
        assert np.array_equal(_bits(result._array), _bits(expected)), (name, dtype)
    broadcast = function(a[: MANY * 2].reshape(2, -1), b[:MANY])
    assert np.array_equal(_bits(broadcast._array), _bits(of_row))
    few = MANY // 2  # which NumPy's own loops compute
    for number in (2.1, 3, 1):
        assert np.array_equal(_bits(function(a, number)._array)[:few], _bits(function(a[:few], number)._array))


@pytest.mark.parametrize("name", ["add", "sub"])
@pytest.mark.parametrize("alpha", [0.3, 2, 1])
def test_factors_of_sums_are_as_for_small_tensors(name, alpha):
    a, b = torch.randn(MANY).half(), torch.randn(MANY).half()
    function = getattr(torch, name)
    assert torch.equal(function(a, b, alpha=alpha)[:100], function(a[:100], b[:100], alpha=alpha))


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "sqrt", "floor", "round", "ceil", "trunc"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_functions_give_the_nearest_number(name, dtype):
    x = torch.linspace(0.1, 8, MANY + 5).to(dtype)
    result = getattr(torch, name)(x)
    assert result.dtype is dtype
    torch.testing.assert_close(result, getattr(torch, name)(x.double()).to(dtype), rtol=torch.finfo(dtype).eps, atol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_sums_and_means_of_many_are_made_in_float32(dtype):
    x = torch.randn(300, 200).to(dtype) + 1
    for dims in (None, 0, 1, (0, 1)):
        for name in ("sum", "mean"):
            wide = getattr(x.double(), name)(dims) if dims is not None else getattr(x.double(), name)()
            own = getattr(x, name)(dims) if dims is not None else getattr(x, name)()
            torch.testing.assert_close(own, wide.to(dtype), rtol=torch.finfo(dtype).eps, atol=0)
