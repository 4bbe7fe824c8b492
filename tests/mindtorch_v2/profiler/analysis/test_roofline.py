"""Bytes moved beside FLOPs, of made-up calls, and ceilings measured with a clock that is made up, too."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from mindtorch_v2.profiler.analysis import ceilings
from mindtorch_v2.profiler.analysis.roofline import Point, bytes_moved, roofline
from mindtorch_v2.profiler.cli.main import main as mtprof
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

MACHINE = ceilings.Ceilings("vm", 0.0, 1e9, 4e9, 8e9, 4e9, "1")


def inputs(*tensors):
    """Inputs of tensors given as (dims, type, strides), or of a number."""
    dims, types, strides = zip(*[one if isinstance(one, tuple) else ((), "Scalar", ()) for one in tensors], strict=True)
    return InputInfo(dims, types, strides, (None,) * len(tensors))


SQUARE = ((4, 4), "float", (4, 1))


@pytest.mark.parametrize(
    "name, given, moved",
    [
        ("aten::mul", inputs(SQUARE, SQUARE), 128),
        ("aten::add_", inputs(SQUARE, SQUARE, 1), 192),  # the first is read and written
        ("aten::mul", inputs(((4, 4), "float", (0, 1)), 2), 16),  # expanded: four numbers
        ("aten::sum", inputs(((4, 4), "double", (4, 1))), 128),
        ("aten::cat", inputs((((4,), (2,)), "TensorList", ((1,), (1,))), 0), 24),
        ("aten::t", inputs(SQUARE), 0),  # a view
        ("mine::scale_", inputs(SQUARE), 128),  # an op that is not known here, in place by its name
        ("mine::scale", inputs(((2,), "mine", (1,))), 0),
    ],
)
def test_bytes_of_inputs(name, given, moved):
    assert bytes_moved(EventStore.from_rows([{"name": name, "start": 0, "end": 9, "inputs": given}])).tolist() == [moved]


def store():
    rows = [
        {"name": "aten::t", "start": 1, "end": 5, "inputs": inputs(SQUARE), "module": "net.a"},
        {
            "name": "aten::addmm",
            "start": 10,
            "end": 110,
            "inputs": inputs(SQUARE, SQUARE, SQUARE),
            "flops": 128,
            "module": "net.a",
        },
        {"name": "aten::linear", "start": 0, "end": 120, "inputs": inputs(SQUARE, SQUARE, SQUARE), "module": "net.a"},
        {"name": "aten::clone", "start": 200, "end": 250, "inputs": inputs(SQUARE), "module": "net"},
    ]
    memory = [
        {"time": 50, "bytes": 64, "addr": 1},
        {"time": 210, "bytes": 64, "addr": 2},
        {"time": 220, "bytes": -64, "addr": 1},
    ]
    return EventStore.from_rows(rows, memory)


def test_ops_with_flops_and_those_that_call_no_other_are_counted_once():
    points = roofline(store(), store().flops)
    assert points == [Point("aten::addmm", 1, 100, 128, 256), Point("aten::clone", 1, 50, 0, 128)]
    assert (points[0].intensity, points[0].flops_s, points[1].bytes_s) == (0.5, 1.28e9, 2.56e9)
    assert [point.name for point in roofline(store(), store().flops, "module")] == ["net.a", "net"]
    assert [point.name for point in roofline(store(), store().flops, "shape")] == [
        "aten::addmm [[4, 4], [4, 4], [4, 4]]",
        "aten::clone [[4, 4]]",
    ]


@pytest.mark.parametrize("flops, moved, limit, share", [(1000, 1000, "memory", 1.0), (16_000, 1000, "compute", 2.0)])
def test_the_limit_is_memory_below_the_ridge(flops, moved, limit, share):
    point = Point("op", 1, 1000, flops, moved)
    assert MACHINE.ridge == 8 and MACHINE.attainable(1) == 1e9 and MACHINE.attainable(100) == 8e9
    assert (point.limit(MACHINE), point.share(MACHINE)) == (limit, share)


def test_ceilings_are_those_of_the_fastest_run(monkeypatch, tmp_path):
    monkeypatch.setattr(ceilings, "_COPY_BYTES", 1 << 10)
    monkeypatch.setattr(ceilings, "_CACHED_BYTES", 1 << 9)
    monkeypatch.setattr(ceilings, "_SIDE", 10)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    # Each is measured in several rounds, and in all but one of them the machine is held up.
    slow, usual = [0, 4000, 0, 2000, 0, 8000], [0, 400, 0, 200, 0, 800]
    times = iter(np.cumsum([*slow * 8, *usual * 4, *slow * 8]).tolist())
    found = ceilings.measure(lambda: next(times), least_ns=1)
    assert (found.copy_bytes_s, found.cached_bytes_s) == (2048 / 200e-9, 1024 / 200e-9)
    assert (found.float32_flops_s, found.threads) == (2000 / 200e-9, "3")
    ceilings.save(found, tmp_path / "new" / "ceilings.json")
    assert ceilings.load(tmp_path / "new" / "ceilings.json") == found
    assert ceilings.load(tmp_path / "none.json") is None


@pytest.mark.parametrize("text", ["[]", "{", '{"machine": "x"}', json.dumps({**MACHINE.to_dict(), "copy_bytes_s": 0})])
def test_another_file_is_refused(tmp_path, text):
    (tmp_path / "file.json").write_text(text)
    with pytest.raises(ValueError, match="no file of `mtprof ceilings`"):
        ceilings.load(tmp_path / "file.json")


@pytest.mark.parametrize("load, said", [(0.9, ""), (1.1, "mtprof: the machine is busy (load 1.1, 2 processors)")])
def test_a_busy_machine_is_told(tmp_path, capsys, monkeypatch, load, said):
    monkeypatch.setattr(ceilings, "measure", lambda: MACHINE)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0, 0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert mtprof(["ceilings", "-o", str(tmp_path / "ceilings.json")]) == 0
    assert capsys.readouterr().err.startswith(said) if said else not capsys.readouterr().err


def test_commands(tmp_path, capsys, monkeypatch):
    import mindtorch_v2.profiler.formats.saved as saved

    monkeypatch.setenv("MTPROF_CEILINGS", str(tmp_path / "ceilings.json"))
    path = str(tmp_path / "p.mtp")
    saved.export(store(), path)
    assert mtprof(["ceilings", "--show"]) == 3
    assert mtprof(["roofline", path]) == 0
    assert "`mtprof ceilings` measures" in capsys.readouterr().out
    ceilings.save(MACHINE, tmp_path / "ceilings.json")
    assert mtprof(["ceilings", "--show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ridge"] == 8
    assert mtprof(["roofline", path, "--json", "-n", "1"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["points_in_all"] == 2 and answer["points"][0]["limit"] == "memory"
    assert mtprof(["roofline", path, "--ceilings", str(tmp_path / "none")]) == 2
    saved.export(EventStore.from_rows([{"name": "aten::mm", "start": 0, "end": 9}]), path)
    assert mtprof(["roofline", path]) == 3
    assert "record_shapes" in capsys.readouterr().err
