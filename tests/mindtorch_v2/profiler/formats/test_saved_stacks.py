"""Stacks in saved profiles: each frame of a call path is written once, however many stacks go through it."""

import json
import struct

import numpy as np
import pytest

from mindtorch_v2.profiler.formats import TraceError, saved
from mindtorch_v2.profiler.formats.saved_file.frames import HEADER, MAGIC, META, TABLE, frame
from mindtorch_v2.profiler.formats.saved_file.layout import TABLE_HEAD, TABLES
from mindtorch_v2.profiler.store.store import EventStore


def recording(stacks):
    return EventStore.from_rows([{"name": "op", "start": at, "end": at + 1, "stack": stack} for at, stack in enumerate(stacks)])


def shown(store):
    return [store.stacks[at] if at >= 0 else None for at in store.stack.tolist()]


def test_stacks_are_the_same_after_saving(tmp_path):
    stacks = [("c", "b", "a"), ("b", "a"), (), ("c", "x"), ("c",), ("d", "c", "b", "a"), None, ("b", "b", "b")]
    saved.save(recording(stacks), tmp_path / "a.mtp")
    assert shown(saved.load(tmp_path / "a.mtp")) == stacks


def test_a_frame_is_written_once_for_all_stacks_that_go_through_it():
    """As lists of frames, a hundred thousand frames would be written here; there are 400 nodes."""
    shared = tuple(f"train.py({line}): caller" for line in range(200))
    stacks = [(f"leaf {number}", *shared) for number in range(200)]
    writer = saved.Writer()
    list(writer.table("stacks", stacks))
    assert writer.counts()[0]["stack_nodes"] == 400
    list(writer.table("stacks", [shared[at:] for at in range(200)]))
    assert writer.counts()[0]["stack_nodes"] == 400


def test_entries_that_did_not_get_into_the_file_are_written_again():
    writer = saved.Writer()
    list(writer.table("stacks", [("a",)]))
    before = writer.counts()
    list(writer.table("stacks", [("b", "a")]))
    writer.go_back(before)
    list(writer.table("stacks", [("b", "a")]))
    assert writer.counts()[0] == {**before[0], "frames": 2, "stack_nodes": 2, "stacks": 2}


def file_of(tmp_path, *tables, version=2):
    path = tmp_path / "x.mtp"
    body = b"".join(
        frame(TABLE, TABLE_HEAD.pack(TABLES.index(name), 0, len(entries)) + json.dumps(entries).encode())
        for name, entries in tables
    )
    rows = saved.Writer()
    columns = np.array([0])
    row = b"".join(rows.rows(dict.fromkeys(("name", "kind", "tid", "start", "end", "stack"), columns)))
    path.write_bytes(HEADER.pack(MAGIC, version, 0) + frame(META, b"{}") + body + row + rows.end())
    return path


NAMES = [("names", ["op"]), ("threads", [[1, "main"]]), ("frames", ["a", "b"])]


def test_profiles_of_version_1_have_stacks_as_lists(tmp_path):
    path = file_of(tmp_path, *NAMES, ("stacks", [[1, 0]]), version=1)
    store, recovery = saved.read(path)
    assert shown(store) == [("b", "a")] and recovery.intact


@pytest.mark.parametrize("nodes", [[[5, 0]], [[0, 0]], [[-2, 0]], [["x", 0]], [7]])
def test_nodes_that_make_no_sense_cost_the_stacks_and_nothing_else(tmp_path, nodes):
    store, recovery = saved.read(file_of(tmp_path, *NAMES, ("stack_nodes", nodes), ("stacks", [0])))
    assert len(store) == 1 and recovery.skipped == {"frame that makes no sense": 1}
    assert shown(store) == [("<lost>",)]


def test_a_chain_of_nodes_cannot_take_all_memory(tmp_path):
    chain = [[at - 1, 0] for at in range(60_000)]
    path = file_of(tmp_path, *NAMES, ("stack_nodes", chain))
    with pytest.raises(TraceError, match="unpacks to more"):
        saved.read(path, max_bytes=16 << 20)


def test_the_version_is_checked(tmp_path):
    path = file_of(tmp_path, *NAMES, version=3)
    with pytest.raises(TraceError, match="version 3"):
        saved.read(path)
    assert struct.unpack_from("<8sH", path.read_bytes()) == (MAGIC, 3)
