"""Special functions at odd places and of numbers: what PyTorch 2.13 answered."""

from __future__ import annotations

import math
from math import inf, nan

import pytest

import mindtorch_v2 as torch


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_quantile_of_a_half_is_plain_zero(dtype: torch.dtype) -> None:
    made = torch.special.ndtri(torch.tensor([0.5, 0.0, 1.0, 0.25, 0.75, -1.0, nan], dtype=dtype)).tolist()
    assert made == pytest.approx([0, -inf, inf, -0.6744897501960817, 0.6744897501960817, nan, nan], nan_ok=True)
    assert math.copysign(1, made[0]) == 1


def test_a_number_times_a_logarithm() -> None:
    x = torch.tensor([0.5, 2.0], requires_grad=True)
    made = torch.special.xlog1py(2.0, x)
    assert made.tolist() == pytest.approx([0.8109302162163288, 2.1972245773362196])
    assert type(made.grad_fn).__name__ == "SpecialXlog1PyBackward1"
    made.sum().backward()
    assert x.grad.tolist() == pytest.approx([4 / 3, 2 / 3])
    assert torch.special.xlog1py(0, torch.tensor([-1.0, nan])).tolist() == pytest.approx([0, nan], nan_ok=True)
    assert torch.special.zeta(2, torch.tensor([1, 2])).tolist() == pytest.approx([1.6449340668482264, 0.6449340668482264])


@pytest.mark.parametrize("name", ["xlog1py", "xlogy", "zeta"])
def test_two_numbers_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"received an invalid combination of arguments - got \(int, int\)"):
        getattr(torch.special, name)(2, 3)


@pytest.mark.parametrize(
    ("call", "values", "gradient", "node"),
    [
        (lambda x: x.polygamma_(1), [1.6449341, 0.6449341], [-2.4041138, -0.4041138], "PolygammaBackward1"),
        (lambda x: x.add_(3).mvlgamma_(2), [3.5650978, 6.204155], [2.3592744, 2.8949885], "MvlgammaBackward0"),
    ],
)
def test_in_place_forms_of_the_gamma_family(call, values, gradient, node) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    target = x.clone()
    made = call(target)
    assert made is target and type(made.grad_fn).__name__ == node
    assert made.tolist() == pytest.approx(values)
    made.sum().backward()
    assert x.grad.tolist() == pytest.approx(gradient)
    for name in ("polygamma_", "mvlgamma_"):
        with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
            getattr(torch.tensor([1, 2]), name)(1)


def test_all_names_are_there() -> None:
    assert all(callable(getattr(torch.special, name)) for name in torch.special.__all__)
