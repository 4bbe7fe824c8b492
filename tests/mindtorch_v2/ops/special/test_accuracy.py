"""Special functions against values of 60 digits, and at any argument a float64 can be: they end, and say nothing."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from special_arguments import CALLS, arguments
from special_values import rows

import mindtorch_v2 as torch
import mindtorch_v2.special

ROWS = rows()
# Relative errors that are larger than 5e-14: torch's formula divides by the sine of an angle that is small near 1; and half of
# a square is rounded before its exponential is taken.
LESS_EXACT = {"chebyshev_polynomial_u": 2e-11, "log_ndtr": 5e-13}


def _answer(name: str, columns: list[np.ndarray]) -> np.ndarray:
    function = getattr(torch.special, name)
    if name == "polygamma":
        results = [function(int(n), torch.tensor([x], dtype=torch.float64)).item() for n, x in zip(*columns, strict=True)]
        return np.array(results)
    if name == "multigammaln":
        return np.array(
            [function(torch.tensor([a], dtype=torch.float64), int(p)).item() for a, p in zip(*columns, strict=True)]
        )
    return function(*[torch.from_numpy(column.copy()) for column in columns]).numpy()


@pytest.mark.parametrize("name", ROWS)
def test_digits(name):
    *columns, wanted = np.array(ROWS[name]).T
    got = _answer(name, columns)
    assert np.isfinite(got).all()
    limit = LESS_EXACT.get(name, 5e-14)
    wrong = np.abs(got - wanted) > limit * np.abs(wanted)
    assert not wrong.any(), [(*(float(c[i]) for c in columns), float(got[i]), float(wanted[i])) for i in np.flatnonzero(wrong)]


@pytest.mark.parametrize("name", CALLS)
def test_any_arguments_end_in_bounded_time(name):
    count = 2_000
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for dtype in (torch.float64, torch.float32):
            result = CALLS[name](torch, *[torch.from_numpy(a).to(dtype) for a in arguments(count, seed=1)])
            assert result.numel() == count
    # Of the order of 10 ms for most; what iterated to the end for one element in a hundred would take seconds.
    assert time.process_time() - begun < 5
