"""What-if on made-up recordings with exact times, and virtual speed-ups by a clock that is made up, too."""

from __future__ import annotations

import json
import math

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.what_if import WhatIf
from mindtorch_v2.profiler.cli.main import main as mtprof
from mindtorch_v2.profiler.cli.virtual_speedup import Kind, Listening, Slowdown, SpeedupSession
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.store.store import EventStore

STEP, RUNTIME, KERNEL, PYTHON = observer.STEP, observer.RUNTIME, observer.KERNEL, observer.PYTHON


def one_thread():
    """Two steps of 100: an op of 40 with one of 30 in it, then an op of 20; Python in between."""
    rows = []
    for step in range(2):
        at = step * 100
        rows += [
            {"name": "aten::inner", "start": at + 15, "end": at + 45},
            {"name": "aten::outer", "start": at + 10, "end": at + 50},
            {"name": "aten::other", "start": at + 60, "end": at + 80},
            {"name": f"ProfilerStep#{step}", "kind": STEP, "start": at, "end": at + 100},
        ]
    return EventStore.from_rows(rows)


def with_device(kernel):
    """A launch at 10, a kernel of so many from 20 on, an op of the host from 20 to 60, and a wait for both."""
    end = 20 + kernel
    return EventStore.from_rows(
        [
            {"name": "cudaLaunchKernel", "kind": RUNTIME, "start": 5, "end": 15, "correlation": 1},
            {"name": "aten::mm", "start": 0, "end": 20},
            {"name": "aten::cpu", "start": 20, "end": 60},
            {"name": "cudaDeviceSynchronize", "kind": RUNTIME, "start": 60, "end": max(61, end + 1)},
            {
                "name": "gemm",
                "kind": KERNEL,
                "stream": 7,
                "device_type": 1,
                "device_index": 0,
                "start": 20,
                "end": end,
                "launch_thread": 1,
                "launch_ns": 10,
                "correlation": 1,
            },
        ]
    )


def two_threads():
    """The main thread waits in Python while another runs an op from 20 to 80."""
    return EventStore.from_rows(
        [
            {"name": "aten::before", "start": 0, "end": 10},
            {"name": "train.py(1): main", "kind": PYTHON, "start": 0, "end": 100},
            {"name": "aten::backward", "thread": 2, "start": 20, "end": 80},
        ]
    )


@pytest.mark.parametrize(
    "store, name, factor, before, after",
    [
        (one_thread(), "aten::outer", 2, 100, 80),  # with what it calls
        (one_thread(), "aten::inner", 3, 100, 80),
        (one_thread(), "aten::o*", math.inf, 100, 40),
        (with_device(100), "gemm", 2, 121, 71),  # the device is what all wait for
        (with_device(100), "aten::cpu", 2, 121, 121),  # it runs beside the kernel
        (with_device(100), "aten::mm", 2, 121, 66),  # with the kernel that it launched: at 5 and 10 long
        (with_device(10), "gemm", 2, 61, 61),  # done long before it is waited for
        (with_device(100), "gemm", 10, 121, 60),  # then the host is the limit
        (two_threads(), "aten::backward", 2, 100, 70),
        (two_threads(), "aten::before", 2, 100, 95),
    ],
)
def test_predictions(store, name, factor, before, after):
    graph = WhatIf(store)
    found = graph.faster(graph.matching([name]), factor)
    assert (round(found.before_ns), round(found.after_ns)) == (before, after)


def test_the_critical_path():
    on_path = {one.name: one.path_ns for one in WhatIf(one_thread()).critical_path()}
    assert on_path == {"aten::inner": 60, "aten::outer": 20, "aten::other": 40, "(between events)": 80}
    assert "aten::cpu" not in {one.name for one in WhatIf(with_device(100)).critical_path()}
    assert "gemm" in {one.name for one in WhatIf(with_device(100)).critical_path()}


def test_command(tmp_path, capsys):
    path = str(tmp_path / "p.mtp")
    saved.export(one_thread(), path)
    assert mtprof(["what-if", path, "--op", "aten::outer", "--faster", "2x", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["per"], answer["time_ns"], answer["path_ns"]) == ("a step", 40, 40)
    assert answer["predictions"][0]["change"] == pytest.approx(0.2)
    assert mtprof(["what-if", path]) == 0
    assert "aten::inner" in capsys.readouterr().out
    assert mtprof(["what-if", path, "--op", "nothing"]) == 2
    with pytest.raises(SystemExit):
        mtprof(["what-if", path, "--op", "aten::outer", "--faster", "0.5x"])


class Clock:
    """A clock that stands still unless told to go on."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now

    def pass_by(self, ns: int) -> None:
        self.now += ns


def test_all_but_the_op_is_slowed_down():
    clock, target = Clock(), observer.op_names.index("aten::gelu")
    other = observer.op_names.index("aten::mul")
    listener = Slowdown("aten::gelu", 3.0, clock, clock.pass_by)
    listener.active = True
    clock.pass_by(10)  # Python
    started = listener.op_started(target, ())
    assert clock.now == 30
    inner = listener.op_started(other, ())
    clock.pass_by(5)  # an op inside of it is part of it
    listener.op_ended(other, inner, None)
    clock.pass_by(2)
    listener.op_ended(target, started, None)
    assert clock.now == 37
    started = listener.op_started(other, ())
    clock.pass_by(4)
    listener.op_ended(other, started, None)
    assert (clock.now, listener.met) == (49, True)


def test_waiting_that_was_too_long_is_made_up_for():
    """Each wait takes 3 more than asked for: 10 and 10 and 1 outside of the op are three times as long, 63, with the last 3."""
    clock = Clock()
    listener = Slowdown("aten::gelu", 3.0, clock, lambda ns: clock.pass_by(ns + 3 if ns else 0))
    listener.active = True
    for spent in (10, 10, 1):
        clock.pass_by(spent)
        listener.catch_up()
    assert clock.now == 63 + 1  # the third wait, of 2, cannot make up for all of the second's 3


def test_listening_to_ops_is_not_part_of_the_outcome():
    """A step of 60 in the op and 40 elsewhere, 30 for listening, a third of it inside the op: twice as fast, it takes 70."""
    clock = Clock()
    session = SpeedupSession("aten::gelu", 2.0, lambda function: None, clock, clock.pass_by, listening=Listening(30, 1 / 3))
    target = observer.op_names.index("aten::gelu")
    for _ in range(30):
        as_is = session._kind is Kind.AS_IS
        clock.pass_by(40 if as_is else 60)
        if as_is:
            clock.pass_by(60)
        else:
            started = session._listener.op_started(target, ())
            clock.pass_by(70)
            session._listener.op_ended(target, started, None)
        session._stepped()
    found = session.outcome()
    assert found is not None and (found.as_is_ns, round(found.virtual_ns)) == (100, 70)


def test_steps_take_turns_and_the_outcome_is_that_of_the_op(monkeypatch):
    """A step of 60 in the op and 40 elsewhere: twice as fast, it takes 70."""
    clock = Clock()
    steps = []

    class Handle:
        def remove(self):
            pass

    def every_step(function):
        steps.append(function)
        return Handle()

    session = SpeedupSession("aten::gelu", 2.0, every_step, clock, clock.pass_by)
    session.start()
    session.stop(failed=False)  # the ops below are told by hand
    target = observer.op_names.index("aten::gelu")
    for _ in range(30):
        clock.pass_by(40)
        started = session._listener.op_started(target, ())
        clock.pass_by(60)
        session._listener.op_ended(target, started, None)
        steps[0]()
    found = session.outcome()
    assert found is not None and found.steps == (10, 9, 9)
    assert (found.as_is_ns, found.virtual_ns, found.ratio) == (100, 70, 0.7)


SCRIPT = """\
import mindtorch_v2 as torch
weight = torch.nn.Parameter(torch.ones(4))
optimizer = torch.optim.SGD([weight], 0.1)
for _ in range({steps}):
    torch.relu(weight).sum().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    "steps, what, code, said",
    [
        (17, "aten::relu=2x", 0, "with aten::relu 2x faster, a step takes"),
        (16, "aten::relu=2x", 4, "16 steps of an optimizer are too few: 17 are needed"),
        (17, "aten::cos=2x", 4, "no op named aten::cos ran"),
    ],
)
def test_run_measures_it(tmp_path, monkeypatch, capsys, steps, what, code, said):
    (tmp_path / "own.py").write_text(SCRIPT.format(steps=steps))
    monkeypatch.chdir(tmp_path)
    assert mtprof(["run", "--virtual-speedup", what, "own.py"]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "own.mtp").exists()
