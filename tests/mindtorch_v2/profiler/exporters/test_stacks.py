"""Collapsed stacks: Python's own time is in them, and a recording without stacks is refused."""

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.exporters import stacks
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.results.loaded import load
from mindtorch_v2.profiler.store.store import EventStore


def calls(with_stacks):
    """main() for 100 us calls f() for 60, which calls an op for 20 and a builtin ten times for 500 ns."""
    caller = ("a.py(9): main",)
    rows = [
        {
            "name": "aten::mm",
            "start": 30_000,
            "end": 50_000,
            "stack": ("a.py(4): f", *caller) if with_stacks else ("a.py(3): f", "a.py(8): main"),
        },
        *(
            {
                "name": "<built-in len>",
                "start": 60_000 + at * 1000,
                "end": 60_500 + at * 1000,
                "kind": observer.PYTHON,
                "stack": ("a.py(5): f", *caller) if with_stacks else None,
            }
            for at in range(10)
        ),
        {
            "name": "a.py(3): f",
            "start": 20_000,
            "end": 80_000,
            "kind": observer.PYTHON,
            "stack": caller if with_stacks else None,
        },
        {"name": "a.py(8): main", "start": 0, "end": 100_000, "kind": observer.PYTHON, "stack": None},
    ]
    return EventStore.from_rows(rows)


def lines(store, path, **options):
    stacks.export(store, path, **options)
    return dict(line.rsplit(" ", 1) for line in path.read_text().splitlines())


@pytest.mark.parametrize("with_stacks", [True, False])
def test_lines_add_up_to_the_whole_time(tmp_path, with_stacks):
    """Calls of which the recording has the line they were made from, and calls of which it only has the functions around."""
    found = lines(calls(with_stacks), tmp_path / "s.txt")
    assert sum(int(line.rsplit(" ", 1)[1]) for line in (tmp_path / "s.txt").read_text().splitlines()) == 100
    assert found["a.py(8):_main"] == "40"
    if with_stacks:
        assert found["a.py(9):_main;a.py(3):_f"] == "35" and found["a.py(9):_main;a.py(5):_f;<built-in_len>"] == "5"
        assert found["a.py(9):_main;a.py(4):_f"] == "20"
    else:
        # The op is in the same frames as the rest of f().
        assert found["a.py(8):_main;a.py(3):_f;<built-in_len>"] == "5"
        assert (tmp_path / "s.txt").read_text().count("a.py(8):_main;a.py(3):_f 35\n") == 1


def test_a_recording_without_stacks_is_refused(tmp_path, capsys):
    store = EventStore.from_rows([{"name": "aten::mm", "start": 0, "end": 9000}])
    saved.save(store, tmp_path / "a.mtp")
    for write in (
        lambda: stacks.export(store, tmp_path / "s.txt"),
        lambda: load(tmp_path / "a.mtp").export_stacks(tmp_path / "s.txt"),
    ):
        with pytest.raises(ValueError, match="no stacks: record it with"):
            write()
    assert main(["convert", str(tmp_path / "a.mtp"), "--to", "collapsed"]) == 3
    assert "no stacks" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.mtp"]
