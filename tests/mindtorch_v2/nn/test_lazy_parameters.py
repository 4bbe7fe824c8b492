"""Parameters without a shape: what may be done to them, and what says so; texts are torch 2.13's."""

from __future__ import annotations

import re

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn.parameter import UninitializedBuffer, UninitializedParameter


def test_one_number_is_a_shape() -> None:
    made = UninitializedParameter()
    made.materialize(10)
    assert type(made) is nn.Parameter
    assert made.shape == (10,)
    buffer = UninitializedBuffer()
    buffer.materialize((2, 3), dtype=torch.float64)
    assert (buffer.shape, buffer.dtype) == ((2, 3), torch.float64)


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (torch.empty_like, "<built-in method empty_like of type object at 0x"),
        (lambda p: p + 1, "add"),
        (lambda p: p.sum(), "sum"),
        (lambda p: p.fill_(1), "fill_"),
        (lambda p: p.new_zeros(2), "new_zeros"),
        (lambda p: nn.functional.linear(p, p), "linear"),
    ],
)
def test_functions_refuse_them(call, shown: str) -> None:
    with pytest.raises(ValueError, match=f"^Attempted to use an uninitialized parameter in .*{re.escape(shown)}"):
        call(UninitializedParameter())


def test_spectral_norm_needs_a_shape() -> None:
    with pytest.raises(ValueError, match="^The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure"):
        nn.utils.spectral_norm(nn.LazyLinear(7))


@pytest.mark.parametrize("module", [nn.LazyLinear(3), nn.Sequential(nn.ReLU(), nn.LazyLinear(3))], ids=["alone", "inside"])
def test_scripting_needs_shapes(module: nn.Module) -> None:
    with pytest.raises(
        RuntimeError, match="LazyLinear' has uninitialized parameters weight. Did you forget to run a forward pass"
    ):
        torch.jit.script(module)
    module(torch.ones(1, 2))
    torch.jit.script(module)
