"""Every export: whatever goes wrong while writing, the old file stays; whatever is recorded, the JSON is strict."""

from __future__ import annotations

import builtins
import errno
import gzip
import io
import json
import math
import os

import orjson
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, tensorboard_trace_handler
from mindtorch_v2.profiler._io import strict_json
from mindtorch_v2.profiler.report import comparison
from mindtorch_v2.profiler.results.loaded import load
from mindtorch_v2.profiler.results.writers import get as exporter
from mindtorch_v2.profiler.session import live_tensors as live
from mindtorch_v2.profiler.store.store import EventStore, InputInfo, ThreadInfo

x = torch.ones(3)


@pytest.fixture(scope="module")
def prof():
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as made:
        with record_function("label"):
            (x + x).sum()
    return made


def _execution_trace(prof, path):
    observed = ExecutionTraceObserver().register_callback(str(path))
    observed.start()
    x * x
    observed.stop()
    observed.unregister_callback()


WRITERS = {
    "trace.json": lambda prof, path: prof.export_chrome_trace(path),
    "trace.json.gz": lambda prof, path: prof.export_chrome_trace(path),
    "stacks.txt": lambda prof, path: prof.export_stacks(path),
    "timeline.json": lambda prof, path: exporter_of_memory(prof, path),
    "timeline.raw.json.gz": lambda prof, path: exporter_of_memory(prof, path),
    "timeline.html": lambda prof, path: exporter_of_memory(prof, path),
    "list.json": lambda prof, path: prof.events().export_chrome_trace(path),
    "saved.mtp": lambda prof, path: prof.save(path),
    "scope.json": lambda prof, path: exporter("speedscope")(prof.profiler.store, path),
    "perfetto.pftrace": lambda prof, path: exporter("perfetto")(prof.profiler.store, path),
    "profile.pb.gz": lambda prof, path: exporter("pprof")(prof.profiler.store, path),
    "events.csv": lambda prof, path: exporter("csv")(prof.profiler.store, path),
    "report.html": lambda prof, path: exporter("html")(prof.profiler.store, path),
    "graph.json": _execution_trace,
    "tensors.json": lambda prof, path: live.write_live_tensors(path),
}


def exporter_of_memory(prof, path):
    with pytest.warns(FutureWarning):
        prof.export_memory_timeline(str(path))


def test_the_table_has_every_writer():
    """A writer that does not go through _io.files would be missed here."""
    assert comparison.write_file is live.write_file


# ------------------------------------------------------------------------------ failures

FAILURES = {"disk full": errno.ENOSPC, "bad disk": errno.EIO, "interrupted": errno.EINTR, "quota": errno.EDQUOT}


class Calls:
    """Counts calls that touch the file, and lets the chosen one fail."""

    def __init__(self, fail_at, number):
        self.fail_at, self.number, self.done = fail_at, number, 0

    def __call__(self):
        self.done += 1
        if self.done == self.fail_at:
            raise OSError(self.number, os.strerror(self.number))


class FailingFile(io.FileIO):
    """A file each of whose writes, and whose closing, may fail."""

    calls: Calls

    def write(self, data):
        self.calls()
        return super().write(memoryview(data)[:4096])

    def close(self):
        closed = self.closed
        super().close()
        if not closed:
            self.calls()


def failing(monkeypatch, fail_at, number):
    """Put a layer that fails at a call below everything that _io.files uses."""
    calls = Calls(fail_at, number)

    def opened(file, mode="r", *more, **named):
        if mode != "xb":
            return real_open(file, mode, *more, **named)
        calls()
        raw = FailingFile(file, mode, **named)
        raw.calls = calls
        return io.BufferedWriter(raw, 4096)

    def before(function):
        def call(*args, **named):
            calls()
            return function(*args, **named)

        return call

    real_open = builtins.open
    monkeypatch.setattr(builtins, "open", opened)
    monkeypatch.setattr(os, "chmod", before(os.chmod))
    monkeypatch.setattr(os, "replace", before(os.replace))
    return calls


@pytest.mark.parametrize("name", WRITERS)
def test_whichever_call_fails_the_old_file_stays(prof, tmp_path, monkeypatch, name):
    # Every call lists the same live tensors, and walks through the millions of objects of a test process once.
    kept = live.live_tensors()
    monkeypatch.setattr(live, "live_tensors", lambda limit=None: kept[:limit])
    path = tmp_path / name
    path.write_text("before")
    with monkeypatch.context() as patched:
        calls = failing(patched, 0, 0)
        WRITERS[name](prof, path)
    total = calls.done
    assert total >= 5  # a temporary file, a write, its closing, its permissions, its renaming
    path.write_text("before")
    for number in FAILURES.values():
        for at in [*range(1, min(total, 8) + 1), *range(max(9, total - 3), total + 1)]:
            with monkeypatch.context() as patched:
                failing(patched, at, number)
                if number == errno.EINTR:  # Python writes again by itself, where it is a write
                    try:
                        WRITERS[name](prof, path)
                        path.write_text("before")
                        continue
                    except InterruptedError as error:
                        caught = error
                else:
                    with pytest.raises(OSError) as raised:
                        WRITERS[name](prof, path)
                    caught = raised.value
            assert caught.errno == number and caught.filename == str(path)
            assert path.read_text() == "before"
            assert [one.name for one in tmp_path.iterdir()] == [name]
    WRITERS[name](prof, path)
    assert path.read_bytes() != b"before"


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_device_is_named(prof, name, tmp_path):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    path = tmp_path / name
    path.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        WRITERS[name](prof, path)
    assert caught.value.filename == str(path)


def test_an_interruption_leaves_the_old_file(prof, tmp_path, monkeypatch):
    path = tmp_path / "trace.json"
    path.write_text("before")

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        prof.export_chrome_trace(path)
    assert [one.name for one in tmp_path.iterdir()] == ["trace.json"] and path.read_text() == "before"


def test_the_reason_is_told_even_when_cleaning_up_fails(prof, tmp_path, monkeypatch):
    def fail(*args):
        raise OSError(errno.EIO, "bad disk")

    monkeypatch.setattr(os, "unlink", fail)
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(OSError, match="full"):
        prof.export_chrome_trace(tmp_path / "trace.json")


def test_tensorboard_gets_whole_files(prof, tmp_path, monkeypatch):
    calls = failing(monkeypatch, 4, errno.ENOSPC)
    with pytest.raises(OSError):
        tensorboard_trace_handler(str(tmp_path))(prof)
    assert calls.done >= 4 and not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------ strict JSON

NAMES = {
    "quotes": 'a "quoted" \\ name',
    "controls": "".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029",
    "nul": "\0",
    "half a pair": "\ud800",
    "the other half": "x\udfff",
    "the wrong way round": "\udc00\ud800",
    "an escape": "\\ud800",
    "a pair": "\U0001f600",
    "a path": os.fsdecode(b"/tmp/\xff"),
    "markup": "</script><b>&amp;",
    "empty": "",
    "long": "a" * 70_000,
    "no number": "nn.Module: ]}",
    "not a number": "nn.Module: x_1e5",
    "other digits": "nn.Module: x_\u0661",
}
VALUES = {
    "nan": math.nan,
    "inf": [math.inf, {"a": -math.inf}],
    "deep": {"a": [{"b": (1, 2.5, None, True)}]},
    "huge": 10**40,
    "text": '\ud800"',
    "keys": {"\udfff": 1},
}


def nasty_store(name, value, kind=0):
    rows = [
        {
            "name": name,
            "start": 1,
            "end": 9_007_199_254_740_993,
            "kind": kind,
            "module": name,
            "stack": (name, "f.py(1): g"),
            "inputs": InputInfo(((2,), ()), (name, "Scalar"), ((1,), ()), (None, math.nan)),
        }
    ]
    store = EventStore.from_rows(rows, metadata={"said": value}, options={"verbose": True, "with_stack": True})
    store.threads = [ThreadInfo(1, name)]
    return store


CASES = [*((name, kind, "deep") for name in NAMES for kind in (0, 3, 5, 6)), *(("quotes", 0, value) for value in VALUES)]


@pytest.mark.parametrize(("name", "kind", "value"), CASES)
def test_whatever_is_recorded_the_trace_is_strict(tmp_path, name, kind, value):
    name, value = NAMES[name], VALUES[value]
    store = nasty_store(name, value, kind)
    exporter("chrome")(store, tmp_path / "t.json")
    text = (tmp_path / "t.json").read_bytes()
    text.decode("ascii")
    trace = json.loads(text, parse_constant=lambda constant: pytest.fail(constant))
    if value != VALUES["huge"]:
        orjson.loads(text)  # takes no halves of pairs either
    clean = name.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert clean in [event["name"] for event in trace["traceEvents"]]
    assert '"dur": 9007199254740.992' in text.decode()  # a double would be one nanosecond off


@pytest.mark.parametrize("form", ["speedscope", "perfetto", "pprof", "csv", "html", "saved", "stacks", "collapsed"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_whatever_is_recorded_can_be_written(tmp_path, name, form):
    path = tmp_path / "out"
    exporter(form)(nasty_store(name, math.nan), path)
    data = path.read_bytes()
    if form == "speedscope":
        orjson.loads(data)
    elif form == "saved":
        assert load(path).store.names[0] == name
    elif form == "pprof":
        assert gzip.decompress(data)
    elif form in ("stacks", "collapsed"):
        assert len(data.splitlines()) == 1
    else:
        assert data


@pytest.mark.parametrize(
    ("text", "fine"), [("NaN", False), ("[Infinity]", False), ("{", False), ("1e5", True), ('"\\ud800"', True)]
)
def test_metadata_is_strict(text, fine, tmp_path):
    made = profile()
    if not fine:
        with pytest.raises(ValueError):
            made.add_metadata_json("key", text)
        with pytest.raises(ValueError):
            made.preset_metadata_json("key", text)
        return
    made.add_metadata_json("key", text)
    with made:
        x + x
    made.export_chrome_trace(tmp_path / "t.json")
    assert orjson.loads((tmp_path / "t.json").read_bytes())["key"] in (1e5, "\ufffd")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (math.nan, '"NaN"'),
        ([-math.inf], '["-Infinity"]'),
        ({math.inf: 1}, '{"Infinity": 1}'),
        ("\\ud800", '"\\\\ud800"'),
        ("\ud83d", '"\\ufffd"'),
        ("\U0001f600", '"\\ud83d\\ude00"'),
        ("\ud83d\ud83d\ude00", '"\\ufffd\\ud83d\\ude00"'),
    ],
)
def test_strict_json(value, text):
    assert strict_json.dumps(value) == text
