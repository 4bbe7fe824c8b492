"""Traces that are cut off, damaged or made to hurt: what can be had is had, the rest is counted, nothing else happens."""

from __future__ import annotations

import gzip
import json
import random
import time
import tracemalloc

import pytest

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.formats import TraceError
from mindtorch_v2.profiler.formats.detect import read_any
from mindtorch_v2.profiler.formats.kineto import read
from mindtorch_v2.profiler.formats.validate import validate_store


def good(span, count=20):
    return [span(f"op{i % 3}", 10.0 * i, 5.0) for i in range(count)]


# ------------------------------------------------------------------------------ cut off


def test_a_trace_cut_in_half_is_read_up_to_the_cut(fixtures, tmp_path):
    text = gzip.decompress((fixtures / "mlp_everything.json.gz").read_bytes())
    whole = load(fixtures / "mlp_everything.json.gz").store
    half = tmp_path / "half.json"
    half.write_bytes(text[: len(text) // 2])
    store, recovery = read_any(half)
    assert not recovery.complete and not recovery.skipped
    assert 0 < recovery.bytes_dropped < 2000
    assert 0.25 * len(whole) < len(store) < 0.75 * len(whole)
    assert "cut off" in str(recovery)
    kept = load(half)
    assert kept.store.metadata["recovery"]["complete"] is False
    assert kept.key_averages().table()
    again = tmp_path / "again.json"
    kept.export_chrome_trace(again)
    assert json.loads(again.read_text())["recovery"]["complete"] is False


def test_no_cut_loses_a_whole_event(trace, span):
    text = json.dumps({"traceEvents": good(span, 6), "traceName": "x"})
    ends = [at for at in range(len(text)) if text.startswith("}}", at)]
    start = text.index("[") + 1
    for cut in sorted({*range(start, len(text), 11), *(end + 1 for end in ends), *(end + 2 for end in ends)}):
        store, recovery = read(trace(text[:cut]))
        assert not recovery.complete
        assert len(store) == sum(end + 2 <= cut for end in ends)


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_a_gzipped_trace_cut_off(fixtures, tmp_path, keep):
    packed = (fixtures / "gpt_steps.json.gz").read_bytes()
    path = tmp_path / "cut.json.gz"
    path.write_bytes(packed[: int(len(packed) * keep)])
    store, recovery = read_any(path)
    assert len(store) > 0 and not recovery.complete
    assert "the gzip stream breaks off" in recovery.notes


def test_a_gzip_stream_with_a_wrong_checksum_or_more_behind_it(span, tmp_path):
    packed = gzip.compress(json.dumps({"traceEvents": good(span)}).encode())
    path = tmp_path / "t.gz"
    path.write_bytes(packed[:-8] + b"\0" * 8)
    store, recovery = read_any(path)
    assert len(store) == 20 and not recovery.complete
    path.write_bytes(packed + b"rubbish")
    store, recovery = read_any(path)
    assert len(store) == 20 and recovery.bytes_dropped == 7
    both = gzip.compress(b'{"traceEvents": [') + gzip.compress(json.dumps(good(span)[0]).encode() + b"]}")
    path.write_bytes(both)
    store, recovery = read_any(path)
    assert len(store) == 1 and recovery.intact


# ------------------------------------------------------------------------------ events that are not events

BAD = [
    ("not an event", 5),
    ("not an event", "text"),
    ("not an event", None),
    ("not an event", [[]]),
    ("no phase", {}),
    ("no phase", {"ph": 7}),
    ("no phase", {"ph": ""}),
    ("no phase", {"ph": "BE", "name": "a"}),
    ("no name", {"ph": "X", "name": 3, "ts": 1, "dur": 1, "pid": 1, "tid": 1}),
    ("no time", {"ph": "X", "name": "a", "ts": "1e5", "dur": 1, "pid": 1, "tid": 1}),
    ("no time", {"ph": "X", "name": "a", "ts": None, "dur": 1, "pid": 1, "tid": 1}),
    ("no time", {"ph": "X", "name": "a", "ts": True, "dur": 1, "pid": 1, "tid": 1}),
    ("no time", {"ph": "X", "name": "a", "ts": 1e300, "dur": 1, "pid": 1, "tid": 1}),
    ("no time", {"ph": "X", "name": "a", "ts": 10**30, "dur": 1, "pid": 1, "tid": 1}),
    ("no duration", {"ph": "X", "name": "a", "ts": 1, "pid": 1, "tid": 1}),
    ("no duration", {"ph": "X", "name": "a", "ts": 1, "dur": [1], "pid": 1, "tid": 1}),
    ("negative duration", {"ph": "X", "name": "a", "ts": 1, "dur": -1, "pid": 1, "tid": 1}),
    ("no thread", {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": [1], "tid": 1}),
    ("no thread", {"ph": "X", "name": "a", "ts": 1, "dur": 1, "pid": 1, "tid": 10**25}),
    ("no device", {"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": 1, "pid": "gpu", "tid": 1}),
    ("no bytes", {"ph": "i", "name": "[memory]", "ts": 1, "pid": 1, "tid": 1, "args": {}}),
    ("no flow id", {"ph": "s", "cat": "fwdbwd", "name": "x", "ts": 1, "pid": 1, "tid": 1, "id": "a"}),
]


@pytest.mark.parametrize("reason, event", BAD, ids=[f"{reason}-{number}" for number, (reason, _) in enumerate(BAD)])
def test_a_bad_event_is_counted_and_the_others_stay(trace, span, reason, event):
    store, recovery = read(trace([*good(span), event, *good(span)]))
    assert recovery.skipped == {reason: 1}
    assert len(store) == 40 and recovery.complete


@pytest.mark.parametrize(
    "args",
    [
        5,
        "text",
        [1],
        None,
        {"Sequence number": "x"},
        {"Sequence number": 10**30},
        {"Sequence number": [1]},
        {"Fwd thread id": {}},
        {"Input Dims": 5},
        {"Input Dims": [[10**40]]},
        {"Input Dims": [[[[[[[1]]]]]]], "Input type": 5},
        {"Input Dims": [["a"]], "Concrete Inputs": [5, {}]},
        {"Module Hierarchy": 5},
        {"Call stack": ["a"]},
        {"correlation": 1.5},
        {"Input Dims": [[1]], "Input Strides": "x"},
    ],
)
def test_arguments_of_any_shape_do_not_lose_the_event(trace, span, args):
    store, recovery = read(trace([*good(span), {**span("odd", 1000, 1), "args": args}]))
    assert "odd" in store.names and not recovery.skipped
    assert validate_store(store) == []


@pytest.mark.parametrize("category", [5, 1.5, None, [1], {}, True, "x" * 1000])
def test_categories_of_any_kind(trace, span, category):
    store, recovery = read(trace([*good(span), {**span("odd", 1000, 1), "cat": category}]))
    assert "odd" in store.names and not recovery.skipped


@pytest.mark.parametrize("base", ["x", None, 1.5, True, 2**63, -1, [1]])
def test_a_base_time_that_is_none(trace, span, base):
    store, recovery = read(trace(good(span), baseTimeNanoseconds=base))
    assert store.wall_start_ns == store.clock_start_ns and len(recovery.notes) == 1


def test_names_that_are_not_unicode_or_hurt(trace, tmp_path, span):
    path = tmp_path / "t.json"
    path.write_bytes(
        b'[{"ph": "X", "name": "\xff\xfe", "pid": 1, "tid": 1, "ts": 1, "dur": 1},'
        b'{"ph": "X", "name": "\\ud800", "pid": 1, "tid": 1, "ts": 3, "dur": NaN},'
        b'{"ph": "X", "name": "\\ud83d\\ude00\\ud800", "pid": 1, "tid": 1, "ts": 5, "dur": 1}]'
    )
    store, recovery = read_any(path)
    assert [name.encode() for name in store.names]
    assert recovery.skipped == {"no duration": 1}
    assert "\U0001f600" in store.names[1]
    assert "some of it is not strict JSON" in recovery.notes


def test_deep_nesting_is_one_bad_event(trace, span):
    deep = "[" * 200_000 + "]" * 200_000
    text = json.dumps(good(span))[:-1] + f', {{"ph": "X", "args": {deep}}}, ' + json.dumps(good(span))[1:]
    started = time.process_time()
    store, recovery = read(trace(text))
    assert len(store) == 40 and recovery.skipped == {"damaged event": 1}
    assert time.process_time() - started < 5


@pytest.mark.parametrize("damage", ['"', "{", "}", "[", "]", ",", "\\", "\n", "}}, {", '{"ph"'])
def test_a_damaged_event_takes_few_others_with_it(trace, span, damage):
    text = json.dumps(good(span, 60))
    at = text.index("op0", len(text) // 2)
    store, recovery = read(trace(text[:at] + damage + text[at + 1 :]))
    assert len(store) >= 28
    assert len(store) >= 57 or not recovery.complete or recovery.bytes_dropped


def test_random_damage_never_ends_in_anything_but_a_trace_error(fixtures, tmp_path):
    chance = random.Random(5)
    whole = gzip.decompress((fixtures / "threads.json.gz").read_bytes())
    path = tmp_path / "damaged"
    pieces = [b'"', b"{", b"]", b"NaN", b"1e999", b"9" * 30, b"\\ud800", b"\xff", b"null", b"[[[", b"-1"]
    for _ in range(60):
        text = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(text))
            text[at : at + chance.randrange(20)] = chance.choice(pieces)
        path.write_bytes(text)
        try:
            store, _ = read_any(path)
        except TraceError:
            continue
        assert not [problem for problem in validate_store(store) if problem.check in ("tables", "times", "queries")]


# ------------------------------------------------------------------------------ made to take forever


def test_a_damaged_last_event_does_not_hide_the_end(trace, span):
    text = json.dumps({"traceEvents": [*good(span), "@"], "traceName": "x"}).replace('"@"', '{"ph": nul}')
    store, recovery = read(trace(text))
    assert len(store) == 20 and recovery.complete and recovery.skipped == {"damaged event": 1}


def test_deep_towers_of_spans_are_cut(trace):
    count = 60_000
    events = ",".join(f'{{"ph":"X","name":"a","pid":1,"tid":1,"ts":{i},"dur":{10**6 - 2 * i}}}' for i in range(count))
    started = time.process_time()
    store, recovery = read(trace(f"[{events}]"))
    assert recovery.skipped["nested too deeply"] == count - len(store) > 0
    assert int(store.depth.max()) == 2048
    assert time.process_time() - started < 20


@pytest.mark.parametrize("piece", ['{"ph":"X","a":"}', '{"ph":nul}', '{"ph":"X",', "[", '{"a":[{', '"', "}"])
def test_nothing_but_damage_takes_no_time(trace, piece):
    started = time.process_time()
    try:
        store, recovery = read(trace("[" + ",".join([piece] * 30_000)))
    except TraceError:
        pass
    else:
        assert len(store) == 0 and not recovery.intact
    assert time.process_time() - started < 20


def test_a_million_threads_are_too_many(trace):
    events = ",".join(f'{{"ph":"X","name":"a","pid":1,"tid":{i},"ts":{i},"dur":1}}' for i in range(6000))
    store, recovery = read(trace(f"[{events}]"))
    assert 3840 <= len(store) <= 4096
    assert recovery.skipped == {"of more than 3840 threads": 6000 - len(store)}


# ------------------------------------------------------------------------------ files that are no traces


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"   ",
        b"hello",
        b"\x00" * 100,
        b"5",
        b'"x"',
        b"{}",
        b'{"a": 1}',
        b"{",
        b'{"a',
        b'{"traceEvents": 5}',
        b'{"traceEvents"}',
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
        b"\x1f\x8b\x08rubbish",
        '{"traceEvents": []}'.encode("utf-16"),
    ],
)
def test_what_holds_no_recording_is_a_trace_error(tmp_path, content):
    path = tmp_path / "x"
    path.write_bytes(content)
    with pytest.raises(TraceError):
        load(path)


def test_a_missing_file_is_what_it_always_is(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none")
    with pytest.raises(IsADirectoryError, match="neither ASCEND_PROFILER_OUTPUT"):
        load(tmp_path)


def test_a_gzip_bomb_is_refused(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b'{"traceEvents": [' + b" " * (66 << 20)))
    with pytest.raises(TraceError, match="times its size"):
        load(path)
    with pytest.raises(TraceError, match="more than the 1000000 bytes"):
        load(path, max_bytes=1_000_000)


def test_a_bom_is_passed_over(tmp_path, span):
    path = tmp_path / "bom.json"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(good(span)).encode())
    assert len(load(path).store) == 20


def test_memory_stays_far_below_the_size_of_the_file(tmp_path, span):
    path = tmp_path / "large.json"
    pad = {"pad": "x" * 700}
    events = ",\n".join(json.dumps(span(f"op{i % 50}", i * 2.0, 1.5, **pad)) for i in range(30_000))
    path.write_text('{"traceEvents": [\n' + events + "\n]}")
    size = path.stat().st_size
    load(path)  # what the first use imports is not the file's
    tracemalloc.start()
    store = load(path).store
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(store) == 30_000 and size > 20_000_000
    assert peak < size / 2


def like_kineto(span, count):
    """Ops with inputs, Python functions around them, allocations, and arrows from forward to backward ops."""
    inputs = {
        "Input Dims": [[4, 8], [8]],
        "Input type": ["float", "float"],
        "Input Strides": [[8, 1], [1]],
        "Concrete Inputs": ["", ""],
        "Module Hierarchy": "Net.fc",
    }
    for n in range(count // 4):
        at = n * 10.0
        yield span(f"f.py({n % 30}): g", at, 9.5, "python_function", **{"Python id": n, "Python parent id": None})
        yield span(f"aten::op{n % 50}", at + 1, 7.25, **inputs, **{"Sequence number": n, "Fwd thread id": 0, "External id": n})
        yield {
            "ph": "i",
            "cat": "cpu_instant_event",
            "name": "[memory]",
            "s": "t",
            "pid": 1,
            "tid": 1,
            "ts": at + 2,
            "args": {"Bytes": 64, "Addr": 10**14 + n, "Total Allocated": 64 * n, "Device Type": 0, "Device Id": -1},
        }
        yield {"ph": "sf"[n % 2], "id": n // 2, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": at + 1, "bp": "e"}


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_memory_for_each_event_does_not_depend_on_how_many_there_are(tmp_path, span, ending):
    """A trace is read as a stream: beside a block of the file there are the numbers of each event, and nothing else of it."""
    peaks = {}
    for count in (20_000, 20_000, 80_000):  # the first time imports are counted, too
        path = tmp_path / f"t.{ending}"
        text = '{"traceEvents": [\n' + ",\n".join(map(json.dumps, like_kineto(span, count))) + "\n]}"
        path.write_bytes(gzip.compress(text.encode(), 1) if ending.endswith("gz") else text.encode())
        tracemalloc.start()
        store = load(path).store
        peaks[count] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(store) == count // 2 and len(store.mem_time) == count // 4
    each = (peaks[80_000] - peaks[20_000]) / 60_000
    assert each < 120  # an event has 220 bytes of text, and as a dict ten times as many
    assert peaks[20_000] - 20_000 * each < 12 << 20
