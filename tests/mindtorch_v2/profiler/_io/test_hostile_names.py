"""Names that are made to break what shows them, through every writer, every command and every text."""

from __future__ import annotations

import base64
import copy
import csv
import gzip
import io
import json
import re
import sys
import zlib

import orjson
import pytest
from file_names import possible
from hostile_profile import NAMES, Elements, hostile_store, unprintable

import mindtorch_v2 as torch
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function
from mindtorch_v2.profiler._io.csv_cells import csv_cell
from mindtorch_v2.profiler._io.markup import html_text, json_in_html
from mindtorch_v2.profiler._io.stack_lines import stack_frame
from mindtorch_v2.profiler._io.terminal import cut, cut_front, padded, shown, width
from mindtorch_v2.profiler._io.utf8 import utf8
from mindtorch_v2.profiler.analysis.comparison.diff import diff
from mindtorch_v2.profiler.cli import command
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.exporters import memory, notebook
from mindtorch_v2.profiler.formats.validate import validate
from mindtorch_v2.profiler.report import comparison
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.results.loaded import load
from mindtorch_v2.profiler.views.event_list import EventList

FORMULA = re.compile(r"[=+\-@\t\r\n]")


@pytest.fixture(scope="module")
def store():
    return hostile_store()


# ------------------------------------------------------------------------------ escapers

SHOWN = {
    "\x1b[31m": "\\x1b[31m",
    "a\nb\rc\bd\0": "a\\nb\\rc\\x08d\\x00",
    "\x9b\x85": "\\x9b\\x85",
    "\u202e\u2066\u200b\u2028": "\\u202e\\u2066\\u200b\\u2028",
    "\ud800": "\\ud800",
    "\U000e0041": "\\U000e0041",
    "C:\\path\\new": "C:\\path\\new",
    "\u6f22 e\u0301 \U0001f600": "\u6f22 e\u0301 \U0001f600",
}


@pytest.mark.parametrize(("text", "expected"), SHOWN.items())
def test_what_a_terminal_would_obey_is_shown(text, expected):
    assert shown(text) == expected and not unprintable(shown(text), "")


def test_every_character_that_is_not_printable_is_shown():
    for start in range(0, sys.maxunicode + 1, 1 << 16):
        assert shown("".join(map(chr, range(start, start + (1 << 16)))), 1 << 16).isprintable()


@pytest.mark.parametrize("name", ["x", "\x1b", "\u0300", "\u6f22"])
def test_long_names_are_cut(name):
    text = shown(name * 10_000_000)
    assert text.endswith("... (10,000,000 characters)") and len(text) < 5000


@pytest.mark.parametrize(
    ("text", "columns"),
    [("abc", 3), ("\u6f22\u5b57", 4), ("e\u0301", 1), ("\uff21", 2), ("\U0001f600", 2), ("", 0), ("\u0301", 0)],
)
def test_width(text, columns):
    assert width(text) == columns
    assert width(padded(text, 7)) == width(padded(text, 7, left=True)) == 7


@pytest.mark.parametrize("text", ["\u6f22\u5b57" * 9, "abc" * 9, "e\u0301" * 9, "\u0301" * 99])
def test_text_is_cut_to_a_width(text):
    for most in range(12):
        for part in (cut(text, most), cut_front(text, most)):
            assert width(part) <= most and len(part) <= most
        assert text.startswith(cut(text, most)) and text.endswith(cut_front(text, most))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("=1+1", "'=1+1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\t=1", "'\\t=1"),
        ("\r=1", "'\\r=1"),
        ("\n=1", "'\n=1"),
        ("\uff1d1", "'\uff1d1"),
        ("a=1", "a=1"),
        ("", ""),
        ("\x1b", "\\x1b"),
        ("a\nb", "a\nb"),
        (-1, -1),
        (-1.5, -1.5),
        (None, None),
    ],
)
def test_csv_cells(cell, expected):
    assert csv_cell(cell) == expected


def test_frames_are_words():
    assert stack_frame("f.py(1): a;b\nc\x1b") == "f.py(1):_a_b_c\\x1b"


def test_markup():
    assert html_text("<b a='\"'>&\x1b\u202e") == "&lt;b a=&#x27;&quot;&#x27;&gt;&amp;\\x1b\\u202e"
    text = json_in_html({"</script>": "\u2028<!--\x7f&"})
    assert not set("<>&\u2028\x7f") & set(text) and json.loads(text) == {"</script>": "\u2028<!--\x7f&"}


def test_utf8():
    assert utf8("a\ud800\udc00\U0001f600").decode() == "a\ufffd\ufffd\U0001f600"


# ------------------------------------------------------------------------------ writers


def _json_file(path, store):
    text = path.read_bytes()
    assert not unprintable(text.decode("ascii"), "\n\t")
    return orjson.loads(text)


def _chrome(path, store):
    found = {event["name"] for event in _json_file(path, store)["traceEvents"]}
    assert {_paired(name) for name in NAMES} <= found


def _paired(name):
    return utf8(name).decode()


def _saved(path, store):
    assert list(load(path).store.names) == list(store.names)


def _speedscope(path, store):
    frames = [frame["name"] for frame in _json_file(path, store)["shared"]["frames"]]
    assert frames == [_paired(name) for name in store.names]


def _stacks(path, store):
    for line in path.read_text(encoding="utf-8").splitlines():
        assert re.fullmatch(r"[^ ;]*(;[^ ;]*)* \d+", line) and not unprintable(line, "")


def _csv(path, store):
    text = path.read_bytes().decode()
    assert not unprintable(text, "\r\n")
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert len(rows) == len(store) + 1 and {len(row) for row in rows} == {len(rows[0])}
    for row in rows[1:]:
        for title, cell in zip(rows[0], row, strict=True):
            assert not FORMULA.match(cell) or cell.lstrip("-").isdigit(), (title, cell)
    assert {csv_cell(name) for name in NAMES} <= {row[rows[0].index("name")] for row in rows}


def _html(path, store):
    page = path.read_text(encoding="utf-8")
    assert not unprintable(page)
    plain = path.with_name("plain.html")
    writers.get("html")(hostile_store(["a", "b"]), plain)
    assert Elements(page).counts == Elements(plain.read_text(encoding="utf-8")).counts and not Elements(page).handlers
    tables = re.search(r'data-column="tables"[^>]*>([^<]*)<', page)[1]
    for text in _texts(json.loads(zlib.decompress(base64.b64decode(tables), -15))):
        assert not unprintable(text, "")
    about = re.search(r'<script[^>]*id="about"[^>]*>([^<]*)<', page)
    for text in _texts(json.loads(about[1])) if about else ():
        assert not unprintable(text, "")


def _texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _texts(key)
            yield from _texts(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _texts(entry)


def _fields(data):
    """The fields of a protocol buffer message: numbers, and bytes."""
    at = 0

    def varint():
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
        key = varint()
        if key & 7 == 2:
            size = varint()
            yield key >> 3, data[at : at + size]
            at += size
        elif key & 7 == 1:
            yield key >> 3, data[at : at + 8]
            at += 8
        else:
            yield key >> 3, varint()


def _pprof(path, store):
    strings = [value.decode() for field, value in _fields(gzip.decompress(path.read_bytes())) if field == 6]
    assert {_paired(name) for name in store.names} <= set(strings)


def _perfetto(path, store):
    names = []
    for _, packet in _fields(path.read_bytes()):
        for _, interned in (part for part in _fields(packet) if part[0] == 12):
            names += [dict(_fields(entry))[2].decode() for field, entry in _fields(interned) if field == 2]
    assert names == [_paired(name) for name in store.names]


def _parquet(path, store):
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(path).num_rows == len(store)


def _ascend(path, store):
    output = path / "ASCEND_PROFILER_OUTPUT"
    found = {event["name"] for event in _json_file(output / "trace_view.json", store)}
    assert {_paired(name) for name in NAMES} <= found
    for table in output.glob("*.csv"):
        text = table.read_bytes().decode()
        assert not unprintable(text, "\r\n\t")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        assert {len(row) for row in rows} == {len(rows[0])}
        assert not any(FORMULA.match(cell) and not cell.lstrip("-").isdigit() for row in rows for cell in row)
    assert {_paired(name) for name in NAMES} <= set(load(path).store.names)


def _ascend_database(path, store):
    found = load(path)
    assert found.recovery.intact and {_paired(name) for name in NAMES} <= set(found.store.names)


READERS = {
    "ascend": _ascend,
    "ascend-db": _ascend_database,
    "chrome": _chrome,
    "saved": _saved,
    "perfetto": _perfetto,
    "speedscope": _speedscope,
    "collapsed": _stacks,
    "stacks": _stacks,
    "pprof": _pprof,
    "csv": _csv,
    "parquet": _parquet,
    "html": _html,
    "event_list": _json_file,
}


@pytest.mark.parametrize("name", writers.names())
def test_every_writer(store, tmp_path, name):
    if name == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / "out"
    writers.get(name)(EventList.from_store(store) if name == "event_list" else store, path)
    READERS[name](path, store)


def test_averages_as_csv(store, tmp_path):
    writers.get("csv")(store, tmp_path / "a.csv", what="averages", group_by_stack_n=3)
    text = (tmp_path / "a.csv").read_bytes().decode()
    assert not unprintable(text, "\r\n") and len(set(map(len, csv.reader(io.StringIO(text, newline=""))))) == 1


def _memory_profile():
    with profile(record_shapes=True, profile_memory=True, with_stack=True) as prof:
        torch.ones(2)
    return prof._memory_blocks()


def test_pages_without_scripts(store, tmp_path):
    comparison.export(diff(store, hostile_store(slower=3.0)), tmp_path / "d.html", names=(NAMES[0], NAMES[14]))
    memory.export(_memory_profile(), tmp_path / "m.html", device="cpu")
    pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("d.html", "m.html")]
    events = EventList.from_store(store)
    pages += [notebook.list_table(events), notebook.list_table(events.key_averages())]
    for page in pages:
        elements = Elements(page)
        assert not unprintable(page) and not elements.handlers and not {"script", "img"} & set(elements.counts)


def test_traces_of_recorded_names(tmp_path):
    observer = ExecutionTraceObserver().register_callback(str(tmp_path / "et.json"))
    with profile(execution_trace_observer=observer) as prof:
        for name in NAMES:
            with record_function(name, name):
                torch.ones(2)
        for name in NAMES:
            prof.add_metadata(name, name)
    prof.export_chrome_trace(tmp_path / "t.json")
    observer.unregister_callback()
    for path in (tmp_path / "t.json", tmp_path / "et.json"):
        _json_file(path, None)


# ------------------------------------------------------------------------------ commands and texts


@pytest.fixture(scope="module")
def files(tmp_path_factory, store):
    folder = tmp_path_factory.mktemp("hostile")
    saved, slower, trace, script = (
        folder / possible(f"\x1b[31m\u202e\n{name}") for name in ("a.mtp", "b.mtp", "c.json", "s.py")
    )
    writers.get("saved")(store, saved)
    writers.get("saved")(hostile_store(slower=3.0), slower)
    writers.get("chrome")(store, trace)
    broken = folder / "broken\x1b.json"
    broken.write_bytes(trace.read_bytes()[:-5000])
    script.write_text(
        "import mindtorch_v2 as torch\nfrom mindtorch_v2.profiler import record_function\n"
        f"for name in {NAMES!r}:\n    with record_function(name): torch.ones(2)\n",
        encoding="utf-8",
    )
    return {"saved": saved, "slower": slower, "trace": trace, "broken": broken, "script": script, "folder": folder}


COMMANDS = {
    "advice": [["{saved}"], ["{saved}", "--json"]],
    "attach": [["1", "-o", "x\x1b"]],
    "ceilings": [],  # names nothing
    "convert": [["{saved}", "--to", "csv"], ["{trace}", "--to", "nothing"]],
    "demo": [],  # shows names of its own script
    "device": [["{saved}"], ["{saved}", "--json"]],
    "diff": [
        ["{saved}", "{slower}"],
        ["{saved}", "{slower}", "--json"],
        ["{saved}", "{slower}", "--html", "{folder}/d\x1b.html"],
    ],
    "events": [["{saved}", "-n", "-1"], ["{saved}", "-n", "-1", "--json"], ["{saved}", "--name", "\x1b"]],
    "flops": [["{saved}", "-n", "-1"]],
    "history": [["{saved}", "{slower}"], ["{saved}", "{slower}", "--json"], ["{saved}", "--git", "\x1b"]],
    "lines": [["{saved}"], ["{saved}", "--json"]],
    "mcp": [["--folder", "{folder}/no\x1b"]],
    "memory": [["{saved}", "-n", "-1"]],
    "push": [["{saved}", "--as", "prometheus", "--to", "x\x1b://"]],
    "ranks": [["{folder}/no\x1b"], ["{saved}"]],
    "repair": [["{broken}", "-o", "{folder}/r\x1b.mtp"]],
    "replay": [["{saved}", "no\x1bop"], ["{saved}", "aten::add"], ["{saved}", "aten::add", "--json"]],
    "report": [["{saved}"], ["{trace}", "-o", "{folder}/no\x1b/folder.html"]],
    "roofline": [["{saved}"]],
    "run": [["-o", "{folder}/run\x1b.mtp", "{script}"], ["{folder}/no\x1bscript.py"], ["-o", "x\x1b", "{script}"]],
    "sql": [["{saved}", "select \x1b"]],  # with the extra, and the line that names the extra without it
    "table": [
        *(["{saved}", "-n", "-1", "--by", by] for by in ("name", "shape", "stack", "overload")),
        ["{trace}", "--corrected"],
        ["{broken}"],
        ["{folder}/missing\x1b.json"],
        ["{saved}", "--sort", "\x1b"],
    ],
    "top": [["1"]],
    "tree": [["{saved}", "--python"], ["{saved}", "--by", "module"], ["{trace}", "--least", "0"]],
    "validate": [["{saved}"], ["{broken}"], ["{script}"]],
    "what-if": [["{saved}", "-n", "-1"], ["{saved}", "--json"], ["{saved}", "--op", "no\x1bop"]],
}


def test_every_command_is_in_the_table():
    assert sorted(COMMANDS) == command.names()


@pytest.mark.parametrize(("name", "arguments"), [(name, line) for name, lines in COMMANDS.items() for line in lines])
def test_every_command(files, capfd, name, arguments):
    filled = [part.format(**files) for part in arguments]
    try:
        code = main([name, *filled])
    except SystemExit as exit:  # wrong usage
        code = exit.code
    out, err = capfd.readouterr()
    assert (out or err) and code in (0, 1, 2, 3)
    assert not unprintable(out) and not unprintable(err)
    if "--json" in arguments:
        for text in [out] if name != "events" else out.splitlines():
            orjson.loads(text)


def test_tables_are_aligned(store):
    for events in (EventList.from_store(store), EventList.from_store(store).key_averages(group_by_stack_n=3)):
        for options in ({}, {"max_name_column_width": None}, {"max_name_column_width": 20, "max_src_column_width": 15}):
            lines = events.table(row_limit=-1, **options).splitlines()
            rules = [at for at, line in enumerate(lines) if line.startswith("---")]
            assert {width(line) for line in lines[rules[1] : rules[2] + 1]} == {width(lines[rules[0]])}
            assert not unprintable("\n".join(lines))


def test_texts_of_results(store, tmp_path):
    events = EventList.from_store(store)
    writers.get("saved")(store, tmp_path / "s.mtp")
    loaded = load(tmp_path / "s.mtp")
    texts = [str(events), repr(events), repr(events.key_averages()), repr(loaded), *map(str, loaded.advice())]
    texts += [str(diff(store, hostile_store(slower=3.0))), *map(str, validate(store))]
    changed = copy.copy(events[0])
    changed.name = NAMES[0]
    texts.append(repr(changed))
    with profile(max_memory_mb=1, mode="aggregate", with_modules=True) as prof:
        for name in NAMES:
            with record_function(name):
                torch.ones(2)
    texts.append(prof.aggregate().table())
    for text in texts:
        assert not unprintable(text)


def test_errors_with_names_of_files(tmp_path):
    path = tmp_path / "\x1b[31m\n.json"
    path.write_text('{"no": "events"}')
    with pytest.raises(ValueError) as caught:
        load(path)
    assert not unprintable(str(caught.value))


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])  # Python's choices with a locale, and under LC_ALL=C
def test_a_terminal_without_the_characters(files, monkeypatch, errors):
    """Characters that the encoding lacks are written escaped."""
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii", errors=errors))
    assert main(["table", str(files["saved"]), "-n", "-1"]) == 0
    assert b"\\u6f22" in raw.getvalue()
