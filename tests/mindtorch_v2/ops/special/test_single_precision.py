"""erfc, erfinv, lgamma and digamma in float32: within a few units in the last place of what float64 gives."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

_DRAW = np.random.default_rng(0)
_ANY_SIZE = 10 ** _DRAW.uniform(-38, 30, 20_000)
# The arguments of each function, and how many units in the last place it may be off.
CASES = {
    "erfc": ([_DRAW.uniform(-6, 10.2, 100_000), _DRAW.uniform(-0.1, 0.1, 20_000), _ANY_SIZE, -_ANY_SIZE], 6),
    "erfinv": ([_DRAW.uniform(-1, 1, 100_000), 1 - 10 ** _DRAW.uniform(-7.2, 0, 50_000), _ANY_SIZE[_ANY_SIZE < 1]], 4),
    "lgamma": (
        [_DRAW.uniform(-9, 9, 100_000), *(root + _DRAW.uniform(-1e-3, 1e-3, 20_000) for root in (1, 2)), _ANY_SIZE],
        1,
    ),
    "digamma": ([_DRAW.uniform(-9, 9, 100_000), 1.4616321 + _DRAW.uniform(-1e-3, 1e-3, 20_000), _ANY_SIZE], 1),
}
_SPECIAL = [0.0, -0.0, 1, -1, 2, -2, 9, 9.5, 10.05, 12, 30, 0.5, -0.5, -2.5, 1 - 2**-24, 2**-24 - 1, 1e-45, -1e-45]
_SPECIAL += [3.4e38, -3.4e38, 1e10, -1e10, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", CASES)
def test_large_tensors_are_as_exact_as_float32_can_show(name):
    parts, limit = CASES[name]
    x = torch.from_numpy(np.concatenate(parts).astype(np.float32))
    got, exact = getattr(torch, name)(x).numpy(), getattr(torch, name)(x.double()).numpy()
    units = np.abs(got - exact) / np.spacing(np.abs(exact.astype(np.float32)))
    assert np.nanmax(units) <= limit, (name, x[int(np.nanargmax(units))].item())
    assert np.array_equal(np.isnan(got), np.isnan(exact))


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("copies", [1, 4, 9000])
def test_special_arguments(name, copies):
    x = torch.from_numpy(np.tile(np.array(_SPECIAL, np.float32), copies))
    got = getattr(torch, name)(x).numpy()
    with np.errstate(all="ignore"):
        exact = getattr(torch, name)(torch.from_numpy(np.array(_SPECIAL, np.float32)).double()).numpy().astype(np.float32)
    np.testing.assert_allclose(got.reshape(copies, -1), np.broadcast_to(exact, (copies, len(exact))), rtol=7e-7)
    numbers = ~np.isnan(exact)
    assert np.array_equal(np.signbit(got[: len(exact)][numbers]), np.signbit(exact[numbers]))


@pytest.mark.parametrize("name", CASES)
def test_any_shape_and_order_of_dims(name):
    x = torch.rand(40, 50) * 0.9 + 0.05
    function = getattr(torch, name)
    assert torch.equal(function(x.t()), function(x.t().contiguous()))
    assert torch.equal(function(x[::2, ::3]), function(x[::2, ::3].contiguous()))
    assert torch.equal(function(x)[3, 7], function(x[3:4])[0, 7])
    assert function(torch.tensor(0.25)).shape == ()
    assert function(torch.empty(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("name", ["erf", "erfc", "erfinv", "lgamma", "digamma"])
def test_float64_is_the_same_in_parts(name):
    x = torch.rand(50_001, dtype=torch.float64) * 0.9 + 0.05
    function = getattr(torch, name)
    together = function(x)
    assert torch.equal(together[:5000], function(x[:5000]))
    assert torch.equal(together[-5000:], function(x[-5000:]))
