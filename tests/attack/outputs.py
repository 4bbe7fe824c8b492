"""Outputs: files, terminals and copies. What is written has the right permissions and place, what is shown obeys nobody."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import pickle
import random
import shutil
import stat
import sys
import tempfile
import threading
import time
from pathlib import Path

from attacks import attack

import mindtorch_v2 as torch
from mindtorch_v2._core.files import write_whole
from mindtorch_v2.profiler import profile, record_function, tensorboard_trace_handler
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.results import writers
from mindtorch_v2.profiler.results.loaded import LoadedProfile, load
from mindtorch_v2.profiler.store.store import EventStore, InputInfo
from mindtorch_v2.profiler.views.event_list import EventList
from mindtorch_v2.utils.tensorboard import SummaryWriter

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

from file_names import possible
from hostile_profile import NAMES, Elements, hostile_store, unprintable
from peak_memory import peak_mb

COMMANDS = (
    ["table", "-n", "-1"],
    ["table", "--by", "stack", "-n", "-1"],
    ["events", "-n", "-1"],
    ["events", "--json", "-n", "-1"],
    ["tree", "--python", "--least", "0"],
    ["tree", "--by", "module", "--least", "0"],
    ["flops", "-n", "-1"],
    ["memory", "-n", "-1"],
    ["advice"],
    ["advice", "--json"],
    ["validate"],
)


@attack(
    "exports leave the umask alone: files of other threads have the permissions they would have",
    small=20,
    large=300,
    timeout_s=600,
)
def permissions_beside_exports(size: int) -> str:
    store = hostile_store(NAMES[:3])
    wrong: list[str] = []
    done = threading.Event()
    made = 0
    with tempfile.TemporaryDirectory() as folder:
        before = os.umask(0o027)
        sys.setswitchinterval(1e-6)  # threads take turns as often as they can
        expected = 0o640
        try:

            def others(number: int) -> None:
                nonlocal made
                at = 0
                while not done.is_set():
                    path = os.path.join(folder, f"other-{number}-{at % 50}")
                    with open(path, "w"):
                        pass
                    if stat.S_IMODE(os.stat(path).st_mode) != expected:
                        wrong.append(path)
                    os.unlink(path)
                    at, made = at + 1, made + 1

            threads = [threading.Thread(target=others, args=(number,)) for number in range(8)]
            for thread in threads:
                thread.start()
            try:
                for number in range(size):
                    path = os.path.join(folder, f"export-{number}.csv")
                    writers.get("csv")(store, path)
                    torch.save(torch.ones(2), path + ".pt")
                    for written in (path, path + ".pt"):
                        if stat.S_IMODE(os.stat(written).st_mode) != expected:
                            wrong.append(written)
                        os.unlink(written)
            finally:
                done.set()
                for thread in threads:
                    thread.join()
        finally:
            os.umask(before)
        left = os.listdir(folder)
    assert not wrong, f"{len(wrong)} files with other permissions, such as {wrong[0]}"
    assert not left, left
    return f"{2 * size:,} exports beside {made:,} files of 8 threads"


@attack("a name never leads out of its folder", small=300, large=20_000)
def names_outside_of_folders(size: int) -> str:
    chance = random.Random(0)
    parts = ["..", ".", "/", "\\", "\0", "a", "", "~", "..%2f", "\n", "C:", "\u2025", "x" * 80, "//", "\x1b"]
    refused = 0
    with tempfile.TemporaryDirectory() as outer:
        inside = os.path.join(outer, "some", "where", "inside")
        os.makedirs(inside)
        os.chdir(inside)
        with profile() as prof:
            torch.ones(2)
        for _ in range(size):
            name = "".join(chance.choices(parts, k=chance.randrange(1, 6)))
            tries = (
                lambda name: tensorboard_trace_handler(inside, worker_name=name)(prof),
                lambda name: SummaryWriter(inside, filename_suffix=name).close(),
                lambda name: SummaryWriter(comment=name).close(),
                lambda name: _scalars(inside, name),
            )
            try:
                chance.choice(tries)(name)
            except (ValueError, OSError):  # an OSError: the operating system takes no such name
                refused += 1
            assert os.listdir(outer) == ["some"] and os.listdir(os.path.join(outer, "some")) == ["where"], repr(name)
            assert os.listdir(os.path.join(outer, "some", "where")) == ["inside"], repr(name)
        os.chdir("/")
    return f"{size:,} names, {refused:,} refused"


def _scalars(folder: str, name: str) -> None:
    with SummaryWriter(folder) as writer:
        writer.add_scalars("tag", {name: 1.0})


def _hostile_names(count: int) -> list[str]:
    chance = random.Random(1)
    points = [*range(0x20), 0x7F, *range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200B, 0x2028, 0xD800]
    points += [0xDFFF, 0x301, 0x6F22, 0x1F600, 0xE0041, *map(ord, "=+-@;<>&'\"|\\ abc")]
    return ["".join(map(chr, chance.choices(points, k=chance.randrange(1, 30)))) for _ in range(count)]


def _said_by(arguments: list[str]) -> str:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), contextlib.suppress(SystemExit):
        main(arguments)
    return out.getvalue() + err.getvalue()


@attack("no command lets a name reach the terminal as anything but text on its line", small=40, large=3000, timeout_s=1200)
def names_on_terminals(size: int) -> str:
    characters = 0
    with tempfile.TemporaryDirectory() as folder:
        path, other = os.path.join(folder, "a\x1b[31m\n.mtp"), os.path.join(folder, possible("b\u202e.mtp"))
        names = [*NAMES, *_hostile_names(size)]
        writers.get("saved")(hostile_store(names), path)
        writers.get("saved")(hostile_store(names, slower=3.0), other)
        for command in [*COMMANDS, ["diff", other], ["diff", other, "--json"]]:
            said = _said_by([command[0], path, *command[1:]])
            assert said and not unprintable(said), (command, unprintable(said))
            characters += len(said)
        loaded = load(path)
        for text in (repr(loaded.events()[:1000]), str(loaded.key_averages()), repr(loaded.key_averages())):
            assert not unprintable(text), unprintable(text)
    return f"{len(names):,} hostile names in 8 places through {len(COMMANDS) + 2} commands, {characters:,} characters"


@attack(
    "every written file of hostile names can be read, and shows no control characters", small=40, large=3000, timeout_s=1200
)
def names_in_files(size: int) -> str:
    import csv
    import json

    store = hostile_store([*NAMES, *_hostile_names(size)])
    written = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in writers.names():
            path = Path(folder, name)
            try:
                writers.get(name)(EventList.from_store(store) if name == "event_list" else store, path)
            except ImportError:  # Parquet, where pyarrow is missing
                continue
            if path.is_dir():
                parts = [part for part in path.rglob("*") if part.is_file()]
                written += sum(part.stat().st_size for part in parts)
                files_of_text = [part for part in parts if part.suffix != ".db"]  # databases have names as they are
                texts = [part.read_text(encoding="utf-8") for part in files_of_text]
                assert parts and not [text for text in texts if unprintable(text, "\r\n\t")], name
                assert load(path).recovery.intact, name
                continue
            data = path.read_bytes()
            written += len(data)
            if name in ("chrome", "speedscope", "event_list"):
                json.loads(data.decode("ascii"), parse_constant=_refused)
                assert not unprintable(data.decode("ascii"), "\n\t"), name
            elif name == "csv":
                rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
                assert len(rows) == len(store) + 1 and len(set(map(len, rows))) == 1
                assert not [cell for row in rows for cell in row if cell[:1] in "=+-@\t\r\n" and cell.strip("-0123456789")]
                assert not unprintable(data.decode(), "\r\n")
            elif name in ("stacks", "collapsed"):
                assert not unprintable(data.decode())
            elif name == "html":
                page = Elements(data.decode())
                assert not unprintable(data.decode()) and not page.handlers and "img" not in page.counts
            elif name == "saved":
                # Two halves of a surrogate pair that stand side by side are one character in JSON.
                joined = [name.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") for name in store.names]
                assert list(load(path).store.names) == joined
    return f"{len(store):,} rows, {written / 1e6:.1f} MB in {len(writers.names())} formats"


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


@attack(
    "names of any length and number take bounded time and memory in every command and file", small=1, large=40, timeout_s=1200
)
def long_names(size: int) -> str:
    """One name of `size` times 100,000 characters of each kind, and that many thousand distinct names."""
    long = [character * (size * 100_000) for character in ("x", "\x1b", "\u0301", "\u6f22", "\ud800", "=")]
    slowest, shown = ("", 0.0), 0
    with tempfile.TemporaryDirectory() as folder:
        for number, names in enumerate([*([name, "b"] for name in long), _hostile_names(1000 * size)]):
            store = _store_of(names)
            path = os.path.join(folder, f"{number}.json")  # saved profiles of such names are refused by the reader's bounds
            writers.get("chrome")(store, path)
            for command in COMMANDS:
                begun = time.process_time()
                said = _said_by([command[0], path, *command[1:]])
                assert "unpacks to more" not in said, said
                slowest = max(slowest, (command[0], time.process_time() - begun), key=lambda entry: entry[1])
                if number < len(long) and "--json" not in command:
                    assert len(said) < 100_000, (command, len(said))
                shown += len(said)
            for format in ("chrome", "csv", "html", "collapsed", "perfetto", "pprof", "speedscope"):
                begun = time.process_time()
                writers.get(format)(store, os.path.join(folder, "out"))
                slowest = max(slowest, (format, time.process_time() - begun), key=lambda entry: entry[1])
    peak = peak_mb()
    assert slowest[1] < 5 + size / 3 and peak < 500 + 40 * size, (slowest, peak)
    return (
        f"names of {100_000 * size:,} characters, {1000 * size:,} names: at most {slowest[1]:.1f} s of CPU ({slowest[0]}), "
        f"{peak:.0f} MB in all"
    )


def _store_of(names: list[str]) -> EventStore:
    info = InputInfo(((2,),), ("float",), ((1,),), (None,))
    rows = [
        {
            "name": name,
            "start": 1000 * at + 1,
            "end": 1000 * at + 900,
            "module": name,
            "stack": (f"{name}.py(1): f",),
            "inputs": info,
            "flops": 1,
        }
        for at, name in enumerate(names)
    ]
    return EventStore.from_rows(rows, [{"time": 2, "bytes": 64}], options={"with_stack": True})


@attack(
    "copies and pickles of results are equal and quick; those of what runs are refused at once",
    small=2000,
    large=100_000,
    timeout_s=1200,
)
def copies(size: int) -> str:
    x = torch.ones(3)
    with profile(record_shapes=True, with_stack=True) as prof:
        with record_function("outer"):
            for _ in range(size):
                x + x
    events, averages = prof.events(), prof.key_averages()
    expected, summed = events.to_dict(), averages.to_dict()
    slowest = 0.0
    ways = {"copy": copy.copy, "deepcopy": copy.deepcopy, "pickle": lambda value: pickle.loads(pickle.dumps(value))}
    for name, way in ways.items():
        for value in (prof, events, averages, events[-1], averages[0], prof.profiler.kineto_results, prof.profiler.store):
            begun = time.process_time()
            other = way(value)
            slowest = max(slowest, time.process_time() - begun)
            if isinstance(other, LoadedProfile):
                assert other.events().to_dict() == expected, name
            elif isinstance(other, EventList):
                assert other.to_dict() == (expected if value is events else summed), name
    running = profile()
    running.start()
    try:
        for name, way in ways.items():
            for value in (running, running.profiler):
                try:
                    way(value)
                except TypeError as error:
                    assert "running" in str(error)
                else:
                    raise AssertionError(f"{name} of a running profile")
    finally:
        running.stop()
    for event in events:
        event.count = 2
    begun = time.process_time()
    assert pickle.loads(pickle.dumps(events)).to_dict() == copy.deepcopy(events).to_dict()
    changed = time.process_time() - begun
    assert slowest < 5, slowest
    return f"{len(events):,} events: at most {slowest:.2f} s of CPU; {changed:.1f} s after every event was changed"


@attack("an export that fails at any moment leaves the old file and no other", small=40, large=2000)
def failing_exports(size: int) -> str:
    chance = random.Random(2)
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x" * chance.randrange(1, 255))
        path.write_bytes(b"old")
        path.chmod(0o604)
        for _ in range(size):
            blocks = chance.randrange(1, 6)
            at = chance.randrange(blocks + 1)
            error = chance.choice([OSError(28, "full"), KeyboardInterrupt(), MemoryError(), ValueError("no")])

            def writing(at: int = at, blocks: int = blocks, error: BaseException = error):
                for number in range(blocks):
                    if number == at:
                        raise error
                    yield b"new" * 50_000

            try:
                write_whole(path, writing())
            except BaseException as caught:
                assert type(caught) is type(error)
                failed += 1
                assert path.read_bytes() == b"old"
            else:
                assert path.read_bytes() == b"new" * 50_000 * blocks
                path.write_bytes(b"old")
            assert os.listdir(folder) == [path.name] and stat.S_IMODE(path.stat().st_mode) == 0o604
    return f"{size:,} exports, {failed:,} failed"


@attack(
    "whatever a file holds, reading, showing and writing it ends in an answer or a line why not",
    small=25,
    large=2500,
    timeout_s=1200,
)
def damaged_files(size: int) -> str:
    """Saved profiles and traces of hostile names with bytes changed, cut out, doubled and swapped."""
    chance = random.Random(3)
    read, slowest = 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        whole = []
        for format, name in (("saved", "a.mtp"), ("chrome", "a.json"), ("chrome", "a.json.gz")):
            path = Path(folder, name)
            writers.get(format)(hostile_store(NAMES[::3]), path)
            whole.append((name, path.read_bytes()))
        for number in range(size):
            name, data = chance.choice(whole)
            path = os.path.join(folder, f"\x1b{number}{name}")
            Path(path).write_bytes(_damaged(data, chance))
            begun = time.process_time()
            command = chance.choice(COMMANDS)
            said = _said_by([command[0], path, *command[1:]])
            assert said and not unprintable(said), (command, unprintable(said))
            format = chance.choice([name for name in writers.ENDINGS if name != "parquet"])
            said = _said_by(["convert", path, "--to", format, "-o", os.path.join(folder, "out")])
            assert not unprintable(said)
            read += os.path.exists(os.path.join(folder, "out"))
            with contextlib.suppress(FileNotFoundError):
                (shutil.rmtree if os.path.isdir(os.path.join(folder, "out")) else os.unlink)(os.path.join(folder, "out"))
            os.unlink(path)
            slowest = max(slowest, time.process_time() - begun)
    assert slowest < 20, slowest
    return f"{size:,} files, of which {read:,} could be read; at most {slowest:.1f} s of CPU"


def _damaged(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randrange(1, 6)):
        at, length = chance.randrange(len(changed) or 1), chance.randrange(1, 40)
        part = changed[at : at + length]
        match chance.randrange(5):
            case 0:
                changed[at : at + length] = chance.randbytes(len(part))
            case 1:
                del changed[at : at + length]
            case 2:
                changed[at:at] = part * chance.randrange(1, 50)
            case 3:
                del changed[at:]
            case _ if changed:
                changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)
