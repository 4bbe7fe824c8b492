"""The hot path: what ops, scopes and modules hand over while a recording runs, kept as flat lists of plain values.

Each recorded thread has a ThreadRecording per recording: the lists, and the functions that fill them, made when the recording
starts so that no event asks which options are on. All taps of a thread meet in its ThreadRecorders, which puts the
functions into the thread's ThreadState: those of a single tap as they are, those of several behind one that calls each.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns, time_ns
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core import threads as all_threads
from ..._core.threads import ThreadState, threads
from ..._dispatch import observer
from .allocations import MemoryLog
from .asyncio_lanes import TaskLog
from .module_calls import ModuleLog
from .op_inputs import TEXT_INPUT, Captures
from .python_calls.stream import CallSegment, PythonLog, PythonWindow

Extend = Callable[[tuple[int, ...]], None]
Detail = Mapping[int, Callable[..., None]]  # by op id: what takes start, end, sequence number and arguments
Span = Callable[..., None]  # name, kind, start, end, sequence number, and the outline of its inputs

# Ids from here on are spans, numbered per tap; smaller ones are op ids.
SPAN_BASE = 1 << 32
PLAIN_WIDTH = 4  # id, start, end, sequence number
SHAPES_WIDTH = 5  # and the number of the arguments' key


class ForeignRows(NamedTuple):
    """What another process recorded, as columns and the tables they point into."""

    ident: int
    name: str
    columns: dict[str, Any]
    tables: dict[str, list[Any]]


class Options(NamedTuple):
    """What a recording takes down beside names and times."""

    record_shapes: bool = False
    profile_memory: bool = False
    with_stack: bool = False
    with_flops: bool = False
    with_modules: bool = False
    all_threads: bool = False

    @property
    def captures_arguments(self) -> bool:
        return self.record_shapes or self.with_flops

    @property
    def follows_storages(self) -> bool:
        """Whether there is enough to tell what memory was used for."""
        return self.record_shapes and self.profile_memory and self.with_stack


class Numbered(dict[Any, int]):
    """Numbers its keys in order of appearance, starting at `first`."""

    def __init__(self, first: int = 0) -> None:
        self.first = first
        self.made = 0  # how many numbers were given away

    def __missing__(self, key: Any) -> int:
        number = self[key] = self.first + self.made
        self.made += 1
        return number

    def forget(self, numbers: set[int]) -> None:
        """Drop the keys of numbers that nobody will ask for again."""
        for key in [key for key, number in list(self.items()) if number in numbers]:
            del self[key]


class ThreadRecording:
    """What one recording takes from one thread."""

    def __init__(self, options: Options, state: ThreadState, clock: Callable[[], int]) -> None:
        self.state = state
        self.ident = 0
        self.name = ""
        self.rows: list[int] = []
        # Rows that came before and were taken off that list, for whoever keeps them more compactly.
        self.kept: list[NDArray[np.int64]] = []
        self.spans = Numbered(SPAN_BASE)
        self.keys = Numbered()
        self.touched: list[int] = []
        self.width = SHAPES_WIDTH if options.captures_arguments else PLAIN_WIDTH
        self.since = 0
        self.append_row: Extend | None = None
        self.capture_by_op: Detail | None = None
        self.span: Span
        if options.captures_arguments:
            self.capture_by_op = Captures(self.rows.extend, self.keys, self.touched if options.follows_storages else None)
        else:
            self.append_row = self.rows.extend
        wants_modules = options.with_modules or options.with_stack
        self.modules = (
            ModuleLog(clock, note_parameters=options.follows_storages, hidden_from_tracer=options.with_stack)
            if wants_modules
            else None
        )
        # Python calls: the window that is open now, and those that pauses have closed.
        self.with_stack = options.with_stack
        self.window: PythonWindow | None = None
        self.windows: list[PythonWindow] = []
        self._clock = clock
        self.tasks: TaskLog | None = None
        # Until its thread hands over something: ends the wait, by arriving (True, on that thread) or not.
        self.settle: Callable[[bool], None] | None = None

    def listen(self, since: int) -> None:
        """Take down what begins from now on; scopes under way already belong to somebody else."""
        self.since = since
        self.span = (
            _plain_span(self.rows.extend, self.spans, since)
            if self.append_row is not None
            else _wide_span(self.rows.extend, self.spans, since, self.keys)
        )
        if self.modules is not None:
            self.modules.start()

    def arrive(self, site: ThreadRecorders) -> None:
        """Learn who and where we are: runs on the tap's own thread, before its first row."""
        self.ident = threading.get_native_id()
        self.name = threading.current_thread().name
        if self.with_stack:
            self.window = site.python_log(self._clock).open()
            self.windows.append(self.window)

    def leave(self, site: ThreadRecorders, end: int) -> None:
        """Listen no more."""
        if self.window is not None:
            site.python_log(self._clock).close(self.window, end)
            self.window = None
        if self.modules is not None:
            self.modules.stop(end)

    def stretches(self, end: int) -> list[CallSegment]:
        """The Python calls so far."""
        return [stretch for window in self.windows for stretch in window.stretches(end)]

    def scope(self, scope: Scope, end: int) -> None:
        """Take down a scope of the user's."""
        if scope.args is None or self.append_row is not None:
            self.span(scope.name, scope.kind, scope.began, end, -1)
        elif scope.began >= self.since:
            self.rows.extend((self.spans[scope.name, scope.kind], scope.began, end, -1, self.keys[TEXT_INPUT]))


def _arrive_with_first_row(tap: ThreadRecording, site: ThreadRecorders) -> None:
    """For a thread that is running already: the tap arrives when that thread hands something over."""
    extend, detail, span = tap.append_row, tap.capture_by_op, tap.span

    def settle(here: bool) -> None:
        tap.settle = None
        site.waiting.remove(settle)
        tap.append_row, tap.capture_by_op, tap.span = extend, detail, span
        site.connect()
        if here:
            tap.arrive(site)

    def then(function: Callable[..., None]) -> Callable[..., None]:
        def first(*values: Any) -> None:
            if tap.settle is not None:
                tap.settle(True)
            function(*values)

        return first

    tap.append_row = then(extend) if extend is not None else None
    tap.capture_by_op = PerOp(lambda op: then(detail[op])) if detail is not None else None
    tap.span = then(span)
    tap.settle = settle
    site.waiting.append(settle)


def _plain_span(extend: Extend, numbers: Numbered, since: int) -> Span:
    def span(name: str, kind: int, start: int, end: int, sequence: int, inputs: observer.InputOutline = ()) -> None:
        if start >= since:
            extend((numbers[name, kind], start, end, sequence))

    return span


def _wide_span(extend: Extend, numbers: Numbered, since: int, keys: Numbered) -> Span:
    def span(name: str, kind: int, start: int, end: int, sequence: int, inputs: observer.InputOutline = ()) -> None:
        if start >= since:
            extend((numbers[name, kind], start, end, sequence, keys[inputs] if inputs else -1))

    return span


class Scope:
    """A range that the user opens and closes, as the recorder sees it; record_function is one."""

    __slots__ = ("args", "began", "name", "site")

    kind = observer.SCOPE
    name: str
    args: str | None
    began: int
    site: ThreadRecorders | None


class ThreadRecorders:
    """All taps of one thread, and the scopes that are open on it."""

    __slots__ = ("_python", "scopes", "state", "taps", "tasks", "waiting")

    def __init__(self, state: ThreadState) -> None:
        self.state = state
        self.taps: list[ThreadRecording] = []
        self.scopes: list[Scope] = []
        self._python: PythonLog | None = None
        self.tasks: TaskLog | None = None  # once a task has opened a scope
        self.waiting: list[Callable[[bool], None]] = []  # of taps that have not arrived

    def settle(self) -> None:
        """Have the taps arrive: runs on their thread."""
        for settle in list(self.waiting):
            settle(True)

    def enter(self, scope: Scope, task: Any) -> None:
        """Begin a scope that `task` opens, if that is not None, at scope.began."""
        if self.tasks is None:
            self.tasks = TaskLog()
            for tap in self.taps:
                tap.tasks = self.tasks
            self.connect()
        self.tasks.entered(task, scope.began)

    def python_log(self, clock: Callable[[], int]) -> PythonLog:
        """The thread's stream of Python calls, which all its taps share."""
        if self._python is None:
            self._python = PythonLog(clock, self.state)
        return self._python

    def add(self, tap: ThreadRecording) -> None:
        tap.tasks = self.tasks
        self.taps.append(tap)
        self.connect()

    def remove(self, tap: ThreadRecording) -> None:
        self.taps.remove(tap)
        self.connect()

    def connect(self) -> None:
        """Put the taps' functions into the thread's state."""
        state, taps = self.state, self.taps
        details = [tap.capture_by_op for tap in taps if tap.capture_by_op is not None]
        extends = [tap.append_row for tap in taps if tap.append_row is not None]
        modules = [tap.modules for tap in taps if tap.modules is not None]
        state.span = _each([tap.span for tap in taps])
        state.module_enter = _each([log.enter for log in modules])
        state.module_exit = _each([log.leave for log in modules])
        state.module_log = modules[0].direct if len(modules) == 1 else None
        extend = None if details else _each(extends)
        listened_to = any(tap.with_stack for tap in taps)
        state.append_row, state.append_row_traced = (None, extend) if listened_to else (extend, None)
        state.capture_by_op = _detail_of_all(extends, details) if details else None
        if self.tasks is not None:
            self._watch_turns(self.tasks)

    def _watch_turns(self, tasks: TaskLog) -> None:
        """Have the functions notice whose turn it is."""
        state = self.state
        state.append_row = state.append_row and tasks.extend(state.append_row)
        state.append_row_traced = state.append_row_traced and tasks.extend(state.append_row_traced)
        state.span = state.span and tasks.span(state.span)
        detail = state.capture_by_op
        state.capture_by_op = None if detail is None else PerOp(lambda op: tasks.detail(detail[op]))

    def close(self, scope: Scope, end: int) -> None:
        """End a scope for every tap that saw it begin."""
        if self.scopes and self.scopes[-1] is scope:
            self.scopes.pop()
        else:
            self.scopes.remove(scope)
        if self.tasks is not None:
            self.tasks.left(end)
        for tap in self.taps:
            tap.scope(scope, end)


def _each(functions: Sequence[Callable[..., None]]) -> Any:
    """One function that calls each: None if there is none, the function itself if there is one."""
    if len(functions) < 2:
        return functions[0] if functions else None

    def call(*values: Any) -> None:
        for function in functions:
            function(*values)

    return call


class PerOp(dict[int, Callable[..., None]]):
    """A function for each op, made when first needed."""

    def __init__(self, make: Callable[[int], Callable[..., None]]) -> None:
        self._make = make

    def __missing__(self, op: int) -> Callable[..., None]:
        function = self[op] = self._make(op)
        return function


def _detail_of_all(extends: Sequence[Extend], details: Sequence[Detail]) -> Detail:
    if not extends and len(details) == 1:
        return details[0]

    def detail_of(op: int) -> Callable[..., None]:
        takers = [detail[op] for detail in details]

        def detail(start: int, end: int, sequence: int, *args: Any) -> None:
            for extend in extends:
                extend((op, start, end, sequence))
            for take in takers:
                take(start, end, sequence, *args)

        return detail

    return PerOp(detail_of)


# The sites of all threads that are being recorded, by the id() of their state, which a site keeps alive.
sites: dict[int, ThreadRecorders] = {}


def site_of(state: ThreadState) -> ThreadRecorders:
    """The thread's site, made now if this is its first tap."""
    site = sites.get(id(state))
    if site is None:
        site = sites[id(state)] = ThreadRecorders(state)
    return site


# Held while recordings begin or end: sites and their taps belong to all of them.
changing = threading.RLock()
# Recordings that are listening, oldest first.
listening: list[Recorder] = []


class Recorder:
    """One recording: start, mark steps, pause and resume, stop; then `_freeze.freeze` makes an EventStore of it."""

    def __init__(self, options: Options, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.options = options
        self.clock = clock
        self.taps: list[ThreadRecording] = []
        self.listening = False
        self.clock_start_ns = 0
        self.wall_start_ns = 0
        self.clock_end_ns: int | None = None
        # (time, step number) of the start and of every step since
        self.steps: list[tuple[int, int]] = []
        self.memory = MemoryLog(options.all_threads, clock, options.with_stack) if options.profile_memory else None
        self._by_state: dict[int, ThreadRecording] = {}
        self.foreign: list[ForeignRows] = []

    def start(self, step: int = 0) -> None:
        """Begin to record the calling thread, or every thread if the options say so."""
        self.wall_start_ns = time_ns()
        self.clock_start_ns = self.clock()
        self.steps.append((self.clock_start_ns, step))
        self.resume()

    def step(self, number: int) -> None:
        """Events from now on belong to step `number`."""
        self.steps.append((self.clock(), number))

    def stop(self) -> None:
        """End the recording; scopes that are still open end with it."""
        if self.clock_end_ns is None:
            self.clock_end_ns = self.pause() if self.listening else self.clock()

    def resume(self) -> None:
        """Listen (again)."""
        with changing:
            self._resume()

    def _resume(self) -> None:
        self.listening = True
        observer.expect_one_thread(hidden_from_tracer=self.options.with_stack)
        listening.append(self)
        observer.acquire()
        if self.options.all_threads:
            all_threads.started.append(self._attach)
            for state in all_threads.states():
                self._attach(state)
        else:
            self._attach(threads.state)
        if self.memory is not None:
            self.memory.start()

    def pause(self) -> int:
        """Listen no more and say when that was. Open scopes end here as far as this recording is concerned."""
        with changing:
            return self._pause()

    def _pause(self) -> int:
        if self.memory is not None:
            self.memory.stop()
        end = self.clock()
        if self.options.all_threads:
            all_threads.started.remove(self._attach)
        for tap in self.taps:
            self._detach(tap, end)
        observer.release()
        listening.remove(self)
        if not listening:
            observer.expect_threads()
        self.listening = False
        return end

    def hears(self, state: ThreadState) -> bool:
        """Whether it listens to a thread."""
        return self.listening and id(state) in self._by_state

    def _attach(self, state: ThreadState) -> None:
        with changing:
            if self.listening:  # a thread may begin while the recording ends
                self._attach_now(state)

    def _attach_now(self, state: ThreadState) -> None:
        tap = self._by_state.get(id(state))
        if tap is None:
            tap = self._by_state[id(state)] = ThreadRecording(self.options, state, self.clock)
            self.taps.append(tap)
        tap.listen(self.clock())
        site = site_of(state)
        if state is not threads.state:
            _arrive_with_first_row(tap, site)
        site.add(tap)
        if state is threads.state:
            tap.arrive(site)

    def _detach(self, tap: ThreadRecording, end: int) -> None:
        site = sites[id(tap.state)]
        if tap.settle is not None:
            tap.settle(False)
        tap.leave(site, end)
        for scope in reversed(site.scopes):
            tap.scope(scope, max(end, scope.began))  # another thread may have opened it just now
        site.remove(tap)
        if not site.taps:
            del sites[id(tap.state)]
