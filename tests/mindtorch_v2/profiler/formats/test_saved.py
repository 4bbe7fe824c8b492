"""Saved profiles: everything comes back as it was, few bytes an event, and a torn file up to where it is torn."""

from __future__ import annotations

import json
import os
import struct
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.formats import TraceError, saved
from mindtorch_v2.profiler.formats.detect import read_any
from mindtorch_v2.profiler.formats.saved_file import coding
from mindtorch_v2.profiler.formats.saved_file import frames as _frames
from mindtorch_v2.profiler.formats.saved_file.layout import STEP_LOG
from mindtorch_v2.profiler.store.store import COLUMNS, MEMORY_COLUMNS, EventStore, InputInfo, ThreadInfo

TABLES = ("names", "threads", "input_infos", "stacks", "modules", "overloads")
META = ("metadata", "trace_id", "clock_start_ns", "clock_end_ns", "wall_start_ns", "segments", "pid")


def assert_same(first, second):
    for column in (*COLUMNS, *MEMORY_COLUMNS, "mem_event", "parent", "self_ns", "launcher", "call_stack"):
        mine, theirs = getattr(first, column), getattr(second, column)
        assert mine.dtype == theirs.dtype, column
        assert np.array_equal(mine, theirs), column
    for table in TABLES:
        assert list(getattr(first, table)) == list(getattr(second, table)), table
    for name in META:
        assert getattr(first, name) == getattr(second, name), name


def saved_at(store, tmp_path, name="profile.mtp"):
    path = tmp_path / name
    saved.save(store, path)
    return path


# ------------------------------------------------------------------------------ there and back


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-3, 3), st.integers(10**15, 10**15 + 400))))
def test_any_column_comes_back(numbers):
    column = np.array(numbers, np.int64)
    assert np.array_equal(coding.decode(coding.encode(column), len(column)), column)


@pytest.mark.parametrize(
    "numbers, most",
    [
        (np.full(1000, 7), 9),
        (np.arange(1000) % 200, 1010),
        (np.arange(1000) * 3 + 10**15, 1020),
        (np.arange(0, 10**6, 10**3), 1020),
    ],
)
def test_a_column_takes_as_few_bytes_as_it_can(numbers, most):
    assert len(coding.encode(numbers)) <= most


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\7abc", b"\1" + b"\0" * 8 + b"\3", b"\1" + b"\0" * 8 + b"\2" + b"xxx", b"\2" + b"\0" * 17]
)
def test_what_is_no_column_is_a_value_error(data):
    with pytest.raises(ValueError):
        coding.decode(data, 4)


def test_everything_a_store_can_hold_comes_back(made_up, tmp_path):
    back, recovery = read_any(saved_at(made_up, tmp_path))
    assert_same(made_up, back)
    assert back.options == made_up.options
    assert recovery.intact and recovery.format == "saved"


def test_a_live_profile_comes_back(live, tmp_path):
    path = tmp_path / "live.mtp"
    live.save(path)
    profile = load(path)
    assert_same_views(live, profile)
    assert profile.store.metadata["note"] == 'quo"te'
    assert live.profiler.store.metadata == {}
    assert all(list(getattr(live.profiler.store, table)) == list(getattr(profile.store, table)) for table in TABLES)


def assert_same_views(first, second):
    for grouping in ((False, 0), (True, 0), (False, 3)):
        assert first.key_averages(*grouping).table() == second.key_averages(*grouping).table()
    assert [event.name for event in first.events()] == [event.name for event in second.events()]


@pytest.mark.parametrize("name", ["mlp_everything.json.gz", "threads.json.gz", "cnn_verbose.json.gz", "gpu_by_hand.json"])
def test_a_torch_trace_comes_back(fixtures, tmp_path, name):
    store = load(fixtures / name).store
    assert_same(store, load(saved_at(store, tmp_path)).store)


def test_recordings_that_were_joined_come_back(made_up, tmp_path):
    later = EventStore.from_rows([{"name": "b", "start": 5, "end": 9}, {"name": "a", "start": 0, "end": 10}], clock_start_ns=3)
    joined = EventStore.joined([made_up, later])
    back = load(saved_at(joined, tmp_path)).store
    assert_same(joined, back)
    assert len(back.segments) == 2


def test_an_empty_recording_comes_back(tmp_path):
    store = EventStore.from_rows([])
    assert_same(store, load(saved_at(store, tmp_path)).store)


def test_more_rows_than_fit_a_frame(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "ROWS_PER_FRAME", 100)
    monkeypatch.setattr(saved, "ENTRIES_PER_FRAME", 7)
    rows = [{"name": f"n{i % 40}", "start": i * 10, "end": i * 10 + 5, "stack": (f"f{i % 30}", "root")} for i in range(1050)]
    store = EventStore.from_rows(rows, [{"time": i * 10 + 1, "bytes": 8, "addr": i} for i in range(350)])
    back, recovery = read_any(saved_at(store, tmp_path))
    assert_same(store, back)
    assert recovery.frames > 20


def training_like(count):
    """Rows and memory with as much chance in them as a training run has, or more."""
    chance = np.random.default_rng(0)
    start = np.cumsum(chance.integers(300, 40_000, count))
    tid = chance.integers(0, 3, count)
    return EventStore.freeze(
        {
            "name": chance.integers(0, 90, count),
            "kind": np.zeros(count),
            "tid": tid,
            "start": start,
            "end": start + chance.integers(200, 90_000, count),
            "seq": np.arange(count),
            "shapes": chance.integers(0, 300, count),
            "mem_time": start + 100,
            "mem_bytes": chance.integers(-9999, 9999, count),
            "mem_tid": tid,
            "mem_addr": chance.integers(2**40, 2**41, count),
        },
        names=[f"aten::op_{i}" for i in range(90)],
        threads=[ThreadInfo(i, "t") for i in range(3)],
        input_infos=[InputInfo((), (), (), ())] * 300,
    )


@pytest.mark.parametrize("count", [1000, 10_000, 100_000])
def test_an_event_takes_less_than_24_bytes(tmp_path, count):
    """An event with an allocation: the same as one of training takes a third of it."""
    assert saved_at(training_like(count), tmp_path).stat().st_size / count < 24


@pytest.mark.parametrize("count", [1000, 10_000, 100_000])
def test_half_a_file_has_half_of_what_was_recorded(tmp_path, count):
    store = training_like(count)
    path = saved_at(store, tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    loaded, recovery = read_any(path)
    assert not recovery.complete and not recovery.skipped
    least = 0.2 if count == 1000 else 0.45  # of a small file the tables take much, and a frame has a quarter
    assert least * count <= len(loaded) <= 0.52 * count
    assert least * count <= len(loaded.mem_time) <= 0.52 * count
    assert np.array_equal(loaded.start, store.start[: len(loaded)])


def test_a_flipped_bit_costs_a_frame(tmp_path):
    count = 10_000
    store = training_like(count)
    path = saved_at(store, tmp_path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    loaded, recovery = read_any(path)
    kept = loaded.kind != observer.MEMORY
    assert recovery.complete and recovery.skipped["damaged frame"] == 1
    assert 0.9 * count < kept.sum() <= count and 0.9 * count < len(loaded.mem_time) <= count


def test_frames_of_more_rows_than_are_written_are_read(tmp_path, monkeypatch):
    """As they may come from another writer, up to what the format allows."""
    monkeypatch.setattr(saved, "ROWS_PER_FRAME", 1 << 16)
    monkeypatch.setattr(saved, "LEAST_ROWS_PER_FRAME", 1 << 16)
    store = training_like(20_000)
    path = saved_at(store, tmp_path)
    assert [kind for _, _, kind in frames_of(path.read_bytes())].count(_frames.ROWS) == 1
    back, recovery = read_any(path)
    assert_same(store, back)
    assert recovery.intact


def test_memory_before_the_first_event_and_after_the_last_comes_back(tmp_path):
    memory = [{"time": at, "bytes": 8, "addr": at} for at in (1, 2, 15, 1000, 2000)]
    store = EventStore.from_rows([{"name": "a", "start": 10, "end": 20}], memory)
    assert_same(store, load(saved_at(store, tmp_path)).store)


def test_save_replaces_a_file_only_when_it_is_whole(made_up, tmp_path, monkeypatch):
    path = saved_at(made_up, tmp_path)
    before = path.read_bytes()
    monkeypatch.setattr(saved.Writer, "end", lambda self: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        saved.save(made_up, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == [path.name]


def test_what_is_not_json_is_refused_by_save(made_up, tmp_path):
    made_up.metadata["x"] = object()
    with pytest.raises(TypeError):
        saved.save(made_up, tmp_path / "x")
    assert os.listdir(tmp_path) == []


# ------------------------------------------------------------------------------ torn and damaged


def frames_of(data):
    """(start, end, kind) of every frame."""
    offsets, at = [], _frames.HEADER.size
    while at < len(data):
        kind, length, _ = struct.unpack_from("<BII", data, at)
        offsets.append((at, at + 9 + length, kind))
        at += 9 + length
    return offsets


@pytest.fixture
def long_file(tmp_path, monkeypatch):
    monkeypatch.setattr(saved, "ROWS_PER_FRAME", 50)
    rows = [{"name": f"n{i % 40}", "start": i * 10, "end": i * 10 + 5} for i in range(400)]
    store = EventStore.from_rows(rows, [{"time": i * 10 + 1, "bytes": 8, "addr": i} for i in range(400)], trace_id="T")
    return store, saved_at(store, tmp_path)


def test_a_file_torn_anywhere_gives_its_whole_frames(long_file):
    store, path = long_file
    data = path.read_bytes()
    frames = frames_of(data)
    kinds = [_frames.META, *[_frames.TABLE] * 2, *[_frames.ROWS, _frames.MEMORY] * 8, _frames.END]
    assert [kind for _, _, kind in frames] == kinds
    for cut in sorted({*range(frames[0][1], len(data), 97), *(end for _, end, _ in frames[:-1])}):
        path.write_bytes(data[:cut])
        loaded, recovery = read_any(path)
        rows = 50 * sum(kind == _frames.ROWS and end <= cut for _, end, kind in frames)
        assert len(loaded) == rows and not recovery.complete
        assert np.array_equal(loaded.start, store.start[:rows])
        assert recovery.bytes_dropped == cut - max(end for _, end, _ in frames if end <= cut)
        assert (loaded.mem_event < rows).all()
        loaded.total_bytes, loaded.links, loaded.visible  # noqa: B018  nothing points to what is not there


def test_nothing_whole_is_a_trace_error(long_file):
    _, path = long_file
    data = path.read_bytes()
    for cut in (8, 11, 12, 20):
        path.write_bytes(data[:cut])
        with pytest.raises(TraceError):
            load(path)


def test_a_damaged_frame_is_passed_over(long_file):
    store, path = long_file
    data = bytearray(path.read_bytes())
    start, end, _ = frames_of(data)[7]  # the third of eight frames of rows
    data[(start + end) // 2] ^= 0x10
    path.write_bytes(data)
    loaded, recovery = read_any(path)
    assert recovery.skipped == {"damaged frame": 1, "lost rows": 50} and recovery.complete
    assert recovery.bytes_dropped == end - start
    kept = loaded.kind != observer.MEMORY
    assert np.array_equal(loaded.start[kept], np.delete(store.start, range(100, 150)))
    # What was allocated in the lost rows stands by itself.
    assert (~kept).sum() == 50


def test_a_damaged_table_leaves_placeholders(long_file):
    _, path = long_file
    data = bytearray(path.read_bytes())
    _, end, kind = frames_of(data)[1]
    assert kind == _frames.TABLE
    data[end - 3] ^= 1
    path.write_bytes(data)
    loaded, recovery = read_any(path)
    assert "<lost>" in loaded.names and "entries of names are lost" in recovery.notes
    assert len(loaded) == 400


def test_a_recording_without_names_is_still_written_as_strict_json(fixtures, tmp_path):
    path = saved_at(load(fixtures / "mlp_everything.json.gz").store, tmp_path)
    data = bytearray(path.read_bytes())
    data[frames_of(data)[1][1] - 3] ^= 1
    path.write_bytes(data)
    profile = load(path)
    profile.export_chrome_trace(tmp_path / "t.json")
    assert {event["name"] for event in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if "dur" in event} == {
        "<lost>",
        "PyTorch Profiler (0)",
    }


def test_no_flipped_bit_goes_unnoticed_or_hurts(long_file):
    store, path = long_file
    data = path.read_bytes()
    chance = np.random.default_rng(1)
    for at in chance.integers(0, len(data), 60).tolist():
        damaged = bytearray(data)
        damaged[at] ^= 1 << int(chance.integers(8))
        path.write_bytes(damaged)
        try:
            loaded, recovery = read_any(path)
        except TraceError:
            continue
        assert not recovery.intact or np.array_equal(loaded.start, store.start)
        assert at < _frames.HEADER.size or not recovery.intact


def refit(kind, body):
    payload = struct.pack("<BI", 0, len(body)) + body
    checksum = zlib.crc32(payload, zlib.crc32(struct.pack("<BI", kind, len(payload))))
    return struct.pack("<BII", kind, len(payload), checksum) + payload


ROWS_HEAD = struct.pack("<II", 0, 2)
HOSTILE = {
    "rows without columns": refit(_frames.ROWS, ROWS_HEAD),
    "too many rows": refit(_frames.ROWS, struct.pack("<II", 0, 2**32 - 1)),
    "rows that end nowhere": refit(_frames.ROWS, ROWS_HEAD + struct.pack("<BI", 0, 2**31)),
    "a table that is no list": refit(_frames.TABLE, struct.pack("<BII", 0, 0, 1) + b"5"),
    "a table from nowhere": refit(_frames.TABLE, struct.pack("<BII", 0, 2**31, 1) + b'["a"]'),
    "a name that is no text": refit(_frames.TABLE, struct.pack("<BII", 0, 0, 1) + b"[5]"),
    "deep nesting": refit(_frames.TABLE, struct.pack("<BII", 2, 0, 1) + b"[" * 99999 + b"]" * 99999),
    "meta that is none": refit(_frames.META, b"[1, 2]"),
    "meta of the wrong types": refit(_frames.META, b'{"options": 5, "pid": 1e400}'),
    "an end that says nonsense": refit(_frames.END, b'{"rows": "x"}'),
    "a frame of another kind": refit(99, b"abc"),
    "a table of another kind": refit(_frames.TABLE, struct.pack("<BII", 250, 0, 1) + b"[1]"),
    "a stack of frames that are not there": refit(_frames.TABLE, struct.pack("<BII", 4, 0, 1) + b"[[5, -1, 999]]"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_frames_that_make_no_sense_do_no_harm(made_up, tmp_path, what):
    path = saved_at(made_up, tmp_path)
    data = path.read_bytes()
    first = frames_of(data)[0][0]
    path.write_bytes(data[:first] + HOSTILE[what] + data[first:])
    try:
        loaded, recovery = read_any(path)
    except TraceError:
        return
    assert not recovery.intact or what.startswith("a stack")
    loaded.visible, loaded.self_ns  # noqa: B018


def test_rows_out_of_order_are_put_in_order(tmp_path):
    """A file that lies about its order must not make a tree with cycles."""
    writer = saved.Writer()
    meta = {"options": {"use_device": 5}, "segments": []}
    rows = {
        "name": np.zeros(3, int),
        "kind": np.zeros(3, int),
        "tid": np.zeros(3, int),
        "start": np.array([5, 0, 7]),
        "end": np.array([6, 100, 7]),
    }
    path = tmp_path / "lies"
    tables = [*writer.table("names", ["a"]), *writer.table("threads", [(1, "t")])]
    path.write_bytes(b"".join([writer.header(), writer.meta(meta), *tables, *writer.rows(rows), writer.end()]))
    store, recovery = read_any(path)
    assert store.parent.tolist() == [-1, 0, 0] and recovery.notes == ["the rows were not in order"]
    assert load(path).key_averages().table()


def test_another_version_is_refused(made_up, tmp_path):
    path = saved_at(made_up, tmp_path)
    data = bytearray(path.read_bytes())
    data[8] = 99
    path.write_bytes(data)
    with pytest.raises(TraceError, match="version 99"):
        load(path)


def test_frames_written_as_they_come_make_a_recording(tmp_path):
    """How a running recording is written: rows in order of their end, tables as they grow, meta data again and again."""
    writer = saved.Writer(recorded=True)
    meta = {"trace_id": "S", "pid": 7, "clock_start_ns": 10, "clock_end_ns": 0, "wall_start_ns": 99}
    blocks = [writer.header(), writer.meta(meta), *writer.table("threads", [(7, "main")]), *writer.table("names", ["child"])]

    def rows(names, starts, ends):
        count = len(names)
        return writer.rows(
            {
                "name": np.array(names),
                "kind": np.zeros(count, int),
                "tid": np.zeros(count, int),
                "start": np.array(starts),
                "end": np.array(ends),
            }
        )

    blocks += rows([0], [20], [30])
    blocks += [*writer.table("names", ["parent"]), *rows([0, 1], [35, 20], [40, 50])]
    blocks += writer.memory({"mem_time": np.array([36, 60]), "mem_bytes": np.array([64, -64]), "mem_tid": np.array([0, 0])})
    blocks += [writer.meta({**meta, "clock_end_ns": 80}), writer.end()]
    path = tmp_path / "stream"
    path.write_bytes(b"".join(blocks))
    store, recovery = read_any(path)
    assert recovery.intact and store.clock_end_ns == 80
    assert [store.names[name] for name in store.name.tolist()] == ["parent", "child", "child", "[memory]"]
    assert store.parent.tolist() == [-1, 0, 0, -1]
    assert store.mem_event.tolist() == [2, 3] and store.mem_total.tolist() == [64, 0]
    path.write_bytes(b"".join(blocks[:-4]))
    store, recovery = read_any(path)
    assert len(store) == 1 and not recovery.complete and not recovery.bytes_dropped


def test_the_bytes_of_a_saved_profile_can_be_bounded(tmp_path):
    rows = [{"name": "aten::add", "start": 3 * n * n, "end": 3 * n * n + n + 1} for n in range(1000)]
    saved.save(EventStore.from_rows(rows), tmp_path / "run.mtp")
    assert len(load(tmp_path / "run.mtp", max_bytes=1_000_000)) == 1000
    with pytest.raises(TraceError, match="unpacks to more"):
        load(tmp_path / "run.mtp", max_bytes=1000)


def test_a_streamed_file_takes_little_memory_for_each_event(tmp_path):
    """Rows of two threads, forward and backward ops, are put together without much of them being there twice."""
    peaks = {}
    for count in (20_000, 20_000, 80_000):  # the first time imports are counted, too
        chance = np.random.default_rng(0)
        writer = saved.Writer(recorded=True)
        start = np.cumsum(chance.integers(300, 40_000, count))
        kind = np.arange(count) % 2 * observer.BACKWARD
        rows = {
            "name": chance.integers(0, 90, count),
            "kind": kind,
            "tid": np.arange(count) // 2 % 2,
            "start": start,
            "end": start + 200,
            "seq": np.arange(count) // 2,
            "op": np.where(kind, -1, 3),
        }
        blocks = [
            writer.header(),
            writer.meta({"logs": True}),
            *writer.table("names", [f"op {n}" for n in range(90)]),
            *writer.table("overloads", ["x"] * 4),
            *writer.table("threads", [(1, "a"), (2, "b")]),
            *writer.log(STEP_LOG, 0, np.array([[0, 0]])),
            *writer.rows(rows),
            writer.end(),
        ]
        path = tmp_path / "s.mtp"
        path.write_bytes(b"".join(blocks))
        tracemalloc.start()
        store = load(path).store
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(store) == count and np.array_equal(store.fwd_tid[store.kind == observer.BACKWARD], np.arange(count // 2) % 2)
    each = (peaks[80_000] - peaks[20_000]) / 60_000
    assert each < 250


def test_names_may_be_longer_than_a_frame_together(tmp_path, monkeypatch):
    """Entries of a table go into as many frames as they need; one longer than a frame is refused."""
    monkeypatch.setattr(_frames, "MOST_PAYLOAD", 3000)
    monkeypatch.setattr(saved, "MOST_PAYLOAD", 3000)
    names = [f"{number}" * 900 for number in range(10)]
    rows = [{"name": name, "start": at, "end": at + 1, "stack": (name,)} for at, name in enumerate(names)]
    saved.save(EventStore.from_rows(rows), tmp_path / "long.mtp")
    again = saved.load(tmp_path / "long.mtp")
    assert list(again.names) == names and [stack[0] for stack in again.stacks] == names
    with pytest.raises(ValueError, match="a frame holds at most 3000 bytes"):
        saved.save(EventStore.from_rows([{"name": "x" * 3000, "start": 0, "end": 1}]), tmp_path / "long.mtp")
    assert list(saved.load(tmp_path / "long.mtp").names) == names
