"""The Kineto trace: made-up events written exactly, and real ones as readers need them."""

from __future__ import annotations

import gzip
import json
import os
import random
import re

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import ProfilerActivity, _ExperimentalConfig, profile, record_function
from mindtorch_v2.profiler._io.files import write_file
from mindtorch_v2.profiler.exporters import _lines, chrome, event_list
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

QUARTER_NS = 7_889_238 * 10**9
START = 5_000_000  # where the made-up clock begins


def row(name, start, end, kind=observer.OP, **more):
    return {"name": name, "start": START + start, "end": START + end, "kind": kind, "thread": 77, **more}


def store_of(*rows, memory=(), **more):
    meta = {"clock_start_ns": START, "wall_start_ns": QUARTER_NS * 200 + 10**9, "trace_id": "ABC", "pid": 42, **more}
    return EventStore.from_rows(rows, memory, **meta)


def written(store, tmp_path, name="t.json", **options):
    path = tmp_path / name
    chrome.export(store, path, **options)
    content = path.read_bytes()
    return json.loads(gzip.decompress(content) if name.endswith(".gz") else content)


def spans(data, category):
    return [event for event in data["traceEvents"] if event["ph"] == "X" and event.get("cat") == category]


# ------------------------------------------------------------------------------ numbers as text


def texts(piece, count):
    return [line.decode().strip() for line in _lines.lines([piece], count)]


def test_numbers():
    values = np.array([0, 7, 10, 9_999, 10_000, 123_456_789, 99, 10**15 + 3])
    assert texts(_lines.number(values), len(values)) == [str(v) for v in values]
    values = np.array([-5, 0, 12_345, -12_345])
    assert texts(_lines.signed(values), 4) == ["-5", "0", "12345", "-12345"]


def test_thousandths_always_have_three_places():
    values = np.array([0, 1, 999, 1000, 12_345, 3_925_125_316_769_247])
    assert texts(_lines.thousandths(values), 6) == ["0.000", "0.001", "0.999", "1.000", "12.345", "3925125316769.247"]


def test_pieces_shown_in_some_lines_only():
    chosen = np.array([True, False])
    assert texts(_lines.where(chosen, _lines.number(np.array([1, 2])), b"null"), 2) == ["1", "null"]


# ------------------------------------------------------------------------------ made-up events


def test_an_op_field_by_field(tmp_path):
    info = InputInfo(((2, 3), (), ()), ("float", "Scalar", "ScalarList"), ((3, 1), (), ()), (None, 2.0, (1, 0.1)))
    data = written(store_of(row("aten::add", 1000, 3500, seq=4, inputs=info)), tmp_path)
    assert spans(data, "cpu_op") == [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::add",
            "pid": 42,
            "tid": 77,
            "ts": 1000001.0,
            "dur": 2.5,
            "args": {
                "External id": 1,
                "Record function id": 0,
                "Sequence number": 4,
                "Fwd thread id": 0,
                "Ev Idx": 0,
                "Concrete Inputs": ["", "2.", "[1, 0.10000000000000001]"],
                "Input type": ["float", "Scalar", "ScalarList"],
                "Input Strides": [[3, 1], [], []],
                "Input Dims": [[2, 3], [], []],
            },
        }
    ]
    assert data["baseTimeNanoseconds"] == QUARTER_NS * 200


def test_top_level_in_order(tmp_path):
    options = {"record_shapes": True, "with_stack": True, "with_flops": False}
    data = written(store_of(options=options), tmp_path, metadata={"mine": "[1]"})
    assert list(data) == [
        "schemaVersion",
        "deviceProperties",
        "trace_id",
        "with_stack",
        "record_shapes",
        "mine",
        "host_name",
        "displayTimeUnit",
        "baseTimeNanoseconds",
        "traceEvents",
        "traceName",
    ]
    brief = written(store_of(), tmp_path, brief=True)
    assert "trace_id" not in brief and "host_name" not in brief
    assert brief["traceName"] == str(tmp_path / "t.json")


def test_kinds_have_categories(tmp_path):
    data = written(
        store_of(
            row("aten::mul", 10, 20, seq=1),
            row("MulBackward0", 30, 40, observer.BACKWARD, seq=1, fwd_thread=77),
            row("label", 5, 50, observer.SCOPE),
            row("f.py(3): f", 4, 60, observer.PYTHON),
            row("nn.Module: Linear_1", 3, 70, observer.MODULE),
        ),
        tmp_path,
    )
    assert [(e["name"], e["args"].get("Sequence number")) for e in spans(data, "cpu_op")] == [
        ("aten::mul", 1),
        ("MulBackward0", 1),
    ]
    assert spans(data, "user_annotation")[0]["args"].keys() == {"External id", "Record function id", "Ev Idx"}
    module, function = spans(data, "python_function")
    assert module["args"] == {"Python parent id": None, "Python id": 1, "Ev Idx": 3, "Python module id": 1}
    assert function["args"] == {"Python parent id": 1, "Python id": 2, "Ev Idx": 4}
    indices = [e["args"]["Ev Idx"] for e in data["traceEvents"] if "Ev Idx" in e.get("args", {})]
    assert sorted(indices) == list(range(5))


def test_flows_join_forward_and_backward(tmp_path):
    data = written(
        store_of(
            row("aten::mul", 10, 20, seq=1),
            row("aten::sum", 30, 40, seq=2),
            row("SumBackward0", 50, 60, observer.BACKWARD, seq=2, fwd_thread=77),
            row("MulBackward0", 70, 80, observer.BACKWARD, seq=1, fwd_thread=77),
        ),
        tmp_path,
    )
    flows = [(e["ph"], e["id"], e["ts"], e.get("bp")) for e in data["traceEvents"] if e["ph"] in "sf"]
    ts = [e["ts"] for e in spans(data, "cpu_op")]
    assert flows == [("s", 2, ts[0], None), ("s", 1, ts[1], None), ("f", 1, ts[2], "e"), ("f", 2, ts[3], "e")]


def test_memory(tmp_path):
    memory = [
        {"time": START + 15, "bytes": 400, "addr": 9, "thread": 77},
        {"time": START + 25, "bytes": -400, "addr": 9, "thread": 77},
    ]
    data = written(store_of(row("aten::empty", 10, 20), memory=memory), tmp_path)
    first, second = [e for e in data["traceEvents"] if e.get("cat") == "cpu_instant_event"]
    assert first["args"] == {
        "Total Reserved": 0,
        "Total Allocated": 400,
        "Bytes": 400,
        "Device Id": -1,
        "Device Type": 0,
        "Addr": 9,
        "finished": False,
        "Ev Idx": 1,
    }
    assert (first["ph"], first["s"], first["name"], first["tid"]) == ("i", "t", "[memory]", 77)
    assert (second["args"]["Bytes"], second["args"]["Total Allocated"]) == (-400, 0)


@pytest.mark.parametrize("name", ['a "quoted" name', "back\\slash", "line\nbreak", "tab\t", "größe ∑", "", "\x00null"])
def test_any_name_survives(tmp_path, name):
    data = written(store_of(row(name, 1, 2, observer.SCOPE)), tmp_path)
    assert spans(data, "user_annotation")[0]["name"] == name


def test_every_id_is_a_number(tmp_path):
    data = written(store_of(row("aten::add", 1, 2)), tmp_path)
    assert {type(e[key]) for e in data["traceEvents"] for key in ("pid", "tid")} == {int}


def test_text_form(tmp_path):
    written(store_of(row("aten::add", 1, 2, seq=3)), tmp_path)
    text = (tmp_path / "t.json").read_text()
    assert not re.search(r'":[^ ]', text), "a blank after every colon"
    assert len(re.findall(r'"(?:ts|dur)": +\d+\.\d{3}[,}]', text)) == len(re.findall(r'"(?:ts|dur)"', text))


def test_blocks_join_seamlessly(tmp_path, monkeypatch):
    rows = [row(f"op{i % 5}", 10 * i, 10 * i + 5, seq=i if i % 3 else -1) for i in range(50)]
    whole = written(store_of(*rows), tmp_path)
    monkeypatch.setattr(chrome, "_BLOCK", 7)
    assert written(store_of(*rows), tmp_path) == whole


def test_gzip(tmp_path):
    store = store_of(row("aten::add", 1, 2))
    packed = written(store, tmp_path, "t.json.gz")
    assert packed["traceEvents"] == written(store, tmp_path)["traceEvents"]


# ------------------------------------------------------------------------------ files


def test_a_missing_folder_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        chrome.export(store_of(), tmp_path / "no" / "t.json")


def test_a_failure_leaves_the_old_file(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("old")

    def failing():
        yield b"new"
        raise OSError("disk full")

    with pytest.raises(OSError):
        write_file(path, failing())
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["t.json"]


def test_a_folder_is_not_replaced(tmp_path):
    with pytest.raises(OSError):
        write_file(tmp_path, [b"x"])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anything")
def test_a_read_only_file_is_an_error(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("old")
    path.chmod(0o444)
    with pytest.raises(PermissionError):
        write_file(path, [b"new"])


def test_a_link_is_followed(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", [b"new"])
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"


def test_a_path_must_be_a_path():
    for path in (None, 5, 2.5, ["t.json"]):
        with pytest.raises(AttributeError, match=r"a path is text or os\.PathLike"):
            chrome.export(store_of(), path)


# ------------------------------------------------------------------------------ real events


def overlapping(data):
    """Names of spans that lie partly in and partly outside of another one of their thread."""
    overlapping = []
    by_thread = {}
    for event in data["traceEvents"]:
        if event["ph"] == "X":
            by_thread.setdefault((event["pid"], event["tid"]), []).append(event)
    for events in by_thread.values():
        ends = []
        for event in sorted(events, key=lambda e: (round(e["ts"] * 1000), -e["dur"])):
            start = round(event["ts"] * 1000)
            end = start + round(event["dur"] * 1000)
            while ends and ends[-1] <= start:
                ends.pop()
            if ends and end > ends[-1]:
                overlapping.append(event["name"])
            ends.append(end)
    return overlapping


@pytest.mark.parametrize("with_stack", [False, True])
def test_spans_nest_strictly(tmp_path, with_stack):
    x = torch.ones(3, requires_grad=True)

    def opened(label):
        label.__enter__()

    with profile(with_stack=with_stack, profile_memory=True, record_shapes=True) as prof:
        with record_function("outer"):
            (x * x).sum().backward()
        label = record_function("opened by a helper")
        opened(label)
        x + x
        label.__exit__(None, None, None)
    prof.export_chrome_trace(tmp_path / "t.json")
    data = json.loads((tmp_path / "t.json").read_text())
    assert overlapping(data) == []
    assert {"outer", "opened by a helper"} == {e["name"] for e in spans(data, "user_annotation")}


def test_the_short_trace_of_a_list_of_events(tmp_path):
    with profile() as prof, record_function("label"):
        torch.ones(3)
    event_list.export(prof.events(), tmp_path / "t.json")
    first, *_ = json.loads((tmp_path / "t.json").read_text())
    assert (first["name"], first["ph"], first["pid"], first["args"]) == ("label", "X", "CPU functions", {})
    with pytest.raises(AttributeError):
        event_list.export(prof.key_averages(), tmp_path / "t.json")


def test_exporting_twice(tmp_path):
    with profile() as prof:
        torch.ones(3)
    prof.export_chrome_trace(tmp_path / "a.json")
    prof.export_chrome_trace(str(tmp_path / "b.json.gz"))
    with gzip.open(tmp_path / "b.json.gz") as file:
        assert json.load(file)["traceEvents"] == json.loads((tmp_path / "a.json").read_text())["traceEvents"]


# ------------------------------------------------------------------------------ filters of activities

CPU = ProfilerActivity.CPU
KEPT = {
    "CPU_OP": {"cpu_op", "fwdbwd"},
    "USER_ANNOTATION": {"user_annotation"},
    "PYTHON_FUNCTION": {"python_function"},
    "CPU_INSTANT_EVENT": {"cpu_instant_event"},
    "EXTERNAL_CORRELATION": set(),
    "CUDA_RUNTIME": set(),
}


@pytest.mark.parametrize(
    "chosen",
    [
        ["CPU_OP"],
        ["USER_ANNOTATION"],
        ["PYTHON_FUNCTION"],
        ["CPU_INSTANT_EVENT", "CPU_OP"],
        ["EXTERNAL_CORRELATION", "CUDA_RUNTIME"],
        [],
        list(KEPT),
    ],
)
def test_filters_choose_what_is_in_the_trace(tmp_path, chosen):
    x = torch.ones(3, requires_grad=True)
    with profile(activities=[{CPU: chosen}], profile_memory=True, with_stack=True) as prof:
        with record_function("label"):
            (x * x).sum().backward()
    assert prof.activity_filters == {CPU: set(chosen)}
    prof.export_chrome_trace(tmp_path / "t.json")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    assert {e["cat"] for e in events if "cat" in e} == {"Trace"}.union(*(KEPT[name] for name in chosen))
    indices = [e["args"]["Ev Idx"] for e in events if "Ev Idx" in e.get("args", {})]
    assert sorted(indices) == list(range(len(indices)))
    # The views show everything all the same.
    assert {"label", "aten::mul", "MulBackward0"} <= {event.name for event in prof.events()}


@pytest.mark.parametrize("name", ["cpu_op", "nonsense", "GPU_MEMCPY"])
def test_a_filter_that_its_activity_does_not_have(name):
    prof = profile(activities=[{CPU: [name]}])
    with pytest.raises(RuntimeError, match=f"Unknown or non-member activity type name: '{name}'"):
        prof.start()


def test_filters_of_the_wrong_kind():
    with pytest.raises(TypeError):
        profile(activities=[{CPU: 5}])
    with pytest.raises(ValueError, match="more than once"):
        profile(activities=[{CPU: ["CPU_OP"]}, CPU])


def test_filters_of_a_device(tmp_path):
    rows = [
        row("launch", 2, 3, observer.RUNTIME, correlation=1),
        row("op", 0, 10),
        row(
            "k",
            20,
            30,
            observer.KERNEL,
            device_type=20,
            device_index=0,
            stream=1,
            launch_thread=77,
            launch_ns=START + 2,
            correlation=1,
        ),
        row("c", 30, 40, observer.COPY, device_type=20, device_index=0, stream=1, launch_thread=77, launch_ns=START + 3),
    ]
    for away, left in (
        (["gpu_memcpy"], ["op", "launch", "k"]),
        (["kernel", "privateuse1_runtime"], ["op", "c"]),
        (["cpu_op"], ["launch", "k", "c"]),
    ):
        data = written(store_of(*rows, options={"left_out_of_trace": away}), tmp_path)
        assert [e["name"] for e in data["traceEvents"] if e["ph"] == "X" and e["cat"] != "Trace"] == left
        assert sum(e["ph"] == "s" for e in data["traceEvents"]) == sum(name in left for name in ("k", "c"))


def test_events_know_their_number_in_the_trace_when_asked(tmp_path):
    config = _ExperimentalConfig(expose_kineto_event_metadata=True)
    with profile(with_stack=True, profile_memory=True, experimental_config=config) as prof:
        torch.ones(3) + 1
        torch.ones(3)
    prof.export_chrome_trace(tmp_path / "t.json")
    spans = [e for e in json.loads((tmp_path / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    expected = {e["args"]["Ev Idx"]: e["name"] for e in spans if "Ev Idx" in e["args"]}
    indices = {json.loads(f"{{{e.metadata_json}}}")["Ev Idx"]: e.trace_name for e in prof.events() if e.trace_name}
    assert indices == expected
    with profile() as prof:
        torch.ones(3)
    assert prof.events()[0].metadata_json == "" and prof.events()[0].event_metadata is None


def test_events_end_within_the_window_for_readers_that_add_floats(tmp_path):
    """`ts + dur <= end` is asked by PyTorch's own test of traces, of doubles whose last place is half a nanosecond."""
    chance = random.Random(0)
    for _ in range(40):
        start, length = chance.randrange(10**6), chance.randrange(10**6)
        store = store_of(row("a", start, start + length), clock_end_ns=START + start + length)
        events = written(store, tmp_path)["traceEvents"]
        (end,) = (event["ts"] for event in events if event["name"] == "Record Window End")
        assert [event["name"] for event in events if event["ph"] == "X" and event["ts"] + event["dur"] > end] == []
