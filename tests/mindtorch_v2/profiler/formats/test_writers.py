"""What other tools are given: read back by small readers of each format."""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import struct
import sys
from collections import Counter, defaultdict
from types import SimpleNamespace

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.cli.commands.convert import convert
from mindtorch_v2.profiler.formats import _protobuf
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.store.store import EventStore


@pytest.fixture
def recorded(fixtures):
    return load(fixtures / "mlp_everything.json.gz").store


def written(form, store, tmp_path, **options):
    path = tmp_path / f"out.{form}"
    writers.get(form)(store, path, **options)
    return path.read_bytes()


def test_every_format_is_found_by_name(made_up, tmp_path):
    assert {"saved", "speedscope", "perfetto", "pprof", "csv", "parquet", "chrome", "collapsed"} <= set(writers.names())
    for name in ("saved", "speedscope", "perfetto", "pprof", "csv", "chrome", "collapsed"):
        assert written(name, made_up, tmp_path) is not None
        assert written(name, EventStore.from_rows([], options={"with_stack": True}), tmp_path) is not None


@pytest.mark.parametrize("name", writers.names())
def test_every_line_of_the_table_names_a_module_with_a_writer(name):
    assert callable(writers.get(name))


def test_convert_offers_the_writers_that_have_an_ending():
    assert set(writers.ENDINGS) <= set(writers.names())
    assert len(set(writers.ENDINGS.values())) == len(writers.ENDINGS)  # an ending chooses one format
    parser = argparse.ArgumentParser()
    convert.add_arguments(parser)
    assert all(parser.parse_args(["a.mtp", "--to", name]).to == name for name in writers.ENDINGS)


def test_a_registered_writer_takes_the_place_of_another(made_up, tmp_path, monkeypatch):
    monkeypatch.setattr(writers, "_loaded", dict(writers._loaded))
    writers.register("csv", lambda store, path, **options: path.write_text(f"{len(store)} rows"))
    writers.register("mine", lambda store, path, **options: path.write_text("mine"))
    assert written("csv", made_up, tmp_path) == f"{len(made_up)} rows".encode()
    assert written("mine", made_up, tmp_path) == b"mine"
    assert "mine" in writers.names()


# ------------------------------------------------------------------------------ speedscope


def nested(events):
    """(frame, start, end) of events that open and close, having checked that they nest and that time goes on."""
    spans, stack, now = [], [], -1
    for event in events:
        assert event["at"] >= now
        now = event["at"]
        if event["type"] == "O":
            stack.append((event["frame"], now))
        else:
            frame, start = stack.pop()
            assert frame == event["frame"]
            spans.append((frame, start, now))
    assert not stack
    return spans


def test_speedscope_has_every_span_of_every_thread(made_up, tmp_path):
    document = json.loads(written("speedscope", made_up, tmp_path, name="title"))
    assert document["$schema"].endswith("file-format-schema.json") and document["name"] == "title"
    names = [frame["name"] for frame in document["shared"]["frames"]]
    lanes = {profile["name"]: profile for profile in document["profiles"]}
    assert set(lanes) == {"thread 1 (1)", "thread 77 (77)", "device 0 stream 7"}
    spans = {(names[frame], start, end) for frame, start, end in nested(lanes["thread 1 (1)"]["events"])}
    assert {("aten::mul", 20, 40), ("cudaLaunchKernel", 25, 28), ("forward", 10, 90)} <= spans
    for lane in lanes.values():
        assert lane["unit"] == "nanoseconds" and lane["startValue"] <= lane["events"][0]["at"]
        assert lane["endValue"] >= lane["events"][-1]["at"]


def test_speedscope_of_a_torch_trace_nests(recorded, tmp_path):
    [profile] = json.loads(written("speedscope", recorded, tmp_path))["profiles"]
    spans = nested(profile["events"])
    assert len(spans) == len(recorded) - int((recorded.kind == observer.MEMORY).sum())
    whole = sum(end - start for frame, start, end in spans if recorded.names[frame].startswith("aten::"))
    ops = [at for at, name in enumerate(recorded.names) if name.startswith("aten::")]
    assert whole == sum(int(recorded.duration[recorded.name == at].sum()) for at in ops)


def test_labels_on_a_device_stay_around_their_kernels(fixtures, tmp_path):
    store = load(fixtures / "gpu_by_hand.json").store
    document = json.loads(written("speedscope", store, tmp_path))
    [lane] = [profile for profile in document["profiles"] if profile["name"] == "device 0 stream 7"]
    spans = {document["shared"]["frames"][frame]["name"]: end - start for frame, start, end in nested(lane["events"])}
    assert spans["ProfilerStep#3"] == 87_499 and spans["ampere_sgemm_32x32_sliced1x4_tn"] == 25_500


# ------------------------------------------------------------------------------ protocol buffers


def fields(data):
    """{field: [numbers and bytes]} of a message."""
    fields, at = defaultdict(list), 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = number()
        if key & 7 == 0:
            fields[key >> 3].append(number())
        elif key & 7 == 1:
            fields[key >> 3].append(struct.unpack_from("<Q", data, at)[0])
            at += 8
        else:
            assert key & 7 == 2
            length = number()
            fields[key >> 3].append(data[at : at + length])
            at += length
            assert at <= len(data)
    return fields


def numbers(data):
    """The numbers of a packed field."""
    numbers, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(value)
            value = shift = 0
    return numbers


@pytest.mark.parametrize(
    "value, expected",
    [
        (0, b"\0"),
        (1, b"\1"),
        (127, b"\x7f"),
        (128, b"\x80\1"),
        (300, b"\xac\2"),
        (-1, b"\xff" * 9 + b"\1"),
        (2**63, b"\x80" * 9 + b"\1"),
    ],
)
def test_varints(value, expected):
    assert _protobuf.varint(value) == expected


def perfetto_of(data):
    """Tracks by uuid, slices as (track, name, start, end), counters, and flows as (from, to)."""
    names, tracks, slices, counters, flows = {}, {}, [], [], defaultdict(dict)
    stacks = defaultdict(list)
    for packet in map(fields, fields(data)[1]):
        for descriptor in map(fields, packet[60]):
            thread, process = (fields(descriptor[field][0]) if descriptor[field] else None for field in (4, 3))
            tracks[descriptor[1][0]] = SimpleNamespace(
                name=(thread[5] if thread else process[6] if process else descriptor[2])[0].decode(),
                tid=thread[2][0] if thread else None,
                counter=bool(descriptor[8]),
            )
        for interned in map(fields, packet[12]):
            assert packet[13] == [3] and packet[10] == [1]
            names.update({entry[1][0]: entry[2][0].decode() for entry in map(fields, interned[2])})
        for event in map(fields, packet[11]):
            assert packet[10] == [1] and packet[13] == [2]
            [time], [track], [kind] = packet[8], event[11], event[9]
            if kind == 1:
                name = names[event[10][0]]
                stacks[track].append((name, time))
                for flow in event[47]:
                    flows[flow]["from"] = name
                for flow in event[48]:
                    flows[flow]["to"] = name
            elif kind == 2:
                name, start = stacks[track].pop()
                slices.append((tracks[track].name, name, start, time))
            else:
                counters.append((tracks[track].name, time, event[30][0]))
    assert not any(stacks.values())
    return SimpleNamespace(tracks=tracks, slices=slices, counters=counters, flows=list(flows.values()))


def test_perfetto_has_tracks_slices_flows_and_memory(made_up, tmp_path):
    trace = perfetto_of(written("perfetto", made_up, tmp_path))
    names = {track.name for track in trace.tracks.values()}
    assert names == {"python", "thread 1", "thread 77", "device 0 stream 7", "CPU memory"}
    assert ("thread 1", "aten::mul", 120, 140) in trace.slices and ("device 0 stream 7", "kernel", 130, 170) in trace.slices
    assert {"from": "aten::mul", "to": "MulBackward0"} in trace.flows
    assert {"from": "cudaLaunchKernel", "to": "kernel"} in trace.flows
    assert trace.counters == [("CPU memory", 130, 512), ("CPU memory", 320, 576), ("CPU memory", 500, 64)]


def test_perfetto_of_a_torch_trace(recorded, tmp_path):
    trace = perfetto_of(written("perfetto", recorded, tmp_path))
    expected = Counter(recorded.names[at] for at in recorded.name[recorded.kind != observer.MEMORY].tolist())
    assert Counter(name for _, name, _, _ in trace.slices) == expected
    assert len(trace.flows) == len(recorded.links[0])


def test_pprof_adds_up(recorded, tmp_path):
    profile = fields(gzip.decompress(written("pprof", recorded, tmp_path)))
    strings = [text.decode() for text in profile[6]]
    assert strings[0] == ""
    kinds = [(strings[f[1][0]], strings[f[2][0]]) for f in map(fields, profile[1])]
    assert kinds == [("calls", "count"), ("cpu", "nanoseconds"), ("device", "nanoseconds"), ("memory", "bytes")]
    functions = {f[1][0]: f for f in map(fields, profile[5])}
    locations = {f[1][0]: fields(f[4][0])[1][0] for f in map(fields, profile[4])}
    samples = [(numbers(f[1][0]), numbers(f[2][0])) for f in map(fields, profile[2])]
    assert sum(values[0] for _, values in samples) == len(recorded)
    assert sum(values[1] for _, values in samples) == int(recorded.self_ns.sum())
    assert profile[9] == [recorded.wall_start_ns] and strings[profile[14][0]] == "cpu"
    leaves = {strings[functions[locations[stack[0]]][2][0]] for stack, _ in samples}
    assert "aten::addmm" in leaves
    roots = {strings[functions[locations[stack[-1]]][2][0]] for stack, values in samples if len(stack) > 2}
    assert any("<module>" in root for root in roots)
    [step] = [f for f in functions.values() if strings[f[2][0]].endswith(": step") and "record_with" in strings[f[2][0]]]
    assert strings[step[4][0]] == "record_with_torch.py" and step[5][0] > 10


# ------------------------------------------------------------------------------ tables


def test_csv_of_events_and_of_averages(recorded, tmp_path):
    rows = list(csv.DictReader(io.StringIO(written("csv", recorded, tmp_path).decode(), newline="")))
    assert len(rows) == len(recorded)
    assert sum(int(row["self_ns"]) for row in rows) == int(recorded.self_ns.sum())
    averages = written("csv", recorded, tmp_path, what="averages").decode()
    [average] = [row for row in csv.DictReader(io.StringIO(averages, newline="")) if row["key"] == "aten::addmm"]
    assert int(average["count"]) == sum(row["name"] == "aten::addmm" for row in rows)
    with pytest.raises(ValueError, match="'events' or 'averages'"):
        written("csv", recorded, tmp_path, what="nonsense")


def test_a_missing_extra_is_named(recorded, tmp_path, monkeypatch, fixtures):
    for module in ("pandas", "polars", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    averages = load(fixtures / "mlp_plain.json.gz").key_averages()
    with pytest.raises(ImportError, match=r"mindtorch_v2\[pandas\]"):
        averages.to_pandas()
    with pytest.raises(ImportError, match=r"mindtorch_v2\[parquet\]"):
        averages.to_arrow()
    with pytest.raises(ImportError, match=r"mindtorch_v2\[polars\]"):
        averages.to_polars()
    with pytest.raises(ImportError, match=r"mindtorch_v2\[parquet\]"):
        written("parquet", recorded, tmp_path)
