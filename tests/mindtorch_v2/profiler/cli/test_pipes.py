"""Recordings that come through pipes: named ones, process substitution, /dev/stdin and `-`."""

from __future__ import annotations

import gzip
import io
import os
import sys
import threading
import tracemalloc
from contextlib import suppress

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.formats import TraceError
from mindtorch_v2.profiler.formats._source import Pipe

FIXTURES = os.path.join(os.path.dirname(__file__), "..", "fixtures")
TORCH_TRACE = os.path.join(FIXTURES, "mlp_everything.json.gz")

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes have no names here")


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """The same recording in all forms that are read."""
    folder = tmp_path_factory.mktemp("recorded")
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            torch.ones(2, 2) @ torch.ones(2, 2)
    prof.save(folder / "run.mtp")
    prof.export_chrome_trace(str(folder / "run.json"))
    trace = (folder / "run.json").read_bytes()
    return {"saved": (folder / "run.mtp").read_bytes(), "trace": trace, "gzipped": gzip.compress(trace)}


@pytest.fixture
def piped(tmp_path):
    """A function that writes data to a new pipe and returns the pipe's path."""
    threads = []

    def start(data):
        path = tmp_path / f"pipe{len(threads)}"
        os.mkfifo(path)

        def feed():
            with suppress(BrokenPipeError):  # the reader may have seen enough
                path.write_bytes(data)

        threads.append(threading.Thread(target=feed, daemon=True))
        threads[-1].start()
        return path

    yield start
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()


@pytest.fixture
def stdin(monkeypatch):
    """A function that replaces standard input."""
    return lambda data: monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


@pytest.mark.parametrize("form", ["saved", "trace", "gzipped"])
def test_a_pipe_gives_what_the_file_gives(contents, piped, tmp_path, form):
    (tmp_path / "file").write_bytes(contents[form])
    from_file, from_pipe = load(tmp_path / "file"), load(piped(contents[form]))
    assert from_pipe.recovery.to_dict() == from_file.recovery.to_dict()
    assert from_pipe.key_averages().table() == from_file.key_averages().table()


@pytest.mark.parametrize("form", ["saved", "trace", "gzipped"])
@pytest.mark.parametrize(
    "command",
    [
        ["table"],
        ["events"],
        ["tree"],
        ["flops"],
        ["advice"],
        ["validate"],
        ["report", "-o", "out.html"],
        ["convert", "-o", "out.csv"],
        ["repair", "-o", "out.mtp"],
    ],
)
def test_every_command_reads_standard_input(capsys, monkeypatch, tmp_path, contents, stdin, form, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_bytes(contents[form])
    name, *options = command
    printed = []
    for path in ("file", "-"):
        stdin(contents[form])
        code = main([name, path, *options])
        printed.append((code, capsys.readouterr().out.replace("file:", "-:")))
        assert code == 0
    assert printed[0] == printed[1]


def test_diff_of_a_pipe(capsys, contents, piped, tmp_path):
    (tmp_path / "file").write_bytes(contents["saved"])
    assert main(["diff", str(tmp_path / "file"), str(piped(contents["trace"]))]) == 0
    assert "step" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["report"], ["convert", "--to", "csv"]])
def test_what_is_made_of_a_pipe_needs_a_name(capsys, contents, stdin, tmp_path, command):
    os.mkfifo(tmp_path / "pipe")
    for path in ("-", tmp_path / "pipe"):
        stdin(contents["saved"])
        assert main([command[0], str(path), *command[1:]]) == 2
        assert "say with --output what file to write" in capsys.readouterr().err
    assert os.listdir(tmp_path) == ["pipe"]


@pytest.mark.parametrize("data", [b"", b"hello", b"{", b"\x89MTPROF\n"])
def test_a_pipe_without_a_recording_is_one_line(capsys, stdin, data):
    stdin(data)
    assert main(["table", "-"]) == 3
    printed = capsys.readouterr()
    assert printed.out == "" and printed.err.startswith("mtprof table: -: ") and len(printed.err.splitlines()) == 1


def test_no_standard_input_is_said(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["table", "-"]) == 2
    assert capsys.readouterr().err == "mtprof table: there is no standard input to read from\n"


@pytest.mark.parametrize("form", ["saved", "trace", "gzipped"])
def test_max_bytes_holds_for_pipes(contents, piped, form):
    with pytest.raises(TraceError, match="more than"):
        load(piped(contents[form]), max_bytes=100)


def test_half_a_profile_from_a_pipe(contents, piped):
    saved = contents["saved"]
    half = load(piped(saved[: len(saved) * 2 // 3]))
    assert not half.recovery.complete


def test_a_file_of_torch_from_a_pipe(piped):
    with open(TORCH_TRACE, "rb") as file:
        data = file.read()
    assert load(piped(data)).key_averages().table() == load(TORCH_TRACE).key_averages().table()


class Endless(io.RawIOBase):
    """A trace of `count` events that is generated while it is read, in pieces of odd sizes."""

    def __init__(self, count):
        self._rest = iter([b'{"traceEvents": [', *([self._event(n) for n in range(100)] * (count // 100)), b"{}]}"])
        self._left = b""

    @staticmethod
    def _event(number):
        return (
            b'{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": %d, "dur": 1, '
            b'"args": {"x": "%b"}},' % (2 * number, b"." * 2000)
        )

    def read(self, count=-1):
        self._left = self._left or next(self._rest, b"")
        piece, self._left = self._left[: min(count, 1700)], self._left[min(count, 1700) :]
        return piece


def test_a_long_pipe_is_read_in_bounded_memory():
    count = 20_000  # 43 MB
    tracemalloc.start()
    try:
        loaded = load(Pipe(Endless(count), "endless"))
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(loaded) == count
    assert most < 12 << 20


def test_what_was_looked_at_is_still_there():
    pipe = Pipe(io.BytesIO(b"abcdef"), "pipe")
    assert (pipe.peek(3), pipe.peek(2), pipe.read(2), pipe.peek(3), pipe.read(100), pipe.read(1)) == (
        b"abc",
        b"ab",
        b"ab",
        b"cde",
        b"cdef",
        b"",
    )
    assert os.fspath(pipe) == "pipe"
