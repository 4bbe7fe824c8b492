"""What the tests of file formats share."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.store.store import EventStore

FIXTURES = Path(__file__).parent.parent / "fixtures"


@pytest.fixture
def fixtures():
    return FIXTURES


@pytest.fixture
def trace(tmp_path):
    """Writes events as a trace; gives the path."""

    def write(events, name="trace.json", **fields):
        path = tmp_path / name
        text = events if isinstance(events, str) else json.dumps({**fields, "traceEvents": events})
        path.write_text(text)
        return path

    return write


def span(name="a", ts=0.0, dur=1.0, cat="cpu_op", pid=1, tid=1, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


@pytest.fixture(name="span")
def span_fixture():
    return span


@pytest.fixture(scope="module")
def live():
    """A training run of this runtime with shapes, memory, FLOPs and modules."""
    model = nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(record_shapes=True, profile_memory=True, with_flops=True, with_modules=True) as prof:
        prof.add_metadata("note", 'quo"te')
        for _ in range(3):
            with record_function("forward"):
                loss = nn.functional.cross_entropy(model(torch.randn(4, 6)), torch.tensor([0, 1, 2, 0]))
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    return prof


@pytest.fixture
def made_up():
    """Two threads, a stream, stacks, modules, inputs: everything a store can hold."""
    from mindtorch_v2._dispatch import observer
    from mindtorch_v2.profiler.store.store import InputInfo

    inputs = InputInfo(
        ((2, 3), ((1,), (2, 2)), ()),
        ("float", "TensorList", "Scalar"),
        ((3, 1), ((1,), (2, 1)), ()),
        (None, None, complex(1, -2)),
    )
    rows = [
        {
            "name": "aten::mul",
            "start": 120,
            "end": 140,
            "inputs": inputs,
            "stack": ("f.py(3): g", "f.py(9): <module>"),
            "module": "Net.fc",
            "overload": "Tensor",
            "seq": 4,
            "step": 2,
            "flops": 7,
        },
        {"name": "cudaLaunchKernel", "kind": observer.RUNTIME, "start": 125, "end": 128, "correlation": 9},
        {"name": "forward", "kind": observer.SCOPE, "start": 110, "end": 190},
        {"name": "MulBackward0", "kind": observer.BACKWARD, "start": 300, "end": 350, "thread": 77, "seq": 4, "fwd_thread": 1},
        {"name": "na\ud800me \u20ac \"'\n", "start": 400, "end": 400},
        {
            "name": "kernel",
            "kind": observer.KERNEL,
            "start": 130,
            "end": 170,
            "stream": 7,
            "device_type": 1,
            "device_index": 0,
            "correlation": 9,
            "launch_thread": 1,
            "launch_ns": 126,
        },
    ]
    memory = [
        {"time": 130, "bytes": 512, "addr": 1 << 40},
        {"time": 500, "bytes": -512, "addr": 1 << 40},
        {"time": 320, "bytes": 64, "addr": 99, "thread": 77},
    ]
    return EventStore.from_rows(
        rows,
        memory,
        options={"profile_memory": True, "use_device": "cuda"},
        metadata={"distributedInfo": {"rank": 3}},
        trace_id="AB",
        clock_start_ns=100,
        clock_end_ns=600,
        wall_start_ns=1_700_000_000_000_000_123,
        pid=4321,
    )
