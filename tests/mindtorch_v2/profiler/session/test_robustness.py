"""What happens to a program while it is profiled: forks, workers, tasks, signals, other threads, the end of it all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2.autograd import profiler as legacy
from mindtorch_v2.profiler import (
    ExecutionTraceObserver,
    _ExperimentalConfig,
    profile,
    record_function,
    schedule,
    serve_on_demand,
)
from mindtorch_v2.profiler.formats.validate import validate
from mindtorch_v2.profiler.recording import recorder
from mindtorch_v2.profiler.recording.asyncio_lanes import TaskLog
from mindtorch_v2.utils.data import DataLoader, Dataset, IterableDataset

x = torch.ones(3)
SOURCE = str(Path(torch.__file__).parent.parent)
EVERYTHING = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True}
OPTIONS = [{}, EVERYTHING]
ALL_THREADS = _ExperimentalConfig(profile_all_threads=True)


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    assert entry_globals.observers_active == 0 and not recorder.active_recorders and not recorder.recorders_by_thread
    assert sys.getprofile() is None


def ops(prof):
    return [event.name for event in prof.events() if event.name.startswith("aten::")]


def errors(prof):
    return [problem for problem in validate(prof) if problem.severity == "error"]


# ------------------------------------------------------------------------------ start and stop


@pytest.mark.parametrize("options", OPTIONS)
def test_stop_on_another_thread(options):
    prof = profile(**options)
    prof.start()
    x + x
    other = threading.Thread(target=prof.stop)
    other.start()
    other.join()
    x * x
    assert ops(prof) == ["aten::add"] and not errors(prof)


def test_many_threads_start_and_stop_at_once():
    failures = []

    def work(number):
        try:
            for _ in range(30):
                with profile(experimental_config=ALL_THREADS if number % 2 else None) as prof:
                    x + x
                assert "aten::add" in ops(prof)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_that_outlive_the_recording():
    go, done = threading.Event(), threading.Event()

    def work():
        with record_function("long"):
            x + x
            go.wait()
            x * x
        x - x
        done.set()

    thread = threading.Thread(target=work)
    with profile(experimental_config=ALL_THREADS) as prof:
        thread.start()
        while "aten::add" not in ops(prof):
            time.sleep(0.001)
    go.set()
    done.wait()
    thread.join()
    names = [event.name for event in prof.events()]
    assert sorted(names) == ["aten::add", "long"] and not errors(prof)


def test_an_op_that_ends_after_the_recording_does_no_harm():
    """Its row comes when the rows have been taken away."""
    entered, go = threading.Event(), threading.Event()

    class Slow(torch.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            entered.set()
            go.wait()
            return value + 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    with profile(experimental_config=ALL_THREADS) as prof:
        thread = threading.Thread(target=lambda: Slow.apply(x))
        thread.start()
        entered.wait()
    before = ops(prof)
    go.set()
    thread.join()
    assert ops(prof) == before and not errors(prof)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError, GeneratorExit])
@pytest.mark.parametrize("options", OPTIONS)
def test_whatever_ends_the_block_the_events_stay(options, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning) if error is MemoryError else _nothing(), pytest.raises(error), profile(**options) as prof:
        with record_function("scope"):
            x + x
            raise error
    assert ops(prof) == ["aten::add"] and "scope" in [event.name for event in prof.events()]
    prof.export_chrome_trace(tmp_path / "t.json")
    assert not errors(prof)


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *exc):
        return None


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, also where the tests run as a shell's background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_inside_an_op(interruptible):
    """Ctrl-C in the middle of a long op: it is recorded as far as it went, and the recorder goes on."""
    big = torch.ones(700, 700)
    timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT))
    with profile() as prof:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            while True:
                with record_function("loop"):
                    big @ big
        x - x
    timer.join()
    names = ops(prof)
    assert names.count("aten::sub") == 1 and names.count("aten::matmul") >= 1 and not errors(prof)


def test_a_failing_handler_loses_nothing(tmp_path):
    def fail(prof):
        raise LookupError("handler")

    with pytest.raises(LookupError), profile(on_trace_ready=fail) as prof:
        x + x
    assert ops(prof) == ["aten::add"]
    prof.export_chrome_trace(tmp_path / "t.json")
    prof.save(tmp_path / "t.mtp")
    assert prof.key_averages().table()
    prof.stop()
    assert ops(prof) == ["aten::add"]


# ------------------------------------------------------------------------------ scopes in any order


def test_generators_leave_their_scopes_in_another_order():
    def steps(name):
        with record_function(name):
            yield x + x
            yield x * x

    with profile() as prof:
        first, second = steps("first"), steps("second")
        next(first), next(second)
        next(first), next(second)
        first.close()
        x - x
        second.close()
    assert Counter(event.name for event in prof.events()) == {
        "first": 1,
        "second": 1,
        "aten::add": 2,
        "aten::mul": 2,
        "aten::sub": 1,
    }
    assert not errors(prof)


def test_a_scope_left_on_another_thread():
    with profile() as prof:
        scope = record_function("moved")
        scope.__enter__()
        other = threading.Thread(target=scope.__exit__, args=(None, None, None))
        other.start()
        other.join()
        x + x
    assert {event.name: event.cpu_parent for event in prof.events()} == {"moved": None, "aten::add": None}


async def job(name, op):
    with record_function(name):
        for _ in range(3):
            op()
            await asyncio.sleep(0)
            with record_function(f"inside {name}"):
                torch.nn.functional.relu(x)
                await asyncio.sleep(0)


async def jobs():
    await asyncio.gather(job("one", lambda: x + x), job("two", lambda: x * x))


def scope_above(event):
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if event.name.endswith(("one", "two", "alone", "outer")):
            return event.name
    return None


@pytest.mark.parametrize("options", [{}, {"record_shapes": True, "profile_memory": True}, EVERYTHING])
def test_each_task_keeps_its_own_parent(options):
    with profile(**options) as prof:
        asyncio.run(jobs())
    parents = Counter((event.name, scope_above(event)) for event in prof.events() if event.name.startswith("aten::"))
    parents_of_ops = {pair: count for pair, count in parents.items() if pair[0] in ("aten::add", "aten::mul", "aten::relu")}
    assert parents_of_ops == {
        ("aten::add", "one"): 3,
        ("aten::mul", "two"): 3,
        ("aten::relu", "inside one"): 3,
        ("aten::relu", "inside two"): 3,
    }
    lanes = {event.thread for event in prof.events() if event.name in ("one", "two")}
    assert len(lanes) == 2 and not errors(prof)
    names = [thread.name for thread in prof.profiler.store.threads]
    assert sum("Task-" in name for name in names) == 2


def in_turns():
    """Two event loops of one thread, each of which runs a little at a time."""
    loops = [asyncio.new_event_loop(), asyncio.new_event_loop()]
    tasks = [
        loop.create_task(work) for loop, work in zip(loops, (job("one", lambda: x + x), job("two", lambda: x * x)), strict=True)
    ]
    while not all(task.done() for task in tasks):
        for loop in loops:
            loop.call_soon(loop.stop)
            loop.run_forever()
    for loop in loops:
        loop.close()


def one_after_another():
    asyncio.run(jobs())
    asyncio.run(jobs())


def in_threads():
    running = [threading.Thread(target=lambda: asyncio.run(jobs())) for _ in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


@pytest.mark.parametrize("run, tasks", [(one_after_another, 4), (in_turns, 2), (in_threads, 4)])
def test_tasks_of_several_event_loops_are_told_apart(run, tasks):
    with profile(experimental_config=ALL_THREADS) as prof:
        run()
    parents = Counter((event.name, scope_above(event)) for event in prof.events() if event.name in ("aten::add", "aten::mul"))
    assert parents == {("aten::add", "one"): 3 * tasks // 2, ("aten::mul", "two"): 3 * tasks // 2}
    assert len({event.thread for event in prof.events() if event.name in ("one", "two")}) == tasks
    assert not errors(prof)


def test_a_task_that_meets_no_other_stays_with_its_thread():
    async def alone():
        with record_function("alone"):
            x + x
            await asyncio.sleep(0)

    with profile() as prof, record_function("outer"):
        asyncio.run(alone())
    assert [(event.name, scope_above(event)) for event in prof.events()] == [
        ("outer", None),
        ("alone", "outer"),
        ("aten::add", "alone"),
    ]
    assert len(prof.profiler.store.threads) == 1


def test_memory_follows_the_task():
    with profile(profile_memory=True) as prof:
        asyncio.run(jobs())
    assert all(event.cpu_memory_usage > 0 for event in prof.events() if event.name == "aten::add")


def test_turns_are_cheap_to_note():
    log = TaskLog()
    rows = []
    append_row = log.wrap_append_row(rows.append)
    for row in range(5):
        append_row((0, 10 * row, 10 * row + 5, -1))
    assert len(rows) == 5 and not len(log.names)


# ------------------------------------------------------------------------------ forks


def in_a_child(task):
    """Run `task` in a forked child; returns its result as text."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        text = "died"
        try:
            text = str(task())
        finally:
            os.write(write, text.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text_of_child = pipe.read()
    os.waitpid(child, 0)
    return text_of_child


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")


@needs_fork
@pytest.mark.parametrize("options", [*OPTIONS, {"experimental_config": ALL_THREADS}])
def test_a_fork_neither_records_nor_writes_for_its_parent(options):
    called = []
    with profile(on_trace_ready=lambda prof: called.append(os.getpid()), **options) as prof:
        x + x

        def child():
            before = entry_globals.observers_active, sys.getprofile(), len(recorder.active_recorders)
            x * x
            prof.step()
            with profile() as inner:
                x - x
            prof.__exit__(None, None, None)
            return before, ops(inner), called

        result = in_a_child(child)
        x / x
    assert result == "((0, None, 0), ['aten::sub'], [])"
    assert ops(prof) == ["aten::add", "aten::div"] and called == [os.getpid()]


@needs_fork
def test_a_fork_may_start_the_profile_anew():
    def child():
        prof.start()
        x * x
        prof.stop()
        return ops(prof)

    with profile() as prof:
        x + x
        assert in_a_child(child) == "['aten::mul']"
    assert ops(prof) == ["aten::add"]


@needs_fork
def test_an_execution_trace_is_the_parents(tmp_path):
    path = tmp_path / "graph.json"
    observed = ExecutionTraceObserver().register_callback(str(path))
    with profile(execution_trace_observer=observed):
        x + x
        in_a_child(observed.unregister_callback)
        assert not path.exists()
    assert path.exists()
    observed.register_callback(str(tmp_path / "second.json"))
    in_a_child(observed.cleanup)
    assert not (tmp_path / "second.json").exists()


@needs_fork
def test_on_demand_serves_its_own_process(tmp_path):
    with serve_on_demand(tmp_path / "ask", folder=tmp_path) as served:
        served.start()
        assert in_a_child(served.stop) == "None"
        assert not list(tmp_path.glob("*.mtp"))
        assert served.stop() is not None
    assert len(list(tmp_path.glob("*.mtp"))) == 1


@needs_fork
def test_forking_while_others_start_and_stop():
    ended = threading.Event()

    def busy():
        while not ended.is_set():
            with profile():
                x + x

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        for _ in range(10):

            def child():
                with profile() as own:
                    x - x
                return ops(own)

            assert in_a_child(child) == "['aten::sub']"
    finally:
        ended.set()
        thread.join()


# ------------------------------------------------------------------------------ workers


class Numbers(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, at):
        with record_function("item"):
            return torch.ones(3) * at


class Stream(IterableDataset):
    def __iter__(self):
        for at in range(4):
            yield torch.ones(2) * at


def lanes(prof):
    """What is on each lane; workers of one number are one, whatever their processes."""
    store = prof.profiler.store
    found = {}
    for at, thread in enumerate(store.threads):
        names = Counter(store.names[name] for name in store.name[store.tid == at].tolist())
        found.setdefault(thread.name.split(" (pid")[0], Counter()).update(names)
    return found


@needs_fork
@pytest.mark.parametrize("options", OPTIONS)
def test_workers_have_lanes_of_their_own(options, tmp_path):
    with profile(**options) as prof:
        for batch in DataLoader(Numbers(), batch_size=2, num_workers=2):
            batch + batch
    rows = lanes(prof)
    for worker in ("DataLoader worker 0", "DataLoader worker 1"):
        assert rows[worker]["DataLoader worker: fetch"] == 2
        assert rows[worker]["item"] == rows[worker]["aten::mul"] == 4
    assert rows["MainThread"]["aten::add"] == 4 and not rows["MainThread"]["item"]
    assert not errors(prof)
    item = next(event for event in prof.events() if event.name == "aten::mul")
    assert item.cpu_parent.name == "item" or options
    prof.export_chrome_trace(tmp_path / "t.json")
    assert "(pid " in (tmp_path / "t.json").read_text()


@needs_fork
def test_workers_follow_the_schedule_and_all_profiles_get_their_rows():
    seen = []
    loader = DataLoader(Numbers(), batch_size=1, num_workers=1, prefetch_factor=1)
    plan = schedule(wait=2, warmup=1, active=2, repeat=1)
    with profile(schedule=plan, on_trace_ready=lambda prof: seen.append(lanes(prof))) as outer:
        for number, _ in enumerate(loader):
            if number == 4:
                with profile() as inner:
                    pass
            outer.step()
    assert 1 <= seen[0]["DataLoader worker 0"]["item"] <= 3
    assert "DataLoader worker 0" not in lanes(inner)


@needs_fork
def test_workers_that_fail_or_run_dry_are_recorded_too():
    class Failing(Numbers):
        def __getitem__(self, at):
            x + x
            raise LookupError(at)

    with profile() as prof:
        with pytest.raises(LookupError):
            list(DataLoader(Failing(), num_workers=1))
        list(DataLoader(Stream(), num_workers=1))
    rows = lanes(prof)["DataLoader worker 0"]
    assert rows["aten::add"] >= 1 and rows["aten::mul"] == 4


@needs_fork
def test_nothing_is_sent_to_workers_while_nothing_records():
    assert [batch.tolist() for batch in DataLoader(Stream(), batch_size=2, num_workers=1)] == [
        [[0.0, 0.0], [1.0, 1.0]],
        [[2.0, 2.0], [3.0, 3.0]],
    ]


def test_an_interrupt_in_the_last_call_of_a_start_leaves_nothing_recording(monkeypatch):
    from mindtorch_v2._dispatch import entry_globals
    from mindtorch_v2.profiler.session import autograd_profile

    measured = autograd_profile._microseconds_since

    def interrupted(started):
        if entry_globals.observers_active:
            raise KeyboardInterrupt
        return measured(started)

    for kind in (torch.autograd.profiler.profile, profile):
        prof = kind(with_stack=True)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(autograd_profile, "_microseconds_since", interrupted)
            prof.__enter__()
        assert entry_globals.observers_active == 0 and sys.getprofile() is None


# ------------------------------------------------------------------------------ the end


def script(text):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(text)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": SOURCE},
    )


@pytest.mark.skipif(os.name != "posix", reason="a working folder cannot be removed here")
def test_a_working_folder_that_was_removed(tmp_path):
    """A job's scratch folder, for one: what does not go there is written."""
    ended = script(f"""
        import os, mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile
        folder = {str(tmp_path)!r}
        os.mkdir(folder + "/scratch")
        os.chdir(folder + "/scratch")
        with profile(with_stack=True, with_modules=True, profile_memory=True) as prof:
            torch.ones(2) + 1
            os.rmdir(folder + "/scratch")
        prof.export_chrome_trace(folder + "/trace.json")
        prof.export_html(folder + "/page.html")
        prof.save(folder + "/saved.mtp")
        print(len(prof.key_averages(group_by_stack_n=5)) > 0)
    """)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
    assert sorted(os.listdir(tmp_path)) == ["page.html", "saved.mtp", "trace.json"]


@pytest.mark.parametrize("options", ["", "with_stack=True, profile_memory=True, record_shapes=True"])
def test_a_profile_that_runs_when_the_interpreter_ends(options):
    ended = script(f"""
        import threading, mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile, _ExperimentalConfig
        x = torch.ones(2)
        prof = profile({options}{", " if options else ""}experimental_config=_ExperimentalConfig(profile_all_threads=True))
        prof.start()
        def forever():
            while True:
                x + x
        threading.Thread(target=forever, daemon=True).start()
        x * x
        print("done")
    """)
    assert ended.returncode == 0 and ended.stdout == "done\n"
    assert ended.stderr.count("\n") == 1
    assert "RuntimeWarning: a profile was still running when the interpreter ended" in ended.stderr


def test_an_error_with_a_profile_running_is_the_error_that_is_seen():
    ended = script("""
        import mindtorch_v2 as torch
        from mindtorch_v2.profiler import profile
        profile().start(), profile().start()
        raise SystemExit(7)
    """)
    assert ended.returncode == 7 and "2 profiles were still running" in ended.stderr


def test_a_legacy_profile_left_twice_changes_nothing():
    with legacy.profile() as prof:
        x + x
    prof.__exit__(None, None, None)
    assert [event.name for event in prof.function_events] == ["aten::add"]


def test_calls_on_the_way_out_are_not_in_the_recording():
    """The thread that stops is traced until the others have been stopped, so its last calls come after the end."""
    config = _ExperimentalConfig(profile_all_threads=True)
    stop, ready = threading.Event(), threading.Event()

    def other():
        x + x
        ready.set()
        stop.wait()

    thread = threading.Thread(target=other)
    prof = profile(with_stack=True, experimental_config=config)
    starter = threading.Thread(target=prof.start)
    starter.start()
    starter.join()
    thread.start()
    ready.wait()
    x * x
    prof.stop()
    stop.set()
    thread.join()
    assert not errors(prof)


def test_asking_while_recording_does_not_multiply_what_is_recorded():
    with profile(with_stack=True) as prof:
        for _ in range(50):
            x + x
        counts = [len(prof.profiler.store) for _ in range(4)]
    assert counts[3] - counts[0] < 60
    assert ops(prof) == ["aten::add"] * 50 and not errors(prof)
