"""The progress line on a terminal that keeps what is written, by a clock that the test moves."""

from __future__ import annotations

import io
import os
import re
from types import SimpleNamespace

import pytest

from mindtorch_v2.profiler.cli import progress, reading
from mindtorch_v2.profiler.cli.progress import ProgressLine

TRACE = os.path.join(os.path.dirname(__file__), "..", "fixtures", "mlp_everything.json.gz")


class Terminal(io.StringIO):
    """A stream whose `line` is what a terminal shows of it."""

    def isatty(self):
        return True

    @property
    def line(self):
        cells: list[str] = []
        for part in self.getvalue().split("\r"):
            cells[: len(part)] = part
        return "".join(cells).rstrip()


@pytest.fixture
def terminal(monkeypatch):
    stream = Terminal()
    # pytest replaces sys.stderr between a fixture and its test.
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    return stream


@pytest.fixture
def clock(monkeypatch):
    """A function that moves the time on."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def advance(seconds):
        now[0] += seconds

    return advance


def test_it_shows_how_much_is_done_and_is_erased(terminal, clock):
    with ProgressLine("reading a.json") as line:
        line.update(1_000_000, 20_000_000)
        assert terminal.getvalue() == ""  # it may be over soon
        clock(1.5)
        line.update(5_000_000, 20_000_000)
        assert terminal.line == "reading a.json: 25% of 20 MB"
        clock(0.05)
        line.update(6_000_000, 20_000_000)
        assert terminal.line == "reading a.json: 25% of 20 MB"  # not at every block
        clock(0.05)
        line.update(20_000_000, 20_000_000)
        assert terminal.line == "reading a.json: 20 MB"
    assert terminal.line == ""
    assert terminal.getvalue().endswith("\r")
    assert "\n" not in terminal.getvalue()


def test_quick_work_shows_nothing(terminal, clock):
    with ProgressLine("reading") as line:
        clock(0.9)
        line.update(1, 2)
    assert terminal.getvalue() == ""


def test_a_pipe_has_no_percentage(terminal, clock):
    with ProgressLine("reading -") as line:
        clock(2)
        line.update(7_000_000, 7_000_000)
        assert terminal.line == "reading -: 7 MB"


@pytest.mark.parametrize("stream", [io.StringIO(), None])
def test_without_a_terminal_there_is_none(monkeypatch, clock, stream):
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=stream))
    with ProgressLine("reading") as line:
        clock(2)
        line.update(1, 2)
    assert stream is None or stream.getvalue() == ""


def test_it_fits_the_terminal_and_has_no_control_characters(terminal, clock):
    with ProgressLine("reading \x1b[31m\n" + "x" * 200) as line:
        clock(2)
        line.update(1_000_000, 2_000_000)
        assert re.fullmatch(r"reading \\x1b\[31m\\nx+: 50% of 2 MB", terminal.line)
        assert len(terminal.line) == 79


def test_it_is_erased_when_reading_fails(terminal, clock):
    with pytest.raises(ValueError), ProgressLine("reading") as line:
        clock(2)
        line.update(1_000_000, 2_000_000)
        raise ValueError
    assert terminal.line == ""


def test_reading_a_file_shows_it(monkeypatch, terminal):
    monkeypatch.setattr(progress, "_PATIENCE_S", 0.0)
    reading.open_recording(TRACE)
    assert re.match(r"\rreading .*: 0 MB\r", terminal.getvalue())
    assert terminal.line == ""
