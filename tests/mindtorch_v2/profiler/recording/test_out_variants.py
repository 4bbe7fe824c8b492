"""Calls with `out=` are shown under the overload that torch has for them."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.profiler import _ExperimentalConfig
from mindtorch_v2.profiler.recording.op_facts import out_overload

NAMED = {"experimental_config": _ExperimentalConfig(capture_overload_names=True)}
x = torch.ones(3, 3)


def made(*shape, dtype=torch.float32):
    return torch.empty(shape, dtype=dtype)


# a call, and torch 2.13's overload of its outermost op
CASES = [
    (lambda out: torch.add(x, x, out=out), made(3, 3), "out"),
    (lambda out: torch.exp(x, out=out), made(3, 3), "out"),
    (lambda out: torch.sum(x, 0, out=out), made(3), "IntList_out"),
    (lambda out: torch.mean(x, 0, out=out), made(3), "out"),
    (lambda out: torch.max(x, 0, out=out), (made(3), made(3, dtype=torch.int64)), "dim_max"),
    (lambda out: torch.sort(x, out=out), (made(3, 3), made(3, 3, dtype=torch.int64)), "values"),
    (lambda out: torch.pow(x, 2, out=out), made(3, 3), "Tensor_Scalar_out"),
    (lambda out: torch.eq(x, x, out=out), made(3, 3, dtype=torch.bool), "Tensor_out"),
    (lambda out: torch.div(x, x, rounding_mode="floor", out=out), made(3, 3), "out_mode"),
    (lambda out: torch.cat([x, x], out=out), made(6, 3), "out"),
    (lambda out: torch.zeros(3, out=out), made(3), "out"),
]


@pytest.mark.parametrize(("call", "out", "overload"), CASES)
def test_overloads(call, out, overload):
    with profile(**NAMED) as prof:
        call(out)
    assert [event.overload_name for event in prof.events() if event.cpu_parent is None] == [overload]


@pytest.mark.parametrize(
    ("name", "overload", "expected"),
    [
        ("mul", "Tensor", "out"),
        ("sin", "", "out"),
        ("gt", "Scalar", "Scalar_out"),
        ("tanh_backward", "", "grad_input"),
        ("xlogy", "Tensor", "OutTensor"),
    ],
)
def test_names(name, overload, expected):
    assert out_overload(name, overload) == expected


def test_plain_calls_keep_theirs():
    out = made(3, 3)
    with profile(**NAMED) as prof:
        x + x
        torch.add(x, x, out=out)
        x + x
    rows = prof.key_averages(group_by_overload_name=True)
    assert [(row.key, row.overload_name, row.count) for row in rows] == [("aten::add", "Tensor", 2), ("aten::add", "out", 1)]
    assert [(row.key, row.count) for row in prof.key_averages()] == [("aten::add", 3)]


def test_flops_are_those_of_the_op():
    with profile(with_flops=True, **NAMED) as prof:
        torch.add(x, x, out=made(3, 3))
    (event,) = [event for event in prof.events() if event.name == "aten::add"]
    assert event.flops == 9 and "aten::add" not in prof.ops_without_flops()


def test_results_and_errors_are_unchanged():
    out = made(3, 3)
    with profile(**NAMED):
        assert torch.add(x, x, out=out) is out
        with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
            torch.add(x, x, out=5)
    assert out.tolist() == [[2.0] * 3] * 3


def test_each_recording_has_its_own_and_no_listener_is_left():
    with profile(**NAMED) as outer:
        with profile(**NAMED) as inner:
            torch.add(x, x, out=made(3, 3))
        torch.mul(x, x, out=made(3, 3))
    assert [e.overload_name for e in inner.events() if "empty" not in e.name] == ["out"]
    assert [e.overload_name for e in outer.events() if "empty" not in e.name] == ["out", "out"]
    assert not observer.listeners.out
    with profile():
        assert not observer.listeners.out  # without overload names


def test_other_threads():
    config = _ExperimentalConfig(capture_overload_names=True, profile_all_threads=True)
    out = made(3, 3)
    with profile(experimental_config=config) as prof:
        thread = threading.Thread(target=lambda: torch.add(x, x, out=out))
        thread.start()
        thread.join()
        x + x
    adds = {(event.overload_name, event.thread) for event in prof.events() if event.name == "aten::add"}
    assert {overload for overload, _ in adds} == {"Tensor", "out"} and len(adds) == 2
