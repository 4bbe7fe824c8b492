"""What of a thread's time is waiting for a backward pass on another thread."""

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.backward_waits import backward_waits
from mindtorch_v2.profiler.store.store import EventStore

NODE = "autograd::engine::evaluate_function: MmBackward0"


def recording(engine_thread):
    """A step of 1000 ns with a forward op of 100 and a backward pass of 400 with a short gap in it, while an op runs for 50."""
    rows = [
        {"name": "aten::mm", "start": 100, "end": 200, "thread": 1},
        {"name": "aten::add", "start": 350, "end": 400, "thread": 1},
        {"name": "train.py(3): step", "start": 300, "end": 800, "thread": 1, "kind": observer.PYTHON},
        {"name": "ProfilerStep#1", "start": 0, "end": 1000, "thread": 1, "kind": observer.STEP},
        {"name": NODE, "start": 300, "end": 500, "thread": engine_thread, "kind": observer.ENGINE, "fwd_thread": 1, "seq": 1},
        {"name": NODE, "start": 510, "end": 700, "thread": engine_thread, "kind": observer.ENGINE, "fwd_thread": 1, "seq": 0},
    ]
    return EventStore.from_rows(rows)


def by_name(store):
    found = {}
    for name, wait in zip(store.name.tolist(), backward_waits(store).tolist(), strict=True):
        found[store.names[name]] = found.get(store.names[name], 0) + wait
    return found


def test_the_innermost_call_waits_except_while_an_op_runs():
    assert by_name(recording(2)) == {
        "aten::mm": 0,
        "aten::add": 0,
        "train.py(3): step": 400 - 50,
        "ProfilerStep#1": 0,
        NODE: 0,
    }


def test_a_backward_pass_on_the_same_thread_is_waited_for_by_none():
    assert not any(by_name(recording(1)).values())
