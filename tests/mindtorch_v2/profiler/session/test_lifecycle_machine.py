"""Any order of start, step, stop, scopes, ops, failures and threads: every profile has what it asked for, and adds up.

MACHINE_RUNS=10000 makes it a soak.
"""

from __future__ import annotations

import os
import queue
import threading
import warnings
from collections import Counter
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2._dispatch.observer import call_untraced
from mindtorch_v2.profiler import ProfilerAction, _ExperimentalConfig, profile, record_function, schedule
from mindtorch_v2.profiler.formats.validate import ERROR, validate
from mindtorch_v2.profiler.recording import recorder

RUNS = int(os.environ.get("MACHINE_RUNS", "40"))
BATCH = 100
x = torch.ones(3)
OPS = {"aten::add": lambda: x + x, "aten::mul": lambda: x * x, "aten::neg": lambda: -x}
FLAGS = ("record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops")
RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


class Helper:
    """Another thread that does what it is told, one thing at a time."""

    def __init__(self):
        self._todo, self._done = queue.SimpleQueue(), queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while (task := self._todo.get()) is not None:
            try:
                self._done.put((task(), None))
            except BaseException as error:
                self._done.put((None, error))

    def __call__(self, task):
        self._todo.put(task)
        result, error = self._done.get()
        if error is not None:
            raise error
        return result

    def close(self):
        self._todo.put(None)
        self._thread.join()


class HandlerFailed(Exception):
    pass


class Session:
    """A profile, and what it must have recorded."""

    def __init__(self, flags, all_threads, plan, failing):
        self.all_threads, self.failing, self.plan = all_threads, failing, plan
        self.seen = []  # what on_trace_ready saw
        self.windows = []  # what it should have seen
        self.ops, self.scopes = Counter(), Counter()
        self.thread = None
        self.running = False
        self.prof = profile(
            **flags,
            on_trace_ready=self.ready,
            schedule=None if plan is None else schedule(**plan),
            experimental_config=_ExperimentalConfig(profile_all_threads=all_threads),
        )

    def ready(self, prof):
        self.seen.append(call_untraced(recorded, prof))
        if self.failing:
            raise HandlerFailed

    @property
    def action(self):
        return self.prof.current_action

    def records(self, thread):
        return self.running and self.action in RECORDING and (self.all_threads or thread == self.thread)

    def window_ends(self):
        self.windows.append((Counter(self.ops), Counter(self.scopes)))

    def forget(self):
        self.ops.clear()
        self.scopes.clear()


# Called as call_untraced(recorded, prof): the calls that read events with their stacks would otherwise be recorded too, and
# soon outnumber all others.
def recorded(prof):
    names = [event.name for event in prof.events()]
    return (Counter(name for name in names if name in OPS), Counter(name for name in names if name.startswith("scope")))


class Lifecycle(RuleBasedStateMachine):
    sessions = Bundle("sessions")
    scopes = Bundle("scopes")

    @initialize()
    def begin(self):
        self.caught = warnings.catch_warnings()
        self.caught.__enter__()
        warnings.simplefilter("ignore")
        self.everything = []
        self.helper = Helper()
        self.open_scopes = {}
        self.number = 0

    def on(self, thread, task):
        return self.helper(task) if thread else task()

    # -------------------------------------------------------------------------- profiles

    @rule(
        target=sessions,
        flags=st.sets(st.sampled_from(FLAGS)),
        all_threads=st.booleans(),
        failing=st.booleans(),
        plan=st.none()
        | st.fixed_dictionaries(
            {"wait": st.integers(0, 1), "warmup": st.integers(0, 1), "active": st.integers(1, 2), "repeat": st.integers(0, 2)}
        ),
    )
    def make(self, flags, all_threads, failing, plan):
        session = Session(dict.fromkeys(flags, True), all_threads, plan, failing)
        self.everything.append(session)
        return session

    @rule(session=sessions, thread=st.booleans())
    def start(self, session, thread):
        before = session.running
        self.on(thread, session.prof.start)
        if not before:
            session.running, session.thread = True, thread
            session.began_scopes = self.number
            if session.action in RECORDING:
                session.forget()

    @rule(session=sessions, thread=st.booleans())
    def stop(self, session, thread):
        if session.prof.profiler is None and not session.running:
            if session.action is not ProfilerAction.NONE:
                with pytest.raises(AssertionError, match="must be initialized"):
                    session.prof.stop()
            return
        ends = session.running and session.action in RECORDING
        if ends:
            self.cut_scopes(session)
            session.window_ends()
        try:
            self.on(thread, session.prof.stop)
        except HandlerFailed:
            assert ends and session.failing
        session.running = False

    @rule(session=sessions, thread=st.booleans())
    def step(self, session, thread):
        """The thread that starts a window is the one it records."""
        was = session.action
        windows = len(session.windows)
        if session.running and was is ProfilerAction.RECORD_AND_SAVE:
            self.cut_scopes(session)
            session.window_ends()
        try:
            self.on(thread, session.prof.step)
        except HandlerFailed:
            assert session.failing and len(session.windows) > windows
        if session.running and session.action in RECORDING and was is not ProfilerAction.RECORD:
            session.forget()
            session.thread = thread
            session.began_scopes = self.number

    def cut_scopes(self, session):
        """Scopes that are open when a window ends, end with it."""
        for number, (_, thread) in self.open_scopes.items():
            if number > session.began_scopes and session.records(thread):
                session.scopes[f"scope{number}"] += 1

    # -------------------------------------------------------------------------- what is recorded

    @rule(name=st.sampled_from(sorted(OPS)), thread=st.booleans(), times=st.integers(1, 3))
    def op(self, name, thread, times):
        for _ in range(times):
            self.on(thread, OPS[name])
        for session in self.everything:
            if session.records(thread):
                session.ops[name] += times

    @rule(thread=st.booleans(), error=st.sampled_from([ValueError, KeyboardInterrupt, SystemExit, GeneratorExit]))
    def failing_scope(self, thread, error):
        self.number += 1
        name = f"scope{self.number}"

        def run():
            with record_function(name):
                x + x
                raise error

        with pytest.raises(error):
            self.on(thread, run)
        for session in self.everything:
            if session.records(thread):
                session.ops["aten::add"] += 1
                session.scopes[name] += 1

    @rule(target=scopes, thread=st.booleans())
    def enter(self, thread):
        self.number += 1
        scope = record_function(f"scope{self.number}")
        self.on(thread, scope.__enter__)
        self.open_scopes[self.number] = (scope, thread)
        return self.number

    @rule(number=consumes(scopes), thread=st.booleans())
    def leave(self, number, thread):
        """In any order, and on any thread."""
        scope, of = self.open_scopes.pop(number)
        for session in self.everything:
            if session.records(of) and number > session.began_scopes:
                session.scopes[f"scope{number}"] += 1
        self.on(thread, lambda: scope.__exit__(None, None, None))

    @precondition(lambda self: self.everything)
    @rule(thread=st.booleans())
    def short_lived_thread(self, thread):
        """One that begins and ends while others record."""
        made = threading.Thread(target=OPS["aten::neg"])
        self.on(thread, made.start)
        made.join()
        for session in self.everything:
            if session.running and session.action in RECORDING and session.all_threads:
                session.ops["aten::neg"] += 1

    # -------------------------------------------------------------------------- what must hold

    @rule(session=sessions)
    def ask(self, session):
        if session.prof.profiler is None:
            with pytest.raises(AssertionError, match="must be initialized"):
                session.prof.events()
            return
        first, second = call_untraced(recorded, session.prof), call_untraced(recorded, session.prof)
        if not session.running:
            assert first == second
            rows = [(row.key, row.count, row.self_cpu_time_total) for row in session.prof.key_averages()]
            assert rows == [(row.key, row.count, row.self_cpu_time_total) for row in session.prof.key_averages()]
        elif session.action in RECORDING:
            assert first[0] == +session.ops
        self.check(session)

    def check(self, session):
        assert session.seen == [(+ops, +scopes) for ops, scopes in session.windows]
        wrong = [problem for problem in call_untraced(validate, session.prof) if problem.severity == ERROR]
        assert not wrong, wrong

    @invariant()
    def watchers_are_counted(self):
        if hasattr(self, "everything"):
            running = [one for one in self.everything if one.running and one.action in RECORDING]
            assert len(recorder.active_recorders) == len(running)
            assert entry_globals.observers_active == len(running)

    def teardown(self):
        if not hasattr(self, "everything"):
            return
        for session in self.everything:
            if session.running:
                self.end(session)
            if session.prof.profiler is not None:
                self.check(session)
        for scope, thread in self.open_scopes.values():
            self.on(thread, lambda scope=scope: scope.__exit__(None, None, None))
        self.helper.close()
        self.caught.__exit__(None, None, None)
        assert entry_globals.observers_active == 0 and not recorder.recorders_by_thread and not recorder.active_recorders

    def end(self, session):
        if session.action in RECORDING:
            self.cut_scopes(session)
            session.window_ends()
        with suppress(HandlerFailed):
            session.prof.stop()
        session.running = False


@pytest.mark.parametrize("batch", range(-(-RUNS // BATCH)))
def test_any_order(batch):
    """In batches, since the search remembers every run."""
    machine = seed(batch)(type("Lifecycle", (Lifecycle,), {}))
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=min(BATCH, RUNS - batch * BATCH),
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=[Phase.generate],
        ),
    )
