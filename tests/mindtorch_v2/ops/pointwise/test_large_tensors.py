"""Functions that go over a large tensor in blocks: the bits that they give for its parts."""

from __future__ import annotations

import numpy as np
import pytest

import mindtorch_v2 as torch

FUNCTIONS = {
    "frac": lambda x, **out: torch.frac(x, **out),
    "rsqrt": lambda x, **out: torch.rsqrt(x, **out),
    "pow": lambda x, **out: torch.pow(x, 3, **out),
    "nan_to_num": lambda x, **out: torch.nan_to_num(x, **out),
    "nan_to_num with numbers": lambda x, **out: torch.nan_to_num(x, float("inf"), 3.0, -4.0, **out),
    "sign": lambda x, **out: torch.sign(x, **out),
    "sgn": lambda x, **out: torch.sgn(x, **out),
}


def _values(dtype):
    draw = np.random.default_rng(0)
    edges = [0.0, -0.0, 1, -1, 0.5, -2.75, 1e-45, -1e-45, 1e30, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        bits = draw.integers(0, 1 << 32, 70_000, dtype=np.uint32).view(np.float32)
        parts = np.array(edges), bits, draw.standard_normal(130_000) * 3
        return torch.from_numpy(np.concatenate([part.astype(dtype) for part in parts]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_bits_are_those_of_the_parts(name, dtype):
    x = _values(dtype)
    function = FUNCTIONS[name]
    expected = torch.cat([function(part) for part in x.split(1000)]).numpy()
    target = torch.empty_like(x)
    function(x, out=target)
    written = x.clone()
    function(written, out=written)
    for result in (function(x), target, written):
        np.testing.assert_array_equal(result.numpy(), expected)
        numbers = ~np.isnan(expected)
        assert np.array_equal(np.signbit(result.numpy()[numbers]), np.signbit(expected[numbers]))
