"""Steps that optimizers count: all that a step did is in its ProfilerStep, whatever is recorded."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.optim.optimizer import call_after_steps
from mindtorch_v2.profiler import profile, schedule
from mindtorch_v2.profiler.formats.validate import validate
from mindtorch_v2.profiler.store import tree

OPTIONS = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
# Every single option, every pair, none and all.
SETS = [dict.fromkeys(names, True) for count in (0, 1, 2, len(OPTIONS)) for names in itertools.combinations(OPTIONS, count)]


def train(model, optimizer, steps):
    for _ in range(steps):
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def recorded(options, epochs=(3, 3)):
    """Training whose schedule is stepped by the optimizer, from inside of its own frames; without epochs in this function."""
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    prof = profile(schedule=schedule(wait=0, warmup=1, active=4, repeat=1), **options)
    handle = call_after_steps(prof.step)
    try:
        with prof:
            for steps in epochs:
                train(model, optimizer, steps)
            for _ in range(6 - sum(epochs)):
                model(torch.ones(3, 4)).sum().backward()
                optimizer.step()
    finally:
        handle.remove()
    return prof.profiler.store


@pytest.mark.parametrize("options", SETS, ids=lambda options: "+".join(options) or "plain")
def test_the_optimizer_is_in_its_step(options):
    store = recorded(options)
    names = np.array(store.names)[store.name]
    is_step = np.char.startswith(names, "ProfilerStep#")
    steps = np.flatnonzero(is_step)
    assert names[steps].tolist() == [f"ProfilerStep#{number}" for number in (1, 2, 3, 4)]
    # Each begins where the one before it ended: no time is between them, unless another program has the processor just then.
    assert np.median(store.start[steps[1:]] - store.end[steps[:-1]]) < 5_000_000
    for name in ("Optimizer.step#SGD.step", "aten::addmm", "aten::add_"):
        rows = np.flatnonzero(names == name)
        inside = [step for row in rows for step in steps if store.start[step] <= store.start[row] < store.end[step]]
        assert len(inside) == len(rows) >= 4, name
        if not options.get("with_stack"):
            assert tree.nearest_ancestor(store.parent, is_step)[rows].tolist() == inside, name
    assert [problem for problem in validate(store) if problem.severity == "error"] == []


def test_self_times_of_a_thread_are_counted_once():
    store = recorded({"with_stack": True})
    roots = store.parent < 0
    assert store.self_ns.sum() == (store.nested_end - store.start)[roots].sum()
    assert (store.self_ns >= 0).all()


@pytest.mark.parametrize("options", SETS, ids=lambda options: "+".join(options) or "plain")
def test_what_calls_the_next_step_belongs_to_the_last(options):
    """The optimizer's step() has yet to return when the profiler's is called."""
    store = recorded(options, epochs=())
    names = np.array(store.names)[store.name]
    is_step = np.char.startswith(names, "ProfilerStep#")
    above = tree.nearest_ancestor(store.parent, is_step)
    updates = np.flatnonzero(names == "Optimizer.step#SGD.step")
    assert above[updates].tolist() == np.flatnonzero(is_step).tolist()
    assert (store.end[updates] <= store.end[above[updates]]).all()
