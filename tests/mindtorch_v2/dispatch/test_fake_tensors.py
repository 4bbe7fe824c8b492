"""Fake tensors answer as PyTorch 2.13's did (see recorded_fake_tensors.py); what only this runtime does stands below."""

from __future__ import annotations

import json
import pickle

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import as_torch
from mindtorch_v2._subclasses import FakeTensorMode
from mindtorch_v2.utils.flop_counter import FlopCounterMode

from .recorded_fake_tensors import ALLOWED, INSIDE, OUTSIDE, RECORDED, answers

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def told():
    with as_torch.installed():
        return answers(torch)


@pytest.mark.parametrize(("part", "expressions"), [("outside", OUTSIDE), ("inside", INSIDE), ("allowed", ALLOWED)])
def test_answers_are_torchs(told, part, expressions):
    expected = json.loads(RECORDED.read_text())[part]
    differ = [
        f"{expression}: {ours}, torch has {theirs}"
        for expression, ours, theirs in zip(expressions, told[part], expected, strict=True)
        if ours != theirs
    ]
    assert not differ, "\n".join(differ)


def test_any_device_can_be_moved_to():
    with FakeTensorMode():
        model = torch.nn.Linear(3, 4, device="cuda")
        moved = torch.ones(2, 3).to("cuda:1")
        assert str(model.weight.device) == "cuda:0" and str(moved.device) == "cuda:1"
        assert str(model(moved.to("cuda")).device) == "cuda:0"
        with pytest.raises(RuntimeError, match=r"found at least two devices, cuda:0 and cuda:1!"):
            model(moved)
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.ones(2).to("cuda")


def test_products_of_tensors_without_data_are_counted():
    with FakeTensorMode(), FlopCounterMode(display=False) as counter:
        torch.mm(torch.ones(200, 300), torch.ones(300, 400))
    assert counter.get_total_flops() == 2 * 200 * 300 * 400


def test_autocast_lowers_what_it_would_lower():
    with FakeTensorMode(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.nn.Linear(3, 4)(torch.ones(2, 3)).dtype is torch.bfloat16


def test_custom_op_needs_a_rule_of_its_own():
    @torch.library.custom_op("fake_tensors::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    for unknown in (FakeTensorMode().from_tensor(torch.ones(3)), torch.ones(3, device="meta")):
        with pytest.raises(RuntimeError, match="Please use `twice.register_fake` to add an fake impl"):
            twice(unknown)
    twice.register_fake(torch.empty_like)
    assert twice(FakeTensorMode().from_tensor(torch.ones(3))).shape == (3,)


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (lambda: FakeTensorMode(shape_env=object()), "shape_env="),
        (lambda: FakeTensorMode(export=True), "export=True"),
        (lambda: FakeTensorMode().from_tensor(torch.ones(2), symbolic_context=object()), "symbolic_context"),
        (lambda: pickle.dumps(FakeTensorMode().from_tensor(torch.ones(2))), "FakeTensor cannot be pickled"),
    ],
)
def test_refusals_name_themselves_and_the_page(refused, words):
    with pytest.raises(NotImplementedError, match=words) as raised:
        refused()
    assert "docs/compatibility.md" in str(raised.value)
