"""Files made or damaged to hurt: a recording that answers every question, or a TraceError, within bounds."""

from __future__ import annotations

import gzip
import json
import random
import time
import tracemalloc

import numpy as np
import pytest

from mindtorch_v2.profiler.formats import TraceError, saved
from mindtorch_v2.profiler.formats.detect import read_any
from mindtorch_v2.profiler.formats.saved_file.frames import META, ROWS, frame, header
from mindtorch_v2.profiler.formats.saved_file.layout import COLUMN_HEAD, ROW_COLUMNS, ROWS_HEAD
from mindtorch_v2.profiler.formats.validate import validate_store
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList

SECONDS, MEGABYTES = 30, 200


def questioned(path):
    """Read a file and ask everything; None if there is nothing in it."""
    tracemalloc.start()
    began = time.process_time()
    try:
        store, recovery = read_any(path)
        broken = [problem for problem in validate_store(store) if problem.check in ("tables", "queries")]
        assert not broken, broken
        events = EventList.from_store(store)
        events.key_averages(True, 2).table(row_limit=3)
        assert len(list(events)) == len(events)
        str(recovery)
        return store
    except TraceError:
        return None
    finally:
        assert time.process_time() - began < SECONDS
        assert tracemalloc.get_traced_memory()[1] < MEGABYTES << 20
        tracemalloc.stop()


def python_call(span, number, parent, ts, dur):
    return {**span(f"f{number}", ts, dur, "python_function"), "args": {"Python id": number, "Python parent id": parent}}


EVENTS = {
    "a call that is its own parent": lambda span: [python_call(span, 1, 1, 0, 9), span("aten::add", 1, 2)],
    "calls that are each other's parents": lambda span: [
        python_call(span, 1, 2, 0, 9),
        python_call(span, 2, 1, 1, 8),
        span("aten::add", 2, 2),
    ],
    "a ring of calls": lambda span: [python_call(span, n, (n + 1) % 50, n, 100 - 2 * n) for n in range(50)],
    "one number for many calls": lambda span: [python_call(span, 7, 7, n, 1) for n in range(50)],
    "one id for many ops": lambda span: [span("a", n, 1, **{"External id": 1, "Ev Idx": 1}) for n in range(50)],
    "one correlation for many kernels": lambda span: [
        *(span("cudaLaunchKernel", n, 1, "cuda_runtime", correlation=5) for n in range(20)),
        *(span("k", n, 1, "kernel", 0, 7, correlation=5, stream=7) for n in range(20)),
    ],
    "one flow for many ends": lambda span: [
        span("a", 0, 9, **{"Sequence number": 1, "Fwd thread id": 1}),
        *(
            {"ph": phase, "id": 1, "pid": 1, "tid": 1, "ts": n, "cat": "fwdbwd", "name": "fwdbwd"}
            for n in range(20)
            for phase in "stf"
        ),
    ],
    "numbers beyond all bounds": lambda span: [
        span("a", 10**30, 1),
        span("b", 1, 10**30),
        span("c", -(10**18), 10**18),
        span("d", 1e308, 1),
        span("e", 1, -5),
        span("f", 1, 1, **{"Sequence number": 10**25, "Fwd thread id": -(10**25), "External id": 2**200}),
        span("g", 1, 1, tid=10**30),
        span("h", 1, 1, pid=-(2**70)),
        span("i", 1, 1, "kernel", correlation=2**70, stream=2**70),
    ],
    "wrong types everywhere": lambda span: (
        [
            dict.fromkeys(("ph", "cat", "name", "pid", "tid", "ts", "dur", "args"), wrong)
            for wrong in (None, True, 1, 1.5, "X", [], [1], {}, {"a": 1})
        ]
        + [{**span(), key: wrong} for key in span() for wrong in (None, True, -1, 1.5, "X", [], [[]], {}, {"a": [1]})]
    ),
    "arguments of wrong types": lambda span: [
        span("a", n, 1, **{key: wrong})
        for n, (key, wrong) in enumerate(
            (key, wrong)
            for key in (
                "Input Dims",
                "Input type",
                "Input Strides",
                "Concrete Inputs",
                "Call stack",
                "Sequence number",
                "Module Hierarchy",
                "Python id",
                "Python parent id",
                "correlation",
                "stream",
                "Bytes",
                "Addr",
            )
            for wrong in (None, True, -1, 1.5, "", "x", [], [[]], [[[[[[1]]]]]], {}, {"a": 1}, 2**80)
        )
    ],
    "memory of wrong types": lambda span: [
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "pid": 1,
            "tid": 1,
            "ts": 1,
            "s": "t",
            "args": {"Bytes": wrong, "Addr": wrong, "Total Allocated": wrong, "Device Type": wrong, "Device Id": wrong},
        }
        for wrong in (None, True, 1.5, "x", [], {}, 2**70, -1)
    ],
}


@pytest.mark.parametrize("make", EVENTS.values(), ids=EVENTS)
def test_events_that_make_no_sense(trace, span, make):
    good = span("good", 500, 1)
    store = questioned(trace([*make(span), good]))
    assert store is not None and "good" in store.names


DOCUMENTS = {
    "deep lists": b"[" * 30_000,
    "deep objects": b'{"a":' * 30_000,
    "deep arguments": b'[{"args":' + b"[" * 30_000,
    "deep and closed": b'{"traceEvents":[' + b"[" * 20_000 + b"]" * 20_000 + b"]}",
    "a field of brackets": b'{"x":' + b"[" * 20_000 + b"]" * 20_000 + b',"traceEvents":[]}',
    "a number of a million digits": b'{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":'
    + b"9" * 1_000_000
    + b',"dur":1}]}',
    "a name of a megabyte": b'{"traceEvents":[{"ph":"X","name":"' + b"a" * (1 << 20) + b'","pid":1,"tid":1,"ts":1,"dur":1}]}',
    "a string without end": b'{"traceEvents":[{"ph":"X","name":"' + b"a" * (1 << 20),
    "backslashes": b'{"traceEvents":["' + b"\\" * 500_001,
    "two arrays": b'{"traceEvents":[],"traceEvents":[{}]}',
    "events that are text": b'{"traceEvents":"no"}',
    "events that are an object": b'{"traceEvents":{"a":[]}}',
    "nul": bytes(10_000),
}


@pytest.mark.parametrize("content", DOCUMENTS.values(), ids=DOCUMENTS)
def test_documents_that_make_no_sense(tmp_path, content):
    (tmp_path / "t.json").write_bytes(content)
    questioned(tmp_path / "t.json")
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(content))
    questioned(tmp_path / "t.json.gz")


# ------------------------------------------------------------------------------ damage


@pytest.fixture(scope="module")
def originals(fixtures_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("originals")
    store, _ = read_any(fixtures_folder / "mlp_plain.json.gz")
    saved.save(store, folder / "p.mtp")
    saved.save(EventStore.joined([store, store]), folder / "joined.mtp")
    packed = (fixtures_folder / "threads.json.gz").read_bytes()
    return {
        "trace": gzip.decompress(packed),
        "packed": packed,
        "device": (fixtures_folder / "gpu_by_hand.json").read_bytes(),
        "saved": (folder / "p.mtp").read_bytes(),
        "joined": (folder / "joined.mtp").read_bytes(),
    }


@pytest.fixture(scope="module")
def fixtures_folder(request):
    return request.path.parent.parent / "fixtures"


@pytest.mark.parametrize("kind", ["trace", "packed", "device", "saved", "joined"])
def test_flipped_bits_and_cuts(originals, tmp_path, kind):
    chance, whole = random.Random(kind), originals[kind]
    path = tmp_path / "damaged"
    for number in range(24):
        data = bytearray(whole)
        for _ in range(chance.choice((1, 2, 5, 40))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data[: chance.randrange(len(data))] if number % 3 == 0 else data)
        questioned(path)


@pytest.mark.parametrize("segments", [[[0, 0], [1, 0]], [[0, 0], [5, 0], [2, 0]], [[0, 0]], [[1, 0]], [[-1, 0], [99, 0]]])
def test_parents_that_go_in_circles(tmp_path, segments):
    """A saved file may name parents only where it holds several recordings, and then only earlier rows count."""
    columns = {
        "name": [0, 0, 0],
        "kind": [0, 0, 0],
        "tid": [0, 0, 0],
        "start": [1, 2, 3],
        "end": [9, 5, 1],
        "parent": [2, 0, 1],
        "launcher": [2, 2, 2],
    }
    body = ROWS_HEAD.pack(0, 3)
    for name, values in columns.items():
        coded = saved.coding.encode(np.array(values))
        body += COLUMN_HEAD.pack(ROW_COLUMNS.index(name), len(coded)) + coded
    meta = json.dumps({"segments": segments, "order": "rows"}).encode()
    path = tmp_path / "p.mtp"
    path.write_bytes(header() + frame(META, meta) + frame(ROWS, body))
    store = questioned(path)
    assert store is None or (store.parent < np.arange(len(store))).all()
