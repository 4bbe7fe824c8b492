"""Self times by the user's line, and the line that ran between two calls."""

from __future__ import annotations

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.source.code import Source, source_of
from mindtorch_v2.profiler.analysis.source.line_times import line_times
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

TEXT = """\
def score(rows):
    total = sum(rows)
    for row in rows:
        while row > 1:
            row -= 1
    print(total)
    return total


for step in range(3):
    first(step)
    for value in step:
        value += 1
    second(step)
"""


@pytest.mark.parametrize(
    ("before", "after", "line"),
    [
        (2, 6, 3),  # a loop between two calls, the outer one
        (2, 2, 2),
        (6, 7, 7),  # no loop: the arguments of the next call
        (11, 14, 12),
        (14, 11, 11),  # round the loop, in which the next call is the first
        (14, 12, 12),
        (20, 9, 9),  # no loop that both are in
    ],
)
def test_the_line_between_two_calls(before, after, line):
    assert Source(TEXT).line_between(before, after) == line


def test_the_first_line_of_a_function_is_that_of_its_decorator():
    assert Source("@cache\ndef f():\n    return 1\n").functions == {(1, "f"): 3}


def test_a_source_that_cannot_be_read_is_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.py").write_text("def (")
    (tmp_path / "text.txt").write_text("a = 1")
    assert [source_of(name) for name in ("bad.py", "missing.py", "text.txt", "\0.py")] == [None] * 4


MAIN = "work.py(1): main"


def recording():
    """main calls an op on line 3, works for 50, calls sorted on line 6, and a layer that calls an op, on line 7."""
    layer = "mindtorch_v2/nn/modules/linear.py(9): forward"
    at = ("work.py({}): main",)
    return EventStore.from_rows(
        [
            {"name": "aten::mul", "start": 10, "end": 20, "stack": (at[0].format(3),)},
            {
                "name": "<built-in function sorted>",
                "start": 70,
                "end": 90,
                "kind": observer.PYTHON,
                "stack": (at[0].format(6),),
            },
            {"name": "aten::mm", "start": 96, "end": 99, "stack": (layer, at[0].format(7))},
            {"name": layer, "start": 95, "end": 100, "kind": observer.PYTHON, "stack": (at[0].format(7),)},
            {"name": MAIN, "start": 0, "end": 100, "kind": observer.PYTHON},
        ]
    )


def test_times_belong_to_the_users_lines():
    times = line_times(recording())
    by_line = {line: ns for line, ns, _ in times.by_line(times.ns >= 0)}
    # Between lines 3 and 6 without the source: at line 6, or before.
    assert by_line == {"work.py(3)": 10 + 10, "work.py(6)": 50 + 20, "work.py(7)": 5 + 2 + 3}
    python = {line: ns for line, ns, _ in times.by_line(times.is_python)}
    assert python == {"work.py(3)": 10, "work.py(6)": 70, "work.py(7)": 5}
    assert times.after_line[(times.ns == 50)].tolist() == [3]
    assert times.ns.sum() == 100


def test_the_source_tells_the_loop_in_between(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "work.py").write_text(
        "def main():\n    x = y\n    x * 2\n    for _ in x:\n        pass\n    sorted(x)\n    layer(x)\n"
    )
    times = line_times(recording())
    assert {line: ns for line, ns, _ in times.by_line(times.is_python)}["work.py(4)"] == 50


def test_the_engine_between_its_nodes_is_not_the_users_code():
    at = ("work.py(3): main",)
    store = EventStore.from_rows(
        [
            {"name": "evaluate A", "start": 10, "end": 20, "kind": observer.ENGINE, "stack": at},
            {"name": "evaluate B", "start": 40, "end": 50, "kind": observer.ENGINE, "stack": at},
            {"name": MAIN, "start": 0, "end": 60, "kind": observer.PYTHON},
        ]
    )
    times = line_times(store)
    assert sorted(times.ns[times.is_python].tolist()) == [10, 10]


def test_a_quarter_of_each_time_stays_however_much_recording_is_said_to_cost():
    """Ops of a microsecond each, and costs of ten that were measured while the machine was slow."""
    rows = [{"name": "aten::mul", "kind": observer.OP, "start": 2000 * n, "end": 2000 * n + 1000} for n in range(4)]
    costs = {"op": 10_000.0, "scope": 10_000.0, "python": 10_000.0, "inside": 5000.0}
    assert line_times(EventStore.from_rows(rows, options={"calibration": costs})).ns.tolist() == [250] * 4
    costs["inside"] = 100.0
    assert line_times(EventStore.from_rows(rows, options={"calibration": costs})).ns.tolist() == [900] * 4


@pytest.mark.parametrize(
    ("lengths", "usual"),
    [
        ((10, 10, 10, 90), (10, 10, 10, 30)),  # one of many was held up
        ((10, 10, 10, 90, 90), (10, 10, 10, 90, 90)),  # two kinds of work
        ((10, 10, 90), (10, 10, 90)),  # too few to tell
    ],
)
def test_usual_times_leave_out_what_held_up_one_of_many(lengths, usual):
    stack = ("train.py(3): step",)
    rows = [{"name": "aten::mm", "start": 100 * n, "end": 100 * n + ns, "stack": stack} for n, ns in enumerate(lengths)]
    rows = [{**row, "kind": observer.OP} for row in rows]
    assert tuple(line_times(EventStore.from_rows(rows)).usual_ns.tolist()) == usual


def test_usual_times_are_those_of_the_same_inputs():
    """Three small products and a large one on one line, in each of two passes."""
    small, large = (InputInfo(((n, n),), ("float",), ((n, 1),), (None,)) for n in (4, 400))
    rows = [
        {"name": "aten::mm", "kind": observer.OP, "start": 100 * n, "end": 100 * n + (90 if n % 4 == 0 else 10)}
        | {"stack": ("train.py(3): step",), "inputs": large if n % 4 == 0 else small}
        for n in range(8)
    ]
    assert sorted(line_times(EventStore.from_rows(rows)).usual_ns.tolist()) == [10] * 6 + [90] * 2
