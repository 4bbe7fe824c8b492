"""Optimizers: state from old checkpoints, fused steps on other devices, and LBFGS at its edges, as torch 2.13 has them."""

from __future__ import annotations

import copy
import math

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn, optim


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("Adam", ["step"]),
        ("Adagrad", ["step"]),
        ("RMSprop", ["step"]),
        ("NAdam", ["step", "mu_product"]),
        ("Adafactor", ["step"]),
    ]
    + [("ASGD", ["step", "eta", "mu"]), ("Rprop", ["step"]), ("RAdam", ["step"]), ("Adadelta", ["step"]), ("Adamax", ["step"])],
)
def test_counters_of_old_checkpoints_become_tensors(name: str, entries: list[str]) -> None:
    param = nn.Parameter(torch.ones(3))
    param.grad = torch.ones(3)
    optimizer = getattr(optim, name)([param], lr=0.1)
    optimizer.step()
    saved = copy.deepcopy(optimizer.state_dict())
    for entry in entries:
        saved["state"][0][entry] = saved["state"][0][entry].item()
    optimizer.load_state_dict(saved)
    state = optimizer.state[param]
    assert [(state[entry].dtype, state[entry].dim()) for entry in entries] == [(torch.float32, 0)] * len(entries)
    optimizer.step()
    assert state["step"] == 2


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_fused_steps_look_at_devices_and_dtypes_once(name: str) -> None:
    param = nn.Parameter(torch.ones(3, device="meta"))
    param.grad = torch.ones(3, device="meta")
    optimizer = getattr(optim, name)([param], fused=True)
    message = (
        r"`fused=True` requires all the params to be floating point Tensors of supported devices: .* torch.float32 and meta"
    )
    with pytest.raises(RuntimeError, match=message):
        optimizer.step()


@pytest.mark.parametrize("line_search_fn", [None, "strong_wolfe"])
def test_lbfgs_sees_complex_parameters_as_pairs(line_search_fn: str | None) -> None:
    target = torch.tensor([1 + 2j, -3j])
    param = nn.Parameter(torch.zeros(2, dtype=torch.complex64))
    optimizer = optim.LBFGS([param], line_search_fn=line_search_fn)

    def closure():
        optimizer.zero_grad()
        loss = (param - target).abs().square().sum()
        loss.backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
    assert torch.allclose(param.detach(), target, atol=1e-4)


def test_lbfgs_without_any_gradient_returns_the_loss() -> None:
    optimizer = optim.LBFGS([nn.Parameter(torch.ones(2))], tolerance_grad=-math.inf)
    assert optimizer.step(lambda: torch.tensor([10.0])).tolist() == [10.0]
