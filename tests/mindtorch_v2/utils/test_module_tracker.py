"""torch.utils.module_tracker: which modules are being executed."""

from __future__ import annotations

import logging

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.utils.module_tracker import ModuleTracker


class Watched(nn.Module):
    """Notes which modules are being executed, in forward and at its own derivative."""

    def __init__(self, notes):
        super().__init__()
        self.notes = notes

    def forward(self, x):
        self.notes()
        y = x * 2
        y.register_hook(lambda grad: self.notes())
        return y * 3


def watched():
    """A tracker, what it said, and modules to try it on."""
    tracker, said = ModuleTracker(), []
    module = nn.Sequential(nn.Sequential(Watched(lambda: said.append((sorted(tracker.parents), tracker.is_bw)))), nn.ReLU())
    return tracker, said, module


PATH = ["Global", "Sequential", "Sequential.0", "Sequential.0.0"]


def test_forward_and_backward():
    tracker, said, module = watched()
    with tracker as entered:
        assert entered is tracker
        for _ in range(2):
            module(torch.ones(3, requires_grad=True)).sum().backward()
            assert tracker.parents == {"Global"}
    assert said == [(PATH, False), (PATH, True)] * 2


def test_modules_whose_inputs_need_no_gradient_are_left_when_the_pass_ends():
    tracker, said, _ = watched()
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    with tracker:
        made = module(torch.ones(3))
        module[0].weight.register_hook(lambda grad: said.append(sorted(tracker.parents)))
        made.sum().backward()
    assert said == [["Global", "Sequential", "Sequential.0"]]
    assert tracker.parents == {"Global"}


def test_nothing_is_left_behind():
    tracker, said, module = watched()
    with tracker:
        made = module(torch.ones(3, requires_grad=True))
    made.sum().backward()
    module(torch.ones(3, requires_grad=True))
    assert said == [(PATH, False), (["Global"], True), (["Global"], False)]


def test_a_module_that_is_used_twice_is_reported(caplog):
    linear = nn.Linear(4, 4)
    with caplog.at_level(logging.INFO, logger=torch.utils.module_tracker.__name__), ModuleTracker():
        linear(linear(torch.ones(2, 4))).sum().backward()
    assert [record.args for record in caplog.records] == [("Linear", "backward")]
