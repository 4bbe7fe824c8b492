"""Imports in a recording with Python calls: a row for each, and a count of the calls inside."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import load, profile
from mindtorch_v2.profiler.assembly.python_rows import python_rows
from mindtorch_v2.profiler.recording.python_calls import code_origin
from mindtorch_v2.profiler.recording.python_calls.stream import CallSegment
from mindtorch_v2.profiler.store.store import EventStore
from mindtorch_v2.profiler.views.event_list import EventList

CALLS = 40
BODY = f"""
import mindtorch_v2 as torch

def helper():
    return len(str(1))

for _ in range({CALLS}):
    helper()
table = torch.empty(2) + 1
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose body calls functions and an op and imports a module that does the same."""
    folder = tmp_path / "large_package"
    folder.mkdir()
    (folder / "__init__.py").write_text("from . import part\n" + BODY)
    (folder / "part.py").write_text(BODY)
    (folder / "broken.py").write_text("import large_package.part\nraise RuntimeError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield
    for name in [name for name in sys.modules if name.startswith("large_package")]:
        del sys.modules[name]


def before():
    return torch.empty(1)


def after():
    return torch.empty(1)


def use():
    before()
    import large_package  # noqa: F401

    after()


def tree(event):
    return [event.name.rpartition(": ")[2], *map(tree, event.cpu_children)]


def test_an_import_is_one_row_and_its_calls_are_counted(package):
    with profile(with_stack=True) as prof:
        use()
    (called,) = [event for event in prof.events() if event.name.endswith(": use")]
    ops = ["aten::empty", "aten::add"]
    assert tree(called) == [
        "use",
        ["before", ["aten::empty"]],
        ["import large_package", ["import large_package.part", *([name] for name in ops)], *([name] for name in ops)],
        ["after", ["aten::empty"]],
    ]
    # helper, len and str for each turn of both bodies, beside the interpreter's own work.
    assert prof.profiler._store.metadata["calls_in_imports"] >= 2 * 3 * CALLS


def test_an_import_that_fails_ends_with_its_error(package):
    with profile(with_stack=True) as prof:
        with pytest.raises(RuntimeError, match="broken"):
            importlib.import_module("large_package.broken")
        after()
    names = [event.name.rpartition(": ")[2] for event in prof.events()]
    assert names.count("import large_package.broken") == 1
    assert "after" in names
    assert "helper" not in names


def test_no_import_no_count():
    with profile(with_stack=True) as prof:
        after()
    assert prof.events()
    assert "calls_in_imports" not in prof.profiler._store.metadata


def test_streamed_recordings_have_the_count_too(package, tmp_path):
    file = tmp_path / "run.mtp"
    with profile(with_stack=True, stream_to=file):
        use()
    loaded = load(file)
    assert loaded.store.metadata["calls_in_imports"] >= 2 * 3 * CALLS
    names = [event.name.rpartition(": ")[2] for event in loaded.events()]
    assert [name for name in names if name.startswith("import ")] == ["import large_package", "import large_package.part"]
    assert "after" in names and "helper" not in names


def test_imports_of_other_threads(package):
    begun = threading.Event()
    thread = threading.Thread(target=lambda: begun.wait(120) and use())
    thread.start()
    with profile(with_stack=True) as prof:
        begun.set()
        thread.join()
    names = [event.name.rpartition(": ")[2] for event in prof.events()]
    assert names.count("import large_package") == 1
    assert "after" in names and "helper" not in names


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="sys.monitoring leaves the profile function alone")
def test_a_profile_function_that_was_there_still_sees_all_calls(package):
    seen = []

    def other(frame, event, arg):
        if event == "call" and frame.f_code.co_name == "helper":
            seen.append(event)

    sys.setprofile(other)
    try:
        with profile(with_stack=True) as prof:
            use()
    finally:
        sys.setprofile(None)
    assert len(seen) == 2 * CALLS
    names = [event.name.rpartition(": ")[2] for event in prof.events()]
    assert "import large_package" in names and "after" in names and "helper" not in names


def test_packages_inside_of_the_standard_folder_are_the_users():
    folder = code_origin._STANDARD
    assert code_origin.classify(f"{folder}site-packages/package/module.py") == code_origin.USER
    assert code_origin.classify(f"{folder}json/decoder.py") == code_origin.LIBRARY


LAZY = """
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

def use():
    from mindtorch_v2 import nn
    torch.distributions

with profile(with_stack=True) as prof:
    use()
(called,) = [event for event in prof.events() if event.name.endswith(": use")]
print([child.trace_name for child in called.cpu_children])
rows = [row for row in prof.key_averages() if row.key.startswith("import ")]
print([(row.key, row.count) for row in rows], rows[0].cpu_time_total <= called.cpu_time_total)
names = prof.profiler.store.names
print("import mindtorch_v2.nn.modules.linear" in names, prof.key_averages()._repr_html_().count("import mindtorch_v2"))
print(sorted({event.name for event in prof.events() if "importlib" in event.name or "hasattr" in event.name}))
"""


def test_imports_that_the_runtime_makes_at_a_first_use_are_the_same_rows():
    done = subprocess.run([sys.executable, "-c", LAZY], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "['import mindtorch_v2.nn', 'import mindtorch_v2.distributions']",
        "[('import mindtorch_v2.*', 2)] True",
        "True 1",  # all are kept, and a table has one row
        "[]",
    ]


def test_imports_inside_of_one_of_the_runtime_are_no_rows_of_tables():
    def row(name, start, end, kind=observer.PYTHON):
        return {"name": name, "kind": kind, "start": start, "end": end}

    store = EventStore.from_rows(
        [
            row("import user", 0, 1000),
            row("import mindtorch_v2.nn", 100, 500),
            row("import mindtorch_v2.nn.modules", 200, 400),
            row("import ctypes", 250, 350),
            row("aten::empty", 260, 280, observer.OP),
            row("import mindtorch_v2.optim", 500, 600),
            row("import mindtorch_v2_extras", 600, 700),
            row("import mindtorch_v2", 700, 900),
            row("import numpy", 750, 850),
            row("import wave", 900, 950),
        ]
    )
    averages = EventList.from_store(store).key_averages()
    assert [(each.key, each.count, each.self_cpu_time_total, each.cpu_time_total) for each in averages] == [
        ("import user", 1, 0.15, 1.0),
        ("import mindtorch_v2.*", 2, 0.48, 0.5),
        ("aten::empty", 1, 0.02, 0.02),
        ("import mindtorch_v2_extras", 1, 0.1, 0.1),
        ("import mindtorch_v2", 1, 0.2, 0.2),
        ("import wave", 1, 0.05, 0.05),
    ]
    assert averages.self_cpu_time_total == 1.0
    assert len(store) == 10


def rows_of(*calls):
    """The names of the rows of calls inside of each other: of a file's function, or of a text."""
    called = [compile("", file, "exec") if text is None else text for file, text in calls]
    events = [part for moment, what in enumerate(called) for part in (what, -1, moment)]
    events += [part for moment in range(len(called)) for part in (None, -1, len(called) + moment)]
    found = python_rows([CallSegment(0, None, [], [], events)], 2 * len(called))
    return [found.names[name].rpartition(": ")[0].rpartition("(")[0] or found.names[name] for name in found.name][::-1]


PROFILER = code_origin.PROFILER_FOLDER + "profiler.py"
RUNTIME = code_origin.PROFILER_FOLDER.replace("profiler", "_dispatch") + "dispatcher.py"
FROZEN = "<frozen importlib._bootstrap>"


@pytest.mark.parametrize(
    ("files", "rows"),
    [
        (["user.py"], ["user.py", "import a"]),
        (["user.py", FROZEN], ["user.py", "import a"]),
        (["user.py", RUNTIME], ["user.py", "import a"]),
        (["user.py", PROFILER], ["user.py"]),
        (["user.py", PROFILER, FROZEN], ["user.py"]),
        ([PROFILER, "user.py", RUNTIME], ["user.py", "import a"]),  # a script that `mtprof run` runs
    ],
)
def test_an_import_has_a_row_unless_the_profiler_makes_it(files, rows):
    assert rows_of(*((file, None) for file in files), ("", "import a")) == rows
    assert rows_of(*((file, None) for file in files), ("", "<built-in function hasattr>"))[: len(rows)] == [
        row for row in rows if row != "import a"
    ] + ["<built-in function hasattr>"] * (files == ["user.py"])
