"""The hot path: ops, scopes and modules append their events to flat lists of plain integers while a recording runs.

In: calls from the generated op entries and the engine, through the slots of the thread's ThreadState. Out: per thread one
ThreadRecording, whose lists `assembly.freeze` turns into an EventStore after `stop()`.

A ThreadRecording is what one Recorder has from one thread: the lists and the functions that fill them. The functions are
chosen when the recording starts, so that no event tests an option. Several recordings may run at once; ThreadRecorders
holds those of one thread and puts their functions into the ThreadState: those of a single recording directly, those of
several behind one function that calls each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns, time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core import threads as all_threads
from ..._core.cpython import other_threads_waiting
from ..._core.restoring import carry_out
from ..._core.threads import ThreadState, threads
from ..._dispatch import observer
from ..store.store import InputInfo
from .allocations import MemoryLog
from .asyncio_lanes import TaskLog
from .communications import CommunicationLog
from .current_task import Task
from .hidden_threads import is_hidden
from .module_calls import ModuleLog
from .op_inputs import Captures
from .other_threads import OtherThread, trace_other_threads
from .python_calls.stream import CallSegment, PythonCallLog, PythonCallWindow
from .stack_samples import StackSamples
from .tensor_notes import OptimizerLog

AppendRow = Callable[[tuple[int, ...]], None]
CaptureByOp = Mapping[int, Callable[..., None]]  # by op id: a function of start, end, sequence number and the op's arguments
Span = Callable[..., None]  # name, kind, start, end, sequence number, and the outline of its inputs

# Row ids from here on are spans, numbered per thread and recording; smaller ones are op ids.
SPAN_BASE = 1 << 32
PLAIN_WIDTH = 4  # id, start, end, sequence number
SHAPES_WIDTH = 5  # the same and the number of the inputs' key


class ForeignRows(NamedTuple):
    """Rows of no thread of this process, such as those of a worker, as columns and the tables that the columns index."""

    ident: int
    name: str
    columns: dict[str, NDArray[Any]]
    tables: dict[str, list[Any]]


class Options(NamedTuple):
    """What is recorded besides names and times."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = False
    adjust_steps: bool = False
    stacks_per_second: float = 0.0  # of ops, where Python calls are not traced; 0 for none

    @property
    def captures_arguments(self) -> bool:
        """Whether rows refer to the op's inputs: shapes are shown, FLOPs are computed from them."""
        return self.record_shapes or self.with_flops

    @property
    def follows_storages(self) -> bool:
        """Whether every op notes the tensors it was given: the event tree tells tensors apart, a memory profile what for."""
        return self.record_shapes and self.profile_memory


class Numbered(dict[Any, int]):
    """Numbers its keys in order of appearance, starting at `first`."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.count = 0  # of numbers assigned; never lowered, so that none is assigned twice

    def __missing__(self, key: Any) -> int:
        number = self[key] = self.first + self.count
        self.count += 1
        return number

    def forget(self, numbers: set[int]) -> None:
        """Drop the keys of these numbers. A dropped key that comes up again gets a new number."""
        for key in [key for key, number in list(self.items()) if number in numbers]:
            del self[key]


class ThreadRecording:
    """The part of one recording that is recorded on one thread: its lists, and the functions that append to them."""

    def __init__(self, options: Options, state: ThreadState, clock: Callable[[], int]) -> None:
        self.state = state
        # The operating system's thread id and the thread's name; 0 and "" until start_on_thread().
        self.ident = 0
        self.name = ""
        # Rows of `width` numbers: op id or span number, start, end, sequence number, and number of the inputs' key.
        self.rows: list[int] = []
        # Earlier rows, which a retention policy moved from `rows` into arrays.
        self.compacted: list[NDArray[np.int64]] = []
        self.spans = Numbered(SPAN_BASE)  # by (name, kind)
        self.keys = Numbered()  # by key of the inputs, see op_inputs
        self.touched: list[int] = []  # a row of TOUCH_WIDTH numbers for every tensor that an op was given
        self.optimizers = OptimizerLog(clock) if options.with_stack else None
        self.width = SHAPES_WIDTH if options.captures_arguments else PLAIN_WIDTH
        self.since = 0
        self.paused_at = -1  # when its open scopes were last ended by a pause
        self.append_row: AppendRow | None = None
        self.capture_by_op: CaptureByOp | None = None
        self.span: Span
        self.samples = StackSamples(clock, options.stacks_per_second) if options.stacks_per_second else None
        append_row = self.rows.extend if self.samples is None else self.samples.wrap_append_row(self.rows.extend)
        if options.captures_arguments:
            self.capture_by_op = Captures(append_row, self.keys, self.touched if options.follows_storages else None)
        else:
            self.append_row = append_row
        records_modules = options.with_modules or options.with_stack
        self.modules = (
            ModuleLog(clock, note_parameters=options.with_stack, hidden_from_tracer=options.with_stack)
            if records_modules
            else None
        )
        # Python calls: the window that is open now, and all windows so far; each pause closes one.
        self.with_stack = options.with_stack
        self.window: PythonCallWindow | None = None
        self.windows: list[PythonCallWindow] = []
        self._clock = clock
        self.tasks: TaskLog | None = None
        # Set while the thread has not recorded anything yet: ends that state. True means that it runs on that thread.
        self.resolve: Callable[[bool], None] | None = None

    def start(self, since: int) -> None:
        """Record events that begin from `since` on; a span that began earlier is not recorded."""
        self.since = since
        self.span = (
            _plain_span(self.rows, self.spans, since)
            if self.append_row is not None
            else _wide_span(self.rows, self.spans, since, self.keys)
        )
        if self.modules is not None:
            self.modules.start()

    def start_on_thread(self, recorders: ThreadRecorders) -> None:
        """Take the thread's id and name and begin to trace its calls. Runs on that thread, before its first row."""
        self.ident = threading.get_native_id()
        self.name = threading.current_thread().name
        if self.with_stack:
            log = recorders.python_log(self._clock)
            window = PythonCallWindow(log)
            self.windows += (window,)
            self.window = window
            log.open(window)

    def stop(self, recorders: ThreadRecorders, end: int) -> None:
        """Close the logs of Python and module calls; calls under way end at `end`."""
        if self.window is not None:
            recorders.python_log(self._clock).close(self.window, end)
            self.window = None
        if self.modules is not None:
            self.modules.stop(end)

    def end_scopes(self, scopes: Sequence[Scope], end: int) -> None:
        """Append the rows of scopes that are still open, all at once: an interrupt leaves all of them or none."""
        rows: list[int] = []
        for scope in scopes:
            rows += self._scope_row(scope, max(end, scope.began))  # another thread may have opened it just now
        self.rows += rows

    def segments(self, end: int) -> list[CallSegment]:
        """The Python calls so far; a segment that is still open ends at `end`."""
        return [segment for window in self.windows for segment in window.segments(end)]

    def scope(self, scope: Scope, end: int) -> None:
        """Append the row of a user's scope that ends now."""
        self.rows += self._scope_row(scope, end)

    def _scope_row(self, scope: Scope, end: int) -> tuple[int, ...]:
        """The row of a user's scope; none for one that began before the recording."""
        if scope.began < self.since:
            return ()
        row = (self.spans[scope.name, scope.kind], scope.began, end, -1)
        if self.width == PLAIN_WIDTH:
            return row
        inputs = scope.inputs
        return (*row, -1 if inputs is None else self.keys[inputs])


def _start_with_first_row(recording: ThreadRecording, recorders: ThreadRecorders) -> None:
    """Have a thread that runs already call start_on_thread() itself, when it hands over its first event.

    Until then each of the recording's functions is wrapped in one that does so; resolve() takes the wrappers off.
    """
    append_row, capture_by_op, span = recording.append_row, recording.capture_by_op, recording.span

    def resolve(on_its_thread: bool) -> None:
        recording.resolve = None
        if resolve in recorders.pending:
            recorders.pending.remove(resolve)
        recording.append_row, recording.capture_by_op, recording.span = append_row, capture_by_op, span
        recorders.connect()
        if on_its_thread:
            recording.start_on_thread(recorders)

    def resolving(function: Callable[..., None]) -> Callable[..., None]:
        def resolve_and_call(*values: Any) -> None:
            if recording.resolve is not None:
                recording.resolve(True)
            function(*values)

        return resolve_and_call

    recording.append_row = resolving(append_row) if append_row is not None else None
    recording.capture_by_op = PerOp(lambda op: resolving(capture_by_op[op])) if capture_by_op is not None else None
    recording.span = resolving(span)
    recording.resolve = resolve
    recorders.pending.append(resolve)


def _plain_span(rows: list[int], numbers: Numbered, since: int) -> Span:
    # The list grows by `+=`: a method call would be traced.
    def span(name: str, kind: int, start: int, end: int, sequence: int, inputs: observer.InputOutline = ()) -> None:
        nonlocal rows
        if start >= since:
            rows += (numbers[name, kind], start, end, sequence)

    return span


def _wide_span(rows: list[int], numbers: Numbered, since: int, keys: Numbered) -> Span:
    def span(name: str, kind: int, start: int, end: int, sequence: int, inputs: observer.InputOutline = ()) -> None:
        nonlocal rows
        if start >= since:
            rows += (numbers[name, kind], start, end, sequence, keys[inputs] if inputs else -1)

    return span


class Scope:
    """A range that the user opens and closes, as the recorder sees it; record_function is one."""

    __slots__ = ("args", "began", "name", "recorders")

    kind = observer.SCOPE
    name: str
    args: str | None
    inputs: InputInfo | None  # of the range, where inputs are recorded
    began: int
    recorders: ThreadRecorders | None


class ThreadRecorders:
    """All recordings of one thread, and the scopes that are open on it."""

    __slots__ = ("_python", "pending", "recordings", "scopes", "state", "tasks")

    def __init__(self, state: ThreadState) -> None:
        self.state = state
        self.recordings: list[ThreadRecording] = []
        self.scopes: list[Scope] = []
        self._python: PythonCallLog | None = None
        self.tasks: TaskLog | None = None  # from the first scope that a task opens
        self.pending: list[Callable[[bool], None]] = []  # `resolve` of recordings that wait for the thread's first event

    def resolve(self) -> None:
        """Start the recordings that wait for this thread; runs on it."""
        for resolve in list(self.pending):
            resolve(True)

    def enter(self, scope: Scope, task: Task | None) -> None:
        """Note that a scope begins, at scope.began; `task` is the one that opens it, or None."""
        if self.tasks is None:
            self.tasks = TaskLog()
            for recording in self.recordings:
                recording.tasks = self.tasks
            self.connect()
        self.tasks.entered(task, scope.began)

    def python_log(self, clock: Callable[[], int]) -> PythonCallLog:
        """The thread's stream of Python calls, which all its recordings share."""
        if self._python is None:
            self._python = PythonCallLog(clock, self.state)
        return self._python

    def add(self, recording: ThreadRecording) -> None:
        """Hand the thread's events to this recording too."""
        recording.tasks = self.tasks
        self.recordings.append(recording)
        self.connect()

    def remove(self, recording: ThreadRecording) -> None:
        """Hand this recording no more events; one that is not there is no error."""
        if recording in self.recordings:
            self.recordings.remove(recording)
        self.connect()

    def connect(self) -> None:
        """Put the functions of all recordings into the slots of the thread's state."""
        state, recordings = self.state, self.recordings
        captures = [each.capture_by_op for each in recordings if each.capture_by_op is not None]
        appends = [each.append_row for each in recordings if each.append_row is not None]
        modules = [each.modules for each in recordings if each.modules is not None]
        state.span = _call_each([each.span for each in recordings])
        state.module_enter = _call_each([log.enter for log in modules])
        state.module_exit = _call_each([log.leave for log in modules])
        state.module_log = modules[0].direct if len(modules) == 1 else None
        state.optimizer_stepped = _call_each([each.optimizers.stepped for each in recordings if each.optimizers is not None])
        append_row = None if captures else _call_each(appends)
        traced = any(each.with_stack for each in recordings)
        state.append_row, state.append_row_traced = (None, append_row) if traced else (append_row, None)
        state.capture_by_op = _capture_for_each(appends, captures) if captures else None
        if self.tasks is not None:
            self._note_turns(self.tasks)

    def _note_turns(self, tasks: TaskLog) -> None:
        """Wrap the functions in the slots so that the task log learns which task handed over each event."""
        state = self.state
        state.append_row = state.append_row and tasks.wrap_append_row(state.append_row)
        state.append_row_traced = state.append_row_traced and tasks.wrap_append_row(state.append_row_traced)
        state.span = state.span and tasks.wrap_span(state.span)
        capture_by_op = state.capture_by_op
        state.capture_by_op = None if capture_by_op is None else PerOp(lambda op: tasks.wrap_capture(capture_by_op[op]))

    def close(self, scope: Scope, end: int) -> None:
        """End a scope in every recording; one that started after the scope did not see it begin and skips it."""
        if scope in self.scopes:
            self.scopes.remove(scope)
        if self.tasks is not None:
            self.tasks.left(end)
        for recording in self.recordings:
            recording.scope(scope, end)


def _call_each(functions: Sequence[Callable[..., None]]) -> Callable[..., None] | None:
    """One function that calls each: None if there is none, the function itself if there is one."""
    if len(functions) < 2:
        return functions[0] if functions else None

    def call(*values: Any) -> None:
        for function in functions:
            function(*values)

    return call


class PerOp(dict[int, Callable[..., None]]):
    """A function for each op id, made at the op's first look-up."""

    def __init__(self, make: Callable[[int], Callable[..., None]]) -> None:
        self._make = make

    def __missing__(self, op: int) -> Callable[..., None]:
        function = self[op] = self._make(op)
        return function


def _capture_for_each(appends: Sequence[AppendRow], captures: Sequence[CaptureByOp]) -> CaptureByOp:
    """Captures that serve all recordings: those that want arguments, and those that want plain rows."""
    if not appends and len(captures) == 1:
        return captures[0]

    def capture_of(op: int) -> Callable[..., None]:
        capture_each = [capture_by_op[op] for capture_by_op in captures]

        def capture(start: int, end: int, sequence: int, *args: Any) -> None:
            for append_row in appends:
                append_row((op, start, end, sequence))
            for capture_one in capture_each:
                capture_one(start, end, sequence, *args)

        return capture

    return PerOp(capture_of)


# By the id() of the thread's state, which its ThreadRecorders keeps alive. Only threads that are being recorded are here.
recorders_by_thread: dict[int, ThreadRecorders] = {}


def thread_recorders_of(state: ThreadState) -> ThreadRecorders:
    """The ThreadRecorders of a thread, created for its first recording."""
    recorders = recorders_by_thread.get(id(state))
    if recorders is None:
        recorders = recorders_by_thread[id(state)] = ThreadRecorders(state)
    return recorders


# Held while a recording starts, pauses or stops: all recordings share `recorders_by_thread` and what is in it.
recorders_lock = threading.RLock()
# Recorders that are running, oldest first.
active_recorders: list[Recorder] = []


class Recorder:
    """One recording: start, mark steps, pause and resume, stop; `assembly.freeze` makes an EventStore of it."""

    def __init__(self, options: Options, clock: Callable[[], int] = perf_counter_ns, *, traces_others: bool = True) -> None:
        """`traces_others`: with stacks, the Python calls of threads that run already are recorded, too."""
        self.options = options
        self.clock = clock
        self._traces_others = traces_others and options.with_stack and not options.all_threads
        self.thread_recordings: list[ThreadRecording] = []
        self.running = False  # not while it is paused
        self.clock_start_ns = 0
        self.wall_start_ns = 0
        self.clock_end_ns: int | None = None
        # (time, step number) of the start and of every step since
        self.steps: list[tuple[int, int]] = []
        self.memory = (
            MemoryLog(options.all_threads, clock, options.with_stack, note_ends=options.follows_storages)
            if options.profile_memory
            else None
        )
        self._by_state: dict[int, ThreadRecording] = {}
        self._others: list[OtherThread] = []  # whose calls are traced now
        self._by_ident: dict[int, ThreadRecording] = {}
        self._paused_at: int | None = None
        self.foreign: list[ForeignRows] = []
        self.communications = CommunicationLog(self.records_thread, options.captures_arguments)
        self.losses: list[str] = []  # what could not be recorded, in words

    def start(self, step: int = 0) -> None:
        """Begin to record the calling thread, or with options.all_threads every thread."""
        self.wall_start_ns = time_ns()
        self.clock_start_ns = self.clock()
        # The mark makes it one that has started, so it comes last; events of the moment in between have the first mark's step.
        self.resume()
        self.steps += ((self.clock_start_ns, step),)

    def step(self, number: int) -> None:
        """Events from now on belong to step `number`."""
        self.steps.append((self.clock(), number))

    def stop(self) -> None:
        """End the recording; scopes that are still open end with it. Whatever arrives meanwhile, it has ended afterwards."""
        carry_out([self._stop])

    def _stop(self) -> None:
        end = self._pause() if self.running else self.clock()
        if self.clock_end_ns is None:
            self.clock_end_ns = max(end, self.clock_start_ns)  # the clock may have been replaced by one that is behind

    def resume(self) -> None:
        """Begin to record, or go on after pause(). If that is interrupted, nothing records."""
        try:
            with recorders_lock:
                self._resume()
        except BaseException:
            carry_out([self._pause])
            raise

    def _resume(self) -> None:
        self._paused_at = None
        self.running = True
        observer.expect_one_thread(hidden_from_tracer=self.options.with_stack)
        active = active_recorders
        active += (self,)
        observer.acquire()
        others = []
        if self._traces_others:  # before this thread's own tracer runs
            for other in trace_other_threads(self.clock):
                self._others.append(other)
                others.append(other)
        if self.options.all_threads:
            all_threads.started.append(self._attach)
            for state in all_threads.states():
                self._attach(state)
        else:
            self._attach(threads.state)
        for other in others:
            self._recording_of(other).windows += (other.window,)
        if self.memory is not None:
            self.memory.start()
        self.communications.start()

    def _recording_of(self, other: OtherThread) -> ThreadRecording:
        """What is recorded of a thread of which only calls are: the same for one thread after every pause."""
        recording = self._by_ident.get(other.ident)
        if recording is None:
            recording = ThreadRecording(self.options, ThreadState(), self.clock)
            recording.ident, recording.name = other.ident, other.name
            self._by_ident[other.ident] = recording
            self.thread_recordings += (recording,)
        return recording

    def pause(self) -> int:
        """Record no more until resume(); returns the time. Open scopes end then, as far as this recording is concerned."""
        carry_out([self._pause])
        assert self._paused_at is not None
        return self._paused_at

    def _pause(self) -> int:
        """Take everything out that _resume() put in. What is not there is left out, so that it may be begun again."""
        with recorders_lock:
            self.communications.stop()
            if self.memory is not None:
                self.memory.stop()
            if self._paused_at is None:
                self._paused_at = self.clock()
            if self._others:
                with other_threads_waiting():  # once for all of them
                    while self._others:
                        self._others[-1].log.close(self._others[-1].window, self._paused_at)
                        del self._others[-1]
            if self._attach in all_threads.started:
                all_threads.started.remove(self._attach)
            for recording in self.thread_recordings:
                self._detach(recording, self._paused_at)
            if self in active_recorders:
                try:
                    active_recorders.remove(self)
                finally:
                    observer.release()
            if not active_recorders:
                observer.expect_threads()
            self.running = False
            return self._paused_at

    def records_thread(self, state: ThreadState) -> bool:
        """Whether events of this thread are being recorded now."""
        return self.running and id(state) in self._by_state

    def collect_communications(self) -> None:
        """Move communications that have ended to `foreign`; once the recording has ended, those under way too."""
        self.foreign += [ForeignRows(*rows) for rows in self.communications.take(self.clock_end_ns)]

    def _attach(self, state: ThreadState) -> None:
        with recorders_lock:
            if self.running:  # a thread may begin while the recording ends
                self._attach_now(state)

    def _attach_now(self, state: ThreadState) -> None:
        if is_hidden(state):
            return
        recording = self._by_state.get(id(state))
        if recording is None:
            recording, key = ThreadRecording(self.options, state, self.clock), id(state)
            self.thread_recordings += (recording,)
            self._by_state[key] = recording
        recording.start(self.clock())
        recorders = thread_recorders_of(state)
        if state is not threads.state:
            _start_with_first_row(recording, recorders)
        recorders.add(recording)
        if state is threads.state:
            recording.start_on_thread(recorders)

    def end_with_threads(self) -> list[ThreadRecording]:
        """The recordings of threads that have ended, which get no more rows. For retention policies: see forget().

        Called with recorders_lock held.
        """
        ended = [recording for recording in self.thread_recordings if recording.state.has_ended]
        for recording in ended:
            if self.running:
                self._detach(recording, self.clock())
        return ended

    @property
    def calls_in_imports(self) -> int:
        """How many Python calls are not recorded because they were made while a module was imported."""
        return sum(window.left_out for recording in self.thread_recordings for window in recording.windows)

    def forget(self, recordings: Sequence[ThreadRecording]) -> None:
        """Drop recordings of ended threads whose rows are elsewhere: a process may have any number of threads in its time."""
        gone = {id(recording) for recording in recordings}
        self.thread_recordings[:] = [recording for recording in self.thread_recordings if id(recording) not in gone]
        for recording in recordings:
            self._by_state.pop(id(recording.state), None)

    def _detach(self, recording: ThreadRecording, end: int) -> None:
        recorders = recorders_by_thread.get(id(recording.state))
        if recorders is None:
            return
        if recording in recorders.recordings:
            if recording.resolve is not None:
                recording.resolve(False)
            window = recording.window
            recording.stop(recorders, end)
            if window is not None and window.lost_to and window.ended is not None:
                missed = f"for the last {(end - window.ended) / 1e6:.1f} ms: {window.lost_to}"
                self.losses.append(f"Python calls of thread {recording.ident} are not recorded {missed}")
            if recording.paused_at != end:
                recording.end_scopes(recorders.scopes[::-1], end)
                recording.paused_at = end
        recorders.remove(recording)
        if not recorders.recordings:
            recorders_by_thread.pop(id(recording.state), None)
