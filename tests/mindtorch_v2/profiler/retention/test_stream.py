"""profile(stream_to=...): the file is what the recording in memory would have been, whole or up to the last flush."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from retention_cases import ALL, ByHand, Net, helper, train

import mindtorch_v2 as torch
from mindtorch_v2._core.threads import threads
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import _ExperimentalConfig as Config
from mindtorch_v2.profiler import load, profile, record_function, schedule, validate
from mindtorch_v2.profiler.assembly.freeze import freeze
from mindtorch_v2.profiler.cli.main import main
from mindtorch_v2.profiler.retention import stream_file
from mindtorch_v2.profiler.retention.stream import Stream

OPTIONS = [
    {},
    {"record_shapes": True},
    {"with_stack": True},
    {"profile_memory": True},
    {"with_modules": True},
    {"with_flops": True},
    ALL,
]
NEVER = 1000.0  # seconds: only the test itself flushes


def rows(store, since=0, until=1 << 62, kinds=range(12)):
    """Everything that a row says, as text and numbers."""
    columns = zip(
        *(
            getattr(store, c).tolist()
            for c in (
                "name",
                "kind",
                "tid",
                "start",
                "end",
                "seq",
                "step",
                "shapes",
                "call_stack",
                "flops",
                "module",
                "fwd_tid",
                "op",
                "parent",
            )
        ),
        strict=True,
    )
    rows = []
    for name, kind, tid, start, end, seq, step, shapes, stack, flops, module, fwd_tid, op, parent in columns:
        if since <= start and end <= until and kind in kinds:
            rows.append(
                (
                    store.names[name],
                    kind,
                    store.threads[tid].name,
                    start,
                    end,
                    seq,
                    step,
                    store.input_infos[shapes] if shapes >= 0 else None,
                    store.stacks[stack] if stack >= 0 else (),
                    flops,
                    store.modules[module] if module >= 0 else "",
                    store.threads[fwd_tid].name if fwd_tid >= 0 else "",
                    store.overloads[op] if op >= 0 else "",
                    store.names[store.name[parent]] if parent >= 0 else "",
                )
            )
    return rows


def allocations(store, since, until):
    columns = (store.mem_time, store.mem_bytes, store.mem_addr)
    return [
        (size, address)
        for moment, size, address in zip(*(column.tolist() for column in columns), strict=True)
        if since <= moment <= until and size > 0
    ]


# ------------------------------------------------------------------------------ exactness


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_the_file_is_what_memory_would_have_held(tmp_path, options):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path, flush_interval_s=NEVER, **options) as prof:
        flush = prof._retention.flush
        flush()
        with profile(**options) as plain:
            train(prof, 5, flush)
        flush()
    in_memory, streamed = plain.profiler.store, load(path)
    assert streamed.recovery.intact
    assert streamed.store.options["with_stack"] == options.get("with_stack", False)
    since, until = in_memory.clock_start_ns, in_memory.clock_end_ns
    # Both are handed the same rows of ops and ranges; steps are the streamed profile's own, and each reads the clock itself
    # for modules and memory.
    shared = (observer.OP, observer.BACKWARD, observer.ENGINE, observer.SCOPE)
    want = [row[:6] + row[7:13] for row in rows(in_memory, since, until - 1, shared)]
    got = [row[:6] + row[7:13] for row in rows(streamed.store, since, until - 1, shared)]
    assert got == want and len(want) > 100
    modules = [[row[0] for row in rows(store, since, until, (observer.MODULE,))] for store in (in_memory, streamed.store)]
    assert modules[0] == modules[1]
    assert {row[6] for row in rows(streamed.store)} == set(range(5))
    assert allocations(streamed.store, since, until) == allocations(in_memory, since, until)
    assert rows(prof.profiler.store) == rows(streamed.store)
    assert not [problem for problem in validate(streamed.store) if problem.severity == "error"]


def test_python_calls_across_chunks(tmp_path):
    """Calls that are open when a chunk ends, and return in a later one."""
    path = tmp_path / "run.mtp"

    def outer(flush, depth):
        flush()
        torch.ones(1)
        if depth:
            outer(flush, depth - 1)
        flush()
        torch.zeros(1)

    def shape_of(store):
        return sorted(
            (store.names[n].split(": ")[-1], d)
            for n, k, d in zip(store.name, store.kind, store.depth, strict=True)
            if k == observer.PYTHON and store.names[n].endswith("outer")
        )

    with profile(stream_to=path, flush_interval_s=NEVER, with_stack=True) as prof:
        outer(prof._retention.flush, 3)
    with profile(with_stack=True) as plain:
        outer(lambda: None, 3)
    assert shape_of(load(path).store) == shape_of(plain.profiler.store)
    stacks = {store.stacks[at] for store in (load(path).store,) for at in store.stack.tolist() if at >= 0}
    assert max(sum(frame.endswith("outer") for frame in stack) for stack in stacks) == 4


@pytest.mark.parametrize("seed", range(5))
def test_rows_in_any_chunks(tmp_path, seed):
    """Fed by hand, with a fake clock: nested ops whose parents come in later chunks."""
    chance = np.random.default_rng(seed)
    both = ByHand(Stream(tmp_path / "run.mtp", NEVER), twin=True)
    state, clock = threads.state, both.clock

    def op(depth):
        start = clock()
        for _ in range(int(chance.integers(0, 3)) if depth else 0):
            op(depth - 1)
        if chance.random() < 0.2:
            both.flush()
        state.append_row((int(chance.integers(0, 5)), start, clock(), int(chance.integers(-1, 50))))

    for step in range(20):
        op(4)
        both.recorder.step(step)
        both.twin.steps.append(both.recorder.steps[-1])
    both.stop()
    kept = freeze(both.twin)
    want = [row[:7] for row in rows(kept)]
    assert [row[:7] for row in rows(load(tmp_path / "run.mtp").store)] == want
    assert [row[-1] for row in rows(load(tmp_path / "run.mtp").store)] == [row[-1] for row in rows(kept)]


def test_memory_freed_by_another_chunk(tmp_path):
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER, profile_memory=True) as prof:
        kept = [torch.ones(1000) for _ in range(3)]
        prof._retention.flush()
        del kept[0]
        prof._retention.flush()
        del kept
        before = torch.ones(10)
    store = load(tmp_path / "run.mtp").store
    sizes = [size for size in store.mem_bytes.tolist() if abs(size) == 4000]
    assert sizes == [4000, 4000, 4000, -4000, -4000, -4000]
    assert store.mem_total.max() >= 12000 and store.mem_total[-1] == before.nbytes


def test_every_thread(tmp_path):
    def work():
        for _ in range(50):
            torch.ones(3) + 1

    config = Config(profile_all_threads=True)
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=0.01, experimental_config=config) as prof:
        workers = [threading.Thread(target=work, name=f"worker {n}") for n in range(3)]
        for worker in workers:
            worker.start()
        work()
        for worker in workers:
            worker.join()
    store = load(tmp_path / "run.mtp").store
    adds = [row[2] for row in rows(store) if row[0] == "aten::add"]
    assert {name: adds.count(name) for name in adds} == {"MainThread": 50, **{f"worker {n}": 50 for n in range(3)}}
    assert rows(prof.profiler.store) == rows(store)


def test_tasks_that_take_turns(tmp_path):
    async def task(name, prof):
        with record_function(name):
            await asyncio.sleep(0)
            torch.ones(2)
            prof._retention.flush()
            await asyncio.sleep(0)

    async def both(prof):
        await asyncio.gather(task("one", prof), task("two", prof))

    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER) as prof:
        asyncio.run(both(prof))
    found = {row[0]: row[2] for row in rows(load(tmp_path / "run.mtp").store) if row[0] in ("one", "two")}
    assert len(set(found.values())) == 2
    parents = [row[-1] for row in rows(load(tmp_path / "run.mtp").store) if row[0] == "aten::ones"]
    assert sorted(parents) == ["one", "two"]


def test_overloads_with_out(tmp_path):
    out = torch.empty(3)
    config = Config(capture_overload_names=True)
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER, experimental_config=config):
        torch.add(torch.ones(3), 1, out=out)
    store = load(tmp_path / "run.mtp").store
    assert [store.overloads[op] for name, op in zip(store.name, store.op, strict=True) if store.names[name] == "aten::add"] == [
        "out"
    ]


def test_memory_timeline(tmp_path):
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER, **ALL) as prof:
        train(prof, 2, prof._retention.flush)
    with pytest.warns(FutureWarning):
        prof.export_memory_timeline(tmp_path / "timeline.json")
    categories = {category for *_, category in prof._memory_blocks().on_device("cpu") if category is not None}
    assert {"PARAMETER", "GRADIENT", "ACTIVATION"} <= {category.name for category in categories}


# ------------------------------------------------------------------------------ windows


def test_every_window_goes_to_the_file_and_results_are_the_last_ones(tmp_path):
    path, seen = tmp_path / "run.mtp", []

    def ready(prof):
        seen.append([row for row in rows(prof.profiler.store) if row[0].startswith("ProfilerStep")])
        prof.export_chrome_trace(tmp_path / f"{len(seen)}.json")
        assert len(load(tmp_path / f"{len(seen)}.json")) == len(prof.profiler.store)
        assert load(path).recovery.complete

    with profile(stream_to=path, schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=ready) as prof:
        for number in range(12):
            with record_function(f"work {number}"):
                torch.ones(2) + 1
            prof.step()
    assert [[row[0] for row in window] for window in seen] == [
        ["ProfilerStep#2", "ProfilerStep#3"],
        ["ProfilerStep#6", "ProfilerStep#7"],
        ["ProfilerStep#10", "ProfilerStep#11"],
    ]
    store = load(path).store
    assert [row[0] for row in rows(store) if row[0].startswith("Prof")] == [row[0] for window in seen for row in window]
    assert [(row[0], row[6]) for row in rows(store) if row[0].startswith("work")] == [
        (f"work {n}", n) for n in (2, 3, 6, 7, 10, 11)
    ]
    assert [event.name for event in prof.events() if event.name.startswith("work")] == ["work 10", "work 11"]
    assert {row.key: row.count for row in prof.key_averages()}["aten::add"] == 2


def test_later_windows_bring_nothing_that_is_known(tmp_path):
    """Frames that are open when a window begins, and modules, are in the file once, however many windows have them."""
    path, net = tmp_path / "run.mtp", Net()
    known = []

    def ready(prof):
        tables = prof._retention._tables
        known.append((len(tables._module_numbers), len(tables.names), len(tables.infos), len(tables._calls)))

    with profile(
        stream_to=path,
        flush_interval_s=NEVER,
        schedule=schedule(wait=0, warmup=1, active=1),
        on_trace_ready=ready,
        with_stack=True,
        with_modules=True,
        record_shapes=True,
    ) as prof:
        for _ in range(24):
            net(torch.ones(3, 4))
            prof.step()
    assert len(known) == 12 and len({window[:3] for window in known[3:]}) == 1
    # A busy machine may still see a function of threads for the first time; each window has dozens of open frames.
    assert known[-1][3] - known[3][3] < 20
    store = load(path).store
    assert [store.names[name] for name in store.name].count("nn.Module: Net_0") == 12


def test_recorder_holds_little(tmp_path):
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER, schedule=lambda step: profile_action()) as prof:
        for _ in range(200):
            torch.ones(2)
            prof.step()
            prof._retention.flush()
        recorder = prof.profiler._recorder
        (recording,) = recorder.thread_recordings
        assert len(recording.rows) == 0 and len(recording.spans) <= 2 and len(recorder.steps) <= 2
    names = [row[0] for row in rows(load(tmp_path / "run.mtp").store)]
    assert [name for name in names if name.startswith("Prof")] == [f"ProfilerStep#{n}" for n in range(201)][
        : names.count("aten::ones") + 1
    ]


def profile_action():
    from mindtorch_v2.profiler import ProfilerAction

    return ProfilerAction.RECORD


def test_metadata_and_a_second_start(tmp_path):
    prof = profile(stream_to=tmp_path / "run.mtp")
    prof.add_metadata("who", "me")
    for _ in range(2):
        prof.start()
        torch.ones(2)
        prof.stop()
    store = load(tmp_path / "run.mtp").store
    assert store.metadata["who"] == "me"
    assert [row[0] for row in rows(store)].count("aten::ones") == 2


def test_pause_and_resume(tmp_path):
    from mindtorch_v2.profiler import ProfilerActivity

    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER, **ALL) as prof:
        torch.ones(1)
        prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
        torch.ones(2)
        prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
        helper()
    store = load(tmp_path / "run.mtp").store
    assert [row[7].dims[0] for row in rows(store) if row[0] == "aten::ones" and row[7]] == [(), ()]
    assert not [problem for problem in validate(store) if problem.severity == "error"]


# ------------------------------------------------------------------------------ losses


def test_a_torn_frame_is_dropped_and_counted(tmp_path):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path, flush_interval_s=NEVER) as prof:
        for _ in range(10):
            torch.empty(2)
            prof._retention.flush()
    whole = path.read_bytes()
    counts = []
    for size in range(600, len(whole), 97):
        path.write_bytes(whole[:size])
        loaded = load(path)
        counts.append(len(loaded))
        assert not loaded.recovery.complete
    assert counts == sorted(counts) and 0 < counts[-1] <= 20
    path.write_bytes(whole[:-150])
    assert load(path).recovery.bytes_dropped > 0 and "the last frame is torn" in load(path).recovery.notes


def test_repair(tmp_path, capsys):
    path, repaired = tmp_path / "run.mtp", tmp_path / "repaired.mtp"
    with profile(stream_to=path, flush_interval_s=NEVER, with_stack=True) as prof:
        for _ in range(5):
            torch.ones(2)
            prof._retention.flush()
    data = path.read_bytes()
    path.write_bytes(data[:-150])
    assert main(["repair", str(path), "-o", str(repaired)]) == 0
    said = capsys.readouterr().out
    assert "recovered: " in said and "cut off before its end" in said and " bytes" in said
    assert load(repaired).recovery.complete and len(load(repaired)) == len(load(path)) > 0
    assert rows(load(repaired).store) == rows(load(path).store)
    assert main(["repair", str(path), "-o", str(path)]) == 2
    path.write_bytes(b"nothing")
    assert main(["repair", str(path), "-o", str(repaired)]) == 3


def test_a_full_disk_is_waited_for(tmp_path, monkeypatch):
    write, full = os.pwrite, [True]

    def pwrite(number, data, place):
        if full[0]:
            write(number, data[:10], place)
            raise OSError(28, "No space left on device")
        return write(number, data, place)

    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER) as prof:
        monkeypatch.setattr(os, "pwrite", pwrite)
        torch.ones(2)
        with pytest.warns(RuntimeWarning, match="No space left"):
            prof._retention.flush()
        torch.ones(2)
        full[0] = False
    assert [row[0] for row in rows(load(tmp_path / "run.mtp").store)].count("aten::ones") == 2
    assert prof.dropped_events == 0


def test_a_disk_that_stays_full_drops_and_counts(tmp_path, monkeypatch):
    def pwrite(number, data, place):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stream_file, "_MOST_WAITING", 100)
    with profile(stream_to=tmp_path / "run.mtp", flush_interval_s=NEVER) as prof:
        torch.empty(2)
        with monkeypatch.context() as broken, pytest.warns(RuntimeWarning, match="No space left"):
            broken.setattr(os, "pwrite", pwrite)
            for _ in range(3):
                torch.empty(2)
                prof._retention.flush()
        assert prof.dropped_events == 2
    loaded = load(tmp_path / "run.mtp")
    assert loaded.dropped_events == 2
    assert "Dropped events: 2" in loaded.key_averages().table()
    assert any("2 events were dropped" in str(problem) for problem in validate(loaded))


CHILD = """
import sys
import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile, record_function
with profile(stream_to=sys.argv[1], flush_interval_s=0.1, with_stack=sys.argv[2] == "1", profile_memory=True) as prof:
    number = 0
    while True:
        with record_function(f"range {number}"):
            torch.ones(10) * 2
        number += 1
        print("left", number, flush=True)
        if number % 50 == 0:
            prof._retention.flush()
            print("flushed", number, flush=True)
"""


@pytest.mark.parametrize(("with_stack", "seconds"), [("0", 0.0), ("0", 0.2), ("1", 0.1)])
def test_kill(tmp_path, with_stack, seconds):
    """What was flushed is there, and nothing that did not happen."""
    path = tmp_path / "run.mtp"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), with_stack], stdout=subprocess.PIPE, text=True, env=environment
    )
    lines = list(iter(process.stdout.readline, "flushed 100\n"))
    reader = threading.Thread(target=lambda: lines.extend(process.stdout))
    reader.start()
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reader.join()
    process.stdout.close()
    said = [line.split() for line in lines if line.endswith("\n")]
    flushed = max([100, *(int(number) for what, number in said if what == "flushed")])
    left = max(int(number) for what, number in said if what == "left")
    loaded = load(path)
    found = sorted(int(row[0].split()[1]) for row in rows(loaded.store) if row[0].startswith("range"))
    assert found == list(range(len(found))) and flushed <= len(found) <= left + 1
    assert not loaded.recovery.complete
    assert not [problem for problem in validate(loaded.store) if problem.severity == "error"]


def test_a_child_process_leaves_the_file_alone(tmp_path):
    path = tmp_path / "run.mtp"
    with profile(stream_to=path, flush_interval_s=NEVER) as prof:
        torch.ones(1)
        child = os.fork()
        if not child:
            torch.ones(2)
            prof.stop()
            os._exit(0)
        os.waitpid(child, 0)
        torch.ones(3)
    loaded = load(path)
    assert loaded.recovery.intact and [row[0] for row in rows(loaded.store)].count("aten::ones") == 2


# ------------------------------------------------------------------------------ arguments


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"stream_to": "no/such/folder/x.mtp"}, FileNotFoundError, "no folder"),
        ({"stream_to": "."}, IsADirectoryError, "is a folder"),
        ({"stream_to": 3}, AttributeError, "path"),
        ({"stream_to": "x.mtp", "flush_interval_s": 0}, ValueError, "flush_interval_s"),
        ({"stream_to": "x.mtp", "flush_interval_s": "1"}, TypeError, "flush_interval_s"),
        ({"stream_to": "x.mtp", "mode": "ring"}, ValueError, "choose one"),
        ({"stream_to": "x.mtp", "max_memory_mb": 5}, ValueError, "choose one"),
        ({"stream_to": "x.mtp", "acc_events": True}, ValueError, "acc_events"),
        ({"mode": "ring"}, ValueError, "max_memory_mb"),
        ({"mode": "rong", "max_memory_mb": 5}, ValueError, "'rong'"),
        ({"mode": "ring", "max_memory_mb": 0}, ValueError, "max_memory_mb"),
        ({"mode": "ring", "max_memory_mb": -1}, ValueError, "max_memory_mb"),
        ({"mode": "ring", "max_memory_mb": True}, TypeError, "max_memory_mb"),
        ({"mode": "aggregate", "max_memory_mb": 5, "with_stack": True}, ValueError, "with_stack"),
        ({"mode": "aggregate", "max_memory_mb": 5, "profile_memory": True}, ValueError, "profile_memory"),
        ({"mode": "ring", "max_memory_mb": 5, "acc_events": True}, ValueError, "acc_events"),
    ],
    ids=str,
)
def test_arguments_that_make_no_sense(tmp_path, monkeypatch, arguments, error, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        profile(**arguments)
    assert not os.listdir(tmp_path)
