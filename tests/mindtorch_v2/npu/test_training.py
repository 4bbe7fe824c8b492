"""Training on the device follows the CPU's loss curve, with every op of it running there."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch

from .models import MODELS, OPTIMIZERS, losses


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_twenty_steps_follow_the_cpu(npu, model, optimizer):
    before = torch.npu.fallbacks()
    here, there = losses(model, optimizer, "cpu", 20), losses(model, optimizer, "npu", 20)
    assert there == pytest.approx(here, rel=2e-5, abs=2e-6)
    assert here[-1] < here[0]
    assert torch.npu.fallbacks() == before, "these models need nothing from the CPU"
