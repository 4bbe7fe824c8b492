"""Logs of streamed files with valid checksums and contents that were made to hurt: few bytes never mean much work.

Where logs are too much, every op of the file is still there, and a note says what is not.
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.assembly.columns import Tables, module_columns
from mindtorch_v2.profiler.assembly.python_rows import BUILTIN, Target, python_rows
from mindtorch_v2.profiler.formats import TraceError, _bounds, saved
from mindtorch_v2.profiler.formats.detect import read_any
from mindtorch_v2.profiler.formats.saved_file import rebuild
from mindtorch_v2.profiler.formats.saved_file.frames import END, LOG, META, TABLE, frame, header
from mindtorch_v2.profiler.formats.saved_file.layout import (
    BEGINS,
    ENDS,
    GC_LOG,
    LOG_HEAD,
    MODULE_LOG,
    OUT_LOG,
    PYTHON_LOG,
    STEP_LOG,
    STOPS,
    TABLE_HEAD,
    TASK_LOG,
    TOUCHED_LOG,
)
from mindtorch_v2.profiler.formats.validate import validate_store
from mindtorch_v2.profiler.recording.asyncio_lanes import lanes_of_rows
from mindtorch_v2.profiler.recording.module_calls import ModuleInfo
from mindtorch_v2.profiler.recording.python_calls.stream import CallSegment
from mindtorch_v2.profiler.views.event_list import EventList

FUNCTION = ["f.py(1): f", "f.py", "f", 1, 0, 0, [[n, n + 1] for n in range(100)]]
OPS = 10
MOST_SECONDS = 20  # some of it on a machine with much to do; without bounds these take minutes, or all memory


def streamed(path, tables, logs, rows=None, options=None):
    """A streamed file. logs: number, thread and columns, each of which may be one number."""
    writer = saved.Writer(recorded=True)
    count = len(rows["start"]) if rows else OPS
    row_columns = {
        "name": np.zeros(count, int),
        "kind": np.zeros(count, int),
        "tid": np.zeros(count, int),
        "start": np.arange(count) * 10,
        "end": np.arange(count) * 10 + 5,
        **(rows or {}),
    }
    blocks = [writer.header(), writer.meta({"logs": True, "options": options or {"with_modules": True}})]
    for name, entries in {"names": ["a"], "threads": [(1, "t")], **tables}.items():
        blocks += writer.table(name, entries)
    for number, thread, *columns in logs:
        length = max(map(np.size, columns))
        blocks += writer.log(number, thread, np.column_stack([np.broadcast_to(c, length) for c in columns]).astype(np.int64))
    path.write_bytes(b"".join([*blocks, *writer.rows(row_columns), writer.end()]))
    return path


def answered(path):
    """Read the file and ask for everything, within bounds."""
    began = time.process_time()
    store, recovery = read_any(path)
    assert not [problem for problem in validate_store(store) if problem.check in ("tables", "queries")]
    events = EventList.from_store(store)
    events.key_averages(True, 2).table(row_limit=3)
    assert len(list(events)) == len(events)
    assert time.process_time() - began < MOST_SECONDS
    return store, recovery


def calls(what, places=0, threads=1, function=FUNCTION):
    what = np.asarray(what)
    return {"calls": [function], "threads": [(n, "t") for n in range(threads)]}, [
        (PYTHON_LOG, n, what, places, np.arange(len(what))) for n in range(threads)
    ]


def modules(what, infos=(1, "A", 0, ()), count=1, threads=1):
    what = np.asarray(what)
    return {"module_infos": [infos] * count, "threads": [(n, "t") for n in range(threads)]}, [
        (MODULE_LOG, n, what, np.arange(len(what))) for n in range(threads)
    ]


TOWER = [BEGINS, *[0] * 2100]
TOO_MUCH = {
    "a thread that is traced in many segments": (lambda: calls([BEGINS] * 270_000), "too many segments"),
    "modules that are traced in many segments": (lambda: modules([BEGINS] * 270_000), "too many segments"),
    "threads that are traced in many segments together": (lambda: calls([BEGINS] * 7000, threads=40), "too many segments"),
    "a tower of calls": (lambda: calls(TOWER), "nested too deeply"),
    "a tower of calls from below the ground": (lambda: calls([BEGINS, *[ENDS] * 3000, *[0] * 2900]), "nested too deeply"),
    "a tower of frames that were open": (lambda: calls(TOWER, [3000, *[0] * 2100]), "nested too deeply"),
    "a tower of modules": (lambda: modules(TOWER), "nested too deeply"),
    "a tower of modules below the ground": (lambda: modules([*[BEGINS] * 3000, *[0] * 2900]), "nested too deeply"),
    "distinct stacks of many frames": (
        lambda: calls([BEGINS, *[0] * 2000, *[0, ENDS] * 20_000], [0, *[0] * 2000, *np.repeat(np.arange(20_000), 2)]),
        "stacks are too large",
    ),
    "distinct stacks of many threads": (
        lambda: calls([BEGINS, *[0] * 2000, *[0, ENDS] * 1000], [0, *[0] * 2000, *np.repeat(np.arange(1000), 2)], threads=6),
        "stacks are too large",
    ),
    "a long file name in every stack": (
        lambda: calls(
            [BEGINS, 0, *[0, ENDS] * 1000],
            [0, 0, *np.repeat(np.arange(1000), 2)],
            function=["t", "f" * (1 << 18), *FUNCTION[2:]],
        ),
        "stacks are too large",
    ),
    "a long name on every floor of a tower": (lambda: modules(TOWER[:1500], (1, "A" * 1000, 0, ())), "paths of modules"),
    "many modules on many threads": (lambda: modules([BEGINS, 0], count=50_000, threads=2000), "too many modules"),
    "many threads": (lambda: calls([BEGINS, 0], threads=4200), "too many threads"),
    "a module that is not there": (lambda: modules([BEGINS, 5]), "not known"),
    "a mark of modules that is none": (lambda: modules([BEGINS, -4]), "not known"),
    "a call that is not there": (lambda: calls([BEGINS, 5]), "not known"),
    "a mark of calls that is none": (lambda: calls([BEGINS, -9]), "not known"),
    "a task without a name": (
        lambda: (
            {},
            [(TASK_LOG, 0, [0, 15, 30, 45], [7, 8, 7, 8])],
            {"kind": np.full(3, observer.SCOPE), "start": np.array([0, 16, 31]), "end": np.array([40, 90, 91])},
        ),
        "are lost",
    ),
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_logs_that_lead_to_too_much_are_left_out(tmp_path, what):
    make, reason = TOO_MUCH[what]
    tables, logs, *rows = make()
    store, recovery = answered(streamed(tmp_path / "f", tables, logs, *rows))
    assert [note for note in recovery.notes if reason in note], recovery
    assert (store.kind != observer.PYTHON).sum() == len(store) == (len(rows[0]["start"]) if rows else OPS)


def test_many_tasks_with_many_rows_are_too_much(tmp_path):
    count = 120_000
    rows = {"kind": np.full(count, observer.SCOPE), "start": np.arange(count), "end": np.arange(count) + 3}
    tables = {"tasks": [[n, "x"] for n in range(5000)]}
    _, recovery = answered(streamed(tmp_path / "f", tables, [(TASK_LOG, 0, np.arange(count), np.arange(count) % 5000)], rows))
    assert [note for note in recovery.notes if "too many tasks" in note]


@pytest.mark.parametrize(
    "kind, make, reason",
    [
        (observer.OP, modules, "so many rows"),  # each op looks for the module around it
        (observer.SCOPE, calls, "so many rows"),  # each range is fitted into the calls around its ends
    ],
)
def test_no_long_way_up_for_each_of_many_rows(tmp_path, kind, make, reason):
    count = 300_000
    tables, logs = make([BEGINS, *[0] * 2000, *[ENDS] * 2000])
    start = np.arange(count) + 5000
    rows = {"kind": np.full(count, kind), "start": start, "end": start + 1}
    store, recovery = answered(streamed(tmp_path / "f", tables, logs, rows))
    assert [note for note in recovery.notes if reason in note] and len(store) == count


def test_calls_that_make_every_walk_long_are_left_out(tmp_path, monkeypatch):
    """Towers of calls and of modules, each not too high, stand on one another, and many rows are on top."""
    monkeypatch.setattr(_bounds, "_MOST_LEVELS", 1_000_000)
    monkeypatch.setattr(rebuild, "_MOST_WALK", 1_000_000)
    tables, logs = calls([BEGINS, *[0] * 1500])
    more, others = modules([BEGINS, *[0] * 1500])
    others[0] = (*others[0][:3], 2000 + np.arange(1501))
    rows = {"start": 4000 + np.arange(300), "end": 4001 + np.arange(300)}
    store, recovery = answered(streamed(tmp_path / "f", {**tables, **more}, [*logs, *others], rows))
    assert [note for note in recovery.notes if "nested too deeply" in note] and len(store) == 300


# ------------------------------------------------------------------------------ what a file grows to


def table(number, first, count, text):
    return frame(TABLE, TABLE_HEAD.pack(number, first, count) + text)


def constant_log(count):
    column = b"\0\x09\0\0\0" + b"\0" * 9
    return frame(LOG, LOG_HEAD.pack(GC_LOG, 0, count) + column * 3)


GROWING = {
    "entries of logs": lambda: [constant_log(1 << 16)] * 30,
    "rows that are all the same": lambda: saved.Writer().rows(
        dict.fromkeys(("name", "kind", "tid", "start", "end"), np.zeros(6_000_000, int))
    ),
    "tables with gaps": lambda: [table(0, 200_001 * n, 1, b'["a"]') for n in range(1, 60)],
    "a stack of very many frames": lambda: [table(4, 0, 1, b"[[" + b"0," * 8_000_000 + b"0]]")],
    "very many lists": lambda: [table(4, 0, 1, b"[" + b"[]," * 8_000_000 + b"[]]")],
    "meta data": lambda: [frame(META, b'{"metadata": {"a": [' + b"[]," * 8_000_000 + b"[]]}}")],
    "an end": lambda: [frame(END, b"[" + b"[]," * 8_000_000 + b"[]]")],
}


@pytest.mark.parametrize("what", GROWING)
def test_what_a_small_file_grows_to_is_bounded(tmp_path, what):
    path = tmp_path / "f"
    path.write_bytes(b"".join([header(), *GROWING[what]()]))
    assert path.stat().st_size < 100_000
    began = time.process_time()
    with pytest.raises(TraceError, match="unpacks to more"):
        read_any(path)
    assert time.process_time() - began < MOST_SECONDS


@pytest.mark.parametrize(
    "body",
    [
        LOG_HEAD.pack(GC_LOG, 0, 5),  # no columns
        LOG_HEAD.pack(GC_LOG, 0, 5) + (b"\0\x09\0\0\0" + b"\0" * 9) * 1000,  # too many
        LOG_HEAD.pack(GC_LOG, 0, 0) + (b"\0\x09\0\0\0" + b"\0" * 9) * 3,  # of nothing
        LOG_HEAD.pack(GC_LOG, 0, 1 << 20) + (b"\0\x09\0\0\0" + b"\0" * 9) * 3,
        LOG_HEAD.pack(GC_LOG, 0, 5) + b"\0\xff\xff\xff\xff",
        LOG_HEAD.pack(99, 0, 5),
        LOG_HEAD.pack(GC_LOG, 0, 5)[:-1],
        b"",
    ],
)
def test_a_frame_that_is_no_log_is_left_out(tmp_path, body):
    path = streamed(tmp_path / "f", {}, [])
    path.write_bytes(path.read_bytes() + frame(LOG, body))
    store, recovery = answered(path)
    assert len(store) == OPS and not recovery.intact


# ------------------------------------------------------------------------------ numbers that are out of place

ANY = np.array([0, -1, 5, -(1 << 63), (1 << 63) - 1, 1 << 40, -7, 3])


@pytest.mark.parametrize(
    "number, columns",
    [
        (PYTHON_LOG, ([BEGINS, 0, 0, ENDS, 0, ENDS, ENDS, STOPS], ANY, ANY)),
        (PYTHON_LOG, ([BEGINS, 0, ENDS, STOPS, BEGINS, ENDS, ENDS, 0], [3, *[-(1 << 60)] * 7], ANY[::-1])),
        (PYTHON_LOG, ([ENDS, ENDS, 0, STOPS, STOPS, 0, BEGINS, BEGINS], ANY, ANY)),
        (MODULE_LOG, ([BEGINS, 0, 0, ENDS, 0, ENDS, ENDS, STOPS], ANY)),
        (MODULE_LOG, ([ENDS, 0, STOPS, ENDS, BEGINS, 0, 0, BEGINS], ANY[::-1])),
        (TOUCHED_LOG, (ANY, ANY, ANY, ANY)),
        (GC_LOG, (ANY, ANY, ANY)),
        (OUT_LOG, (ANY, ANY)),
        (STEP_LOG, (ANY, ANY)),
        (TASK_LOG, (ANY, ANY)),
    ],
)
@pytest.mark.parametrize("thread", [0, 1, (1 << 32) - 1])
def test_numbers_of_any_size_do_no_harm(tmp_path, number, columns, thread):
    tables = {"calls": [FUNCTION], "module_infos": [[1, "A", 0, []]], "overloads": ["x"], "tasks": [[5, "x"]]}
    answered(streamed(tmp_path / "f", tables, [(number, thread, *columns)]))


def test_calls_and_modules_end_no_earlier_than_they_began(tmp_path):
    """Also when the file says that the recording ended before, and times go back."""
    tables, logs = calls([BEGINS, 0, 0, ENDS, 0])
    more, others = modules([BEGINS, 0, 0])
    logs[0] = (*logs[0][:4], [500, 600, 700, 650, 620])
    others[0] = (MODULE_LOG, 0, others[0][2], [500, 600, 550])
    path = streamed(tmp_path / "f", {**tables, **more}, [*logs, *others], options={"with_modules": True, "with_stack": True})
    data = path.read_bytes()
    path.write_bytes(data + saved.Writer(recorded=True).meta({"logs": True, "clock_end_ns": 100}))
    store, _ = answered(path)
    assert (store.kind == observer.PYTHON).sum() == 3 and (store.kind == observer.MODULE).sum() == 2
    assert (store.end >= store.start).all()


def test_returns_without_calls_are_passed_over(tmp_path):
    tables, logs = calls([BEGINS, ENDS, ENDS, 0, ENDS, ENDS, 0, 0, ENDS, ENDS])
    store, recovery = answered(streamed(tmp_path / "f", tables, logs))
    rows = store.kind == observer.PYTHON
    assert recovery.intact
    assert sorted(zip(store.start[rows].tolist(), store.end[rows].tolist(), strict=True)) == [(3, 4), (6, 9), (7, 8)]


def test_frames_that_were_open_and_are_none(tmp_path):
    tables, logs = calls([BEGINS, 0, ENDS, 0, ENDS], [3, 0, 0, 0, 0])
    store, recovery = answered(streamed(tmp_path / "f", tables, logs))
    assert recovery.intact and (store.kind == observer.PYTHON).sum() == 2


def test_modules_that_are_lost_have_one_path(tmp_path):
    """A damaged table leaves several entries that read the same; no row points beyond them."""
    rows = {"start": np.arange(4) * 10, "end": np.arange(4) * 10 + 5, "module": np.array([0, 1, 2, -1])}
    store, _ = answered(streamed(tmp_path / "f", {"modules": ["<lost>", "<lost>", "Net"]}, [], rows))
    assert [store.modules[at] if at >= 0 else None for at in store.module.tolist()] == ["<lost>", "<lost>", "Net", None]


# ------------------------------------------------------------------------------ work that grows with what there is, no faster


def test_scopes_of_tasks_that_are_all_open_together():
    count = 60_000
    moments = np.arange(count)
    began = time.process_time()
    turns = np.column_stack([moments, moments % 50 + 1])
    lanes = lanes_of_rows(turns, np.full(count, observer.SCOPE), moments, moments + count)
    assert time.process_time() - began < MOST_SECONDS
    assert np.array_equal(lanes, moments % 50 + 1)


def test_many_modules_with_paths_of_their_own():
    count = 20_000
    infos = [ModuleInfo(n, f"M{n}", 0, {}) for n in range(count)]
    table = np.column_stack([np.arange(count), np.arange(count) * 2, np.arange(count) * 2 + 1])
    began = time.process_time()
    columns = module_columns(infos, table, tables := Tables())
    assert time.process_time() - began < 3
    assert list(tables.modules) == [f"M{n}" for n in range(count)] and columns["path"].tolist() == list(range(count))


def test_many_segments_of_calls():
    """Each segment closes the calls that the one before left open, without a look at all earlier ones."""
    called = Target(BUILTIN, "f", None, False, True)
    segments = [CallSegment(at, at + 9, [called], [0], [called, 0, at + 1, None, 0, at + 2]) for at in range(0, 200_000, 10)]
    began = time.process_time()
    rows = python_rows(segments, 10**6)
    assert time.process_time() - began < 5
    assert len(rows.start) == 40_000 and (rows.end - rows.start).tolist()[:2] == [1, 9]
