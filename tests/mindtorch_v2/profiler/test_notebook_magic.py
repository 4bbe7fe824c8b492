"""%%profile, with a shell that does what IPython's does; `make interop` runs a notebook."""

from __future__ import annotations

import linecache
import re
import sys
import threading
from types import SimpleNamespace

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import profiler
from mindtorch_v2.profiler.analysis.source.lines import source_lines


class Shell:
    def __init__(self):
        self.user_ns = {"torch": torch}
        self.shown = []
        self.execution_count = 3
        self.magics_manager = SimpleNamespace(magics={"cell": {}})

    def transform_cell(self, cell):
        return cell.replace("%pi", "3.0")

    def displayhook(self, value):
        self.shown.append(value)

    def register_magic_function(self, function, kind, name):
        self.magics_manager.magics[kind][name] = function

    def run(self, line, cell):
        return self.magics_manager.magics["cell"]["profile"](line, cell)


@pytest.fixture
def shell():
    shell = Shell()
    profiler.load_ipython_extension(shell)
    yield shell
    profiler.unload_ipython_extension(shell)
    assert shell.magics_manager.magics == {"cell": {}}


CELL = "x = torch.ones(3) * %pi\nx.sum()\n"


def test_a_cell_is_run_and_its_averages_are_shown(shell):
    averages = shell.run("prof --shapes", CELL)
    assert {"aten::ones", "aten::mul", "aten::sum"} <= {row.key for row in averages}
    assert shell.shown == [torch.tensor(9.0)] and shell.user_ns["x"].tolist() == [3.0] * 3
    assert shell.user_ns["prof"].key_averages(group_by_input_shape=True)[0].input_shapes is not None
    shell.run("", CELL.rstrip() + ";")
    assert len(shell.shown) == 1  # a semicolon hides the value


def test_stacks_begin_in_the_cell(shell):
    shell.run("prof --stack", "def step():\n    return torch.ones(2).add(1)\nstep()\n")
    stacks = [event.stack for event in shell.user_ns["prof"].events() if event.name == "aten::add"]
    assert stacks and all(any("step" in frame for frame in stack) for stack in stacks)
    assert all(stack[-1] == "<cell>(3): <module>" for stack in stacks)
    calls = [event.name for event in shell.user_ns["prof"].events() if event["kind"] == "python"]
    assert not any("test_notebook_magic" in name for name in calls)


def test_the_report_is_shown_in_the_cell_and_the_recording_saved(shell, tmp_path):
    report = shell.run(f"--all --report --save '{tmp_path}/cell.mtp'", CELL)
    html = report._repr_html_()
    assert html.startswith("<iframe") and 'sandbox="allow-scripts"' in html and "characters>" in repr(report)
    assert any(row.key == "aten::mul" for row in profiler.load(tmp_path / "cell.mtp").key_averages())


def test_the_saved_recording_has_the_text_of_the_cell(shell, tmp_path):
    class Compiler:
        def cache(self, source, number):
            self.number, name = number, "/tmp/kernel/cell.py"
            linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
            return name

    shell.compile, shell.displayhook = Compiler(), SimpleNamespace(prompt_count=3)
    shell.execution_count = 4  # it is the next cell's number while a cell runs
    shell.run(f"--stack --save '{tmp_path}/cell.mtp'", "def work():\n    return torch.ones(3)\nwork();\n")
    assert shell.compile.number == 3
    del linecache.cache["/tmp/kernel/cell.py"]  # as in another process
    (file,) = source_lines(profiler.load(tmp_path / "cell.mtp").store).files
    assert file.source.lines[1] == "    return torch.ones(3)" and file.note == ""
    assert file.lines[2].ops.keys() >= {"aten::ones"}


def test_a_flame_graph_stands_below_the_table(shell):
    shown = shell.run("--flame", "with torch.profiler.record_function('<b>'):\n    torch.ones(3).sum()\n")
    html = shown._repr_html_()
    table, _, flames = html.partition("<svg")
    assert "aten::sum" in table and flames.count("<rect") >= 3 and "<script" not in html
    assert "&lt;b&gt;: " in flames and "<b>" not in flames
    boxes = re.findall(r'<title>([^<]*)</title><rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"', flames)
    widths = {name.split(": ")[0] if ":: " not in name else name: float(width) for name, _, _, width in boxes}
    assert max(widths.values()) <= 1000 and max(int(y) for _, _, y, _ in boxes) >= 18
    assert "aten::sum" in repr(shown)


def test_threads_of_the_kernel_and_of_the_profiler_are_not_recorded(shell):
    before = {thread.name for thread in threading.enumerate()} - {"MainThread"}  # of other tests
    ended = threading.Event()
    kernels = type("Control", (threading.Thread,), {"__module__": "ipykernel.control"})
    threads = [kernels(target=ended.wait, name="kernel's"), threading.Thread(target=ended.wait, name="user's")]
    for thread in threads:
        thread.start()
    try:
        with profiler.listen():
            shell.run("prof --stack", "torch.ones(3)")
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    store = shell.user_ns["prof"]._recording()
    assert {thread.name for thread in store.threads} - before == {"MainThread", "user's"}


def test_what_ipython_writes_of_lists_is_short(shell):
    class Printer:
        def text(self, text):
            self.written = text

    shell.run("prof", "for _ in range(50): torch.ones(3).sum()\n")
    printer = Printer()
    shell.user_ns["prof"].events()._repr_pretty_(printer, False)
    assert printer.written.startswith("<EventList of ") and len(printer.written) < 40
    shell.user_ns["prof"].key_averages()._repr_pretty_(printer, False)
    assert "aten::sum" in printer.written and len(printer.written.splitlines()) < 20


@pytest.mark.parametrize("error", ["1 / 0", "raise KeyboardInterrupt"])
def test_what_a_cell_raises_is_raised_after_what_was_recorded_until_then_is_shown(shell, monkeypatch, tmp_path, error):
    displayed = []
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=displayed.append))
    with pytest.raises((ZeroDivisionError, KeyboardInterrupt)):
        shell.run(f"prof --save '{tmp_path}/cell.mtp'", f"torch.ones(2)\n{error}\n")
    (averages,) = displayed
    for rows in (averages, shell.user_ns["prof"].key_averages(), profiler.load(tmp_path / "cell.mtp").key_averages()):
        assert any(row.key == "aten::ones" for row in rows)


def test_of_a_cell_that_cannot_be_recorded_only_the_reason_is_told(shell, monkeypatch):
    def start(self):
        raise RuntimeError("no")

    monkeypatch.setattr(profiler.profile, "start", start)
    with pytest.raises(RuntimeError, match="^no$"):
        shell.run("prof", "torch.ones(2)")
    assert "prof" not in shell.user_ns


WRONG_LINES = [
    ("--nonsense", "unrecognized arguments: --nonsense"),
    ("two names", "unrecognized arguments: names"),
    ("no-name", "'no-name' is no name of a variable"),
    ("--save", "argument --save: expected one argument"),
    ("--s", "ambiguous option: --s could match --stack, --shapes, --save"),
    ("--save 'x", "No closing quotation"),
]


@pytest.mark.parametrize("there", [False, True], ids=["without IPython", "in IPython"])
@pytest.mark.parametrize(("line", "complaint"), WRONG_LINES)
def test_a_wrong_line_is_refused_before_the_cell_runs(shell, monkeypatch, line, complaint, there):
    """IPython shows its UsageError in a line, without a traceback."""
    usage_error = type("UsageError", (Exception,), {})
    monkeypatch.delitem(sys.modules, "IPython.core.error", raising=False)
    if there:
        monkeypatch.setitem(sys.modules, "IPython.core.error", SimpleNamespace(UsageError=usage_error))
    with pytest.raises(usage_error if there else ValueError, match=f"^%%profile: {re.escape(complaint)}\nusage: %%profile "):
        shell.run(line, "ran = True")
    assert "ran" not in shell.user_ns and ("IPython.core.error" in sys.modules) == there
