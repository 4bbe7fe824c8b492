"""Lifecycle: recordings start and end whole, whoever asks, whatever fails, and whichever other tools look on."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from pathlib import Path

from attacks import attack

import mindtorch_v2 as torch
from mindtorch_v2.profiler import load, profile, serve_on_demand, validate
from mindtorch_v2.profiler.config import _ExperimentalConfig

EVERY_THREAD = _ExperimentalConfig(profile_all_threads=True)


def _folder() -> Path:
    import atexit

    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _nothing_left() -> None:
    """No hook of any recording is installed, no thread of the profiler's runs."""
    import gc

    from mindtorch_v2._core import storage, threads
    from mindtorch_v2._dispatch import entry_globals
    from mindtorch_v2.profiler.recording import recorder

    assert entry_globals.observers_active == 0
    assert not recorder.active_recorders and not recorder.recorders_by_thread
    assert not [each for each in threads.started if "profiler" in each.__module__] and not storage.allocation.listeners
    assert not [each for each in gc.callbacks if "profiler" in getattr(each, "__module__", "")]
    assert sys.getprofile() is None
    until = time.monotonic() + 10
    while [each for each in threading.enumerate() if each.name.startswith("profiler")]:
        assert time.monotonic() < until, threading.enumerate()
        time.sleep(0.01)


def _ops(prof: object) -> Counter[str]:
    return Counter({row.key: row.count for row in prof.key_averages()})  # type: ignore[attr-defined]


@attack("signals in quick succession start and end recordings, and each is written whole", small=40, large=2_000)
def signal_storm(size: int) -> str:
    folder = _folder()
    with serve_on_demand(signal.SIGUSR1, folder=folder) as served:
        for _ in range(2 * size):
            os.kill(os.getpid(), signal.SIGUSR1)
            torch.ones(2) + 1
        until = time.monotonic() + 240
        while len(served.dumps) < size:
            assert time.monotonic() < until, f"{len(served.dumps)} of {size} written"
            time.sleep(0.01)
        assert not served.recording
    for path in served.dumps:
        load(path)
    assert len(os.listdir(folder)) == size
    _nothing_left()
    return f"{size:,} pairs, {size:,} files that load"


@attack("start() and stop() from eight threads: nothing is recorded after stop(), and the file is whole", small=12, large=600)
def races(size: int) -> str:
    path = _folder() / "race.mtp"
    prof = profile(stream_to=path, flush_interval_s=0.1, experimental_config=EVERY_THREAD)
    failures: list[BaseException] = []
    going = threading.Barrier(8)

    def race(number: int) -> None:
        chance = random.Random(number)
        going.wait(30)
        try:
            for _ in range(size):
                prof.start() if chance.random() < 0.5 else prof.stop()
                torch.ones(2) + 1
        except AssertionError as error:
            if "must be initialized" not in str(error):  # stop() before the first start(), as torch has it
                failures.append(error)
        except BaseException as error:
            failures.append(error)

    prof.start()
    threads = [threading.Thread(target=race, args=(number,)) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(120)
        assert not each.is_alive(), "a thread waits for ever"
    assert not failures, failures
    prof.start()
    torch.ones(3).exp()
    prof.stop()
    torch.ones(3).sin()
    assert "aten::exp" in _ops(prof) and "aten::sin" not in _ops(prof)
    assert not [each for each in validate(path) if each.severity == "error"]
    assert load(path).recovery.intact
    _nothing_left()
    return f"8 threads, {8 * size:,} calls"


@attack("a clock that goes back: no event ends before it starts, nothing raises, and it is counted", small=2, large=60)
def clock_goes_back(size: int) -> str:
    # In processes of their own: the clock has to be replaced before the package is imported.
    steps = sum(int(_in_process(_CLOCK, seed)) for seed in range(size))
    return f"{size:,} runs in five modes, {steps:,} steps back seen"


_CLOCK = """
import random, sys, time, warnings
warnings.simplefilter("ignore")
chance, real, behind = random.Random(int(sys.argv[1])), time.perf_counter_ns, 0
def clock():
    global behind
    if chance.random() < 0.01:
        behind += chance.randrange(1, 3_000_000)
    return real() - behind
time.perf_counter_ns = clock
import mindtorch_v2 as torch
from mindtorch_v2.profiler import load, profile, record_function, validate
everything = dict(record_shapes=True, with_stack=True, profile_memory=True, with_modules=True, with_flops=True)
model, seen = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()), 0
stream = sys.argv[2] + "/stream.mtp"
for options in ({}, everything, dict(stream_to=stream), dict(everything, stream_to=stream), dict(max_memory_mb=1, mode="ring")):
    with profile(**options) as prof:
        for _ in range(15):
            with record_function("step"):
                model(torch.ones(2, 4)).sum().backward()
    prof.key_averages().table()
    prof.export_chrome_trace(sys.argv[2] + "/trace.json")
    prof.save(sys.argv[2] + "/saved.mtp")
    for recording in (prof, sys.argv[2] + "/trace.json", sys.argv[2] + "/saved.mtp"):
        assert not [p for p in validate(recording) if p.severity == "error"], (options, validate(recording))
    ops = sum(event.name == "aten::addmm" for event in prof.events())
    assert ops == 15, (options, ops)
    (loss,) = [text for text in prof.profiler.store.metadata["losses"] if "clock" in text]
    seen += int("".join(c for c in loss.partition(":")[0] if c.isdigit()) or 1)
with profile(max_memory_mb=1, mode="aggregate") as prof:
    for _ in range(15):
        model(torch.ones(2, 4)).sum().backward()
assert all(row.self_ns >= 0 and row.sum_ns >= 0 for row in prof.aggregate().by_name().values())
print(seen)
"""


def _in_process(text: str, *arguments: object, status: int = 0) -> str:
    import subprocess

    command = [sys.executable, "-X", "faulthandler", "-c", text, *map(str, arguments), str(_folder())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == status, f"exit status {done.returncode}: {done.stderr[-3000:]}"
    return done.stdout.strip()


@attack("a file that is removed, moved or replaced meanwhile: the path has the whole recording, no other file is touched",
        small=4, large=120)  # fmt: skip
def file_gone(size: int) -> str:
    chance = random.Random(0)
    for _ in range(size):
        folder = _folder()
        path = folder / "run.mtp"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with profile(stream_to=path, flush_interval_s=0.05) as prof:
                for number in range(30):
                    torch.ones(2) + number
                    if number == 10:
                        how = chance.choice(["remove", "move", "folder", "replace"])
                        prof._retention.flush()
                        if how == "remove":
                            path.unlink()
                        elif how == "move":
                            path.rename(folder / "moved.mtp")
                        elif how == "folder":
                            folder.rename(f"{folder}.away")
                        else:
                            path.unlink()
                            path.write_text("another's")
                        prof._retention.flush()
                    if number == 20 and how == "folder":
                        Path(f"{folder}.away").rename(folder)
                    if number == 20 and how == "replace":
                        assert path.read_text() == "another's"
                        path.unlink()
                    prof._retention.flush()
        assert _ops(prof)["aten::add"] == _ops(load(path))["aten::add"] == 30, how
        assert load(path).recovery.intact
    _nothing_left()
    return f"{size:,} recordings of 30 ops"


@attack("a second writer of a streamed file is refused, and the first is untouched", small=5, large=200)
def two_writers(size: int) -> str:
    folder = _folder()
    path = folder / "run.mtp"
    other = """
import sys
from mindtorch_v2.profiler import profile
prof = profile(stream_to=sys.argv[1])
try:
    prof.start()
except BlockingIOError as error:
    print(error)
"""
    with profile(stream_to=path) as first:
        for number in range(size):
            torch.ones(2) + number
            second = profile(stream_to=path)
            try:
                second.start()
            except BlockingIOError as error:
                assert "another profile" in str(error) and str(path) in str(error)
            else:
                raise AssertionError("the second writer was let in")
        assert "another profile" in _in_process(other, path)
    assert _ops(first)["aten::add"] == _ops(load(path))["aten::add"] == size
    with profile(stream_to=path):  # once the first has ended, another one may begin anew
        torch.ones(2).exp()
    assert set(_ops(load(path))) == {"aten::ones", "aten::exp"} | set(_ops(load(path)))
    _nothing_left()
    return f"{size:,} refused in the process, and another process"


@attack("10,000 threads: each one's ops are recorded, and none is kept after it ended", small=300, large=10_000)
def many_threads(size: int) -> str:
    from mindtorch_v2._core import threads

    folder, counts = _folder(), []
    for options in ({}, {"stream_to": folder / "run.mtp"}, {"max_memory_mb": 4, "mode": "aggregate"}):
        with profile(experimental_config=EVERY_THREAD, **options) as prof:
            for _ in range(size // 50):
                running = [threading.Thread(target=lambda: torch.ones(2) + 1) for _ in range(50)]
                for each in running:
                    each.start()
                for each in running:
                    each.join()
            if options:
                prof._retention.flush()
                assert len(prof.profiler._recorder.thread_recordings) <= 60
        assert len(threads.states()) <= 3
        if "mode" in options:
            counts.append(prof.aggregate().by_name()["aten::add"].count)
        else:
            counts.append(_ops(prof)["aten::add"])
    assert counts == [size] * 3, counts
    _nothing_left()
    return f"{3 * size:,} threads"


@attack("no thread or no memory to be had: start() raises and leaves nothing, what was recorded stays", small=40, large=2_000)
def nothing_to_be_had(size: int) -> str:
    import numpy as np

    from mindtorch_v2.profiler.formats import saved
    from mindtorch_v2.profiler.retention import base

    folder, chance, raised = _folder(), random.Random(0), 0
    place = 0

    def failing(function, error, at):
        count = 0

        def call(*args, **named):
            nonlocal count
            count += 1
            if count == at:
                raise error
            return function(*args, **named)

        return call

    targets = [
        (base, "start_new_thread", RuntimeError("can't start new thread")),
        (np, "fromiter", MemoryError()),
        (np, "concatenate", MemoryError()),
        (saved, "frame", MemoryError()),
        (os, "pwrite", OSError(28, "No space left on device")),
        (os, "ftruncate", OSError(28, "No space left on device")),
    ]
    for place in range(size):
        owner, name, error = targets[place % len(targets)]
        path = folder / f"{place}.mtp"
        options = chance.choice([{}, {"with_stack": True, "record_shapes": True, "profile_memory": True, "with_modules": True}])
        prof = profile(stream_to=path, flush_interval_s=0.1, **options)
        real, started = getattr(owner, name), False
        setattr(owner, name, failing(real, error, 1 + place // len(targets) % 12))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                prof.start()
                started = True
                for _ in range(5):
                    torch.ones(2) + 1
                    prof.step()
                prof._retention.flush()
                prof.stop()
            except (MemoryError, RuntimeError, OSError):
                raised += 1
                prof.stop() if started else None
            finally:
                setattr(owner, name, real)
            _nothing_left()
            if started:  # what the file has can be read, and what it has not is counted
                kept = _ops(load(path))["aten::add"]
                assert kept == 5 or load(path).dropped_events, (name, kept)
        with profile() as after:
            torch.ones(2) + 1
        assert _ops(after)["aten::add"] == 1
    return f"{size:,} failures at {len(targets)} places, {raised:,} raised"


@attack("cProfile beside with_stack: it misses no call, and what the recording misses is said", small=6, large=300)
def other_profilers(size: int) -> str:
    import cProfile
    import pstats

    x = torch.ones(3, requires_grad=True)

    def leaf() -> None:
        (x * 2).sum().backward()

    chance, lost = random.Random(0), 0
    for _ in range(size):
        other, on, expected = cProfile.Profile(), False, 0
        begin, end, total = chance.randrange(12), chance.randrange(12, 24), 24
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            prof, recorded = profile(with_stack=True), 0
            first, last = sorted(chance.sample(range(total), 2))
            for number in range(total):
                if number == first:
                    prof.start()
                if number == begin:
                    other.enable()
                    on = True
                if number == end:
                    other.disable()
                    on = False
                leaf()
                expected += on
                recorded += first <= number < last
                if number == last - 1 and last > first:
                    prof.stop()
            other.disable()
        calls = sum(counts[0] for key, counts in pstats.Stats(other).stats.items() if key[2] == "leaf")
        assert calls == expected, f"cProfile saw {calls} of {expected} calls"
        ours = sum(event.name.endswith(": leaf") for event in prof.events())
        assert ours == recorded or [each for each in told if "not recorded" in str(each.message)], (ours, recorded)
        lost += ours != recorded
        assert sum(event.name == "MulBackward0" for event in prof.events()) == recorded
    _nothing_left()
    return f"{size:,} orders of begin and end, {lost:,} with calls lost and said"


@attack("SIGTERM, atexit and daemon threads: what is on disk stays readable, and the interpreter ends", small=2, large=40)
def process_ends(size: int) -> str:
    for number in range(size):
        for how in ("default", "handler", "atexit", "daemon"):
            folder = _folder()
            status = -signal.SIGTERM if how == "default" else 0
            printed = _in_process(_ENDS, how, folder / "run.mtp", number / 200, status=status)
            loaded = load(folder / "run.mtp")
            assert how == "default" or loaded.recovery.complete, how
            assert _ops(loaded)["aten::add"] >= int(printed or 0), how
    return f"{size:,} times four kinds of end"


_ENDS = """
import atexit, os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile
from mindtorch_v2.profiler.config import _ExperimentalConfig
how, path, wait = sys.argv[1], sys.argv[2], float(sys.argv[3])
if how == "handler":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
prof = profile(stream_to=path, flush_interval_s=0.05, experimental_config=_ExperimentalConfig(profile_all_threads=True))
if how == "atexit":  # a profile that is never stopped, and ops while the interpreter ends
    atexit.register(lambda: [torch.ones(2) + 1 for _ in range(100)])
    prof.start()
    for _ in range(50):
        torch.ones(2) + 1
    print(150)
    sys.exit(0)
def work():
    while True:
        torch.ones(2) + 1
if how == "daemon":
    threading.Thread(target=work, daemon=True).start()
with prof:
    for _ in range(50):
        torch.ones(2) + 1
    prof._retention.flush()
    print(50, flush=True)
    time.sleep(wait)
    if how in ("default", "handler"):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
    if how == "daemon":
        sys.exit(0)
"""
