"""The contract between the runtime and what observes it: the runtime imports no profiler, a profiler needs this room alone.

    rows: list[int] = []
    state = observer.thread_state()
    state.append_row = rows.extend
    observer.acquire()
    torch.neg(x)
    observer.release()
    state.append_row = None
    op, start, end, sequence = rows  # observer.op_names[op] is "aten::neg"

**Cost.** An entry reads one global, `entry_globals.observers_active`. While that is 0 nothing else happens; `acquire()` and
`release()` count it up and down, and in between entries look at the `ThreadState` of their thread.

**Rows of ops.** An op is known by its id, the index into `op_names`, `op_overloads` and `op_schemas`. Every op that ends, by
a result or by an exception, gives one row to its thread's recording: its id, its start and end on `clock`, and the sequence
number that autograd's next node gets (-1 in no_grad and for ops that take no tensor). Inner ops end before outer ones, so
rows come in the order of their ends. A recording fills one of three slots of the thread's state:

    append_row          called with the row, a tuple
    append_row_traced   the same, for a recording that traces Python calls, too
    capture_by_op       capture_by_op[id] is called with start, end, sequence number and the op's arguments

**Rows of other ranges.** `ThreadState.span` is called with name, kind, start, end, sequence number and, where there are any,
inputs: for the nodes and passes of the engine, the steps of optimizers and the ranges of `record_function`. The kind is
one of the numbers below, the inputs are an `InputOutline`. `module_enter` and `module_exit` are called with each nn.Module
whose forward begins and ends, `optimizer_stepped` with each optimizer that has made its step. Memory of the CPU has
listeners of its own: `_core.storage.add_memory_listener`.

**Tracers of Python calls.** A tracer that leaves out the runtime's own calls sets `ThreadState.tracer_pause_factory`. An op
takes the factory out of its slot, calls it when it begins, and drops the object that it returned when its frame ends; the
end of that object is the tracer's sign to resume, and to fill the slot for the next op. Work that is longer than an op, such
as a backward pass, runs as `call_untraced(function, ...)`, and reaches hooks and other functions of the user's by
`call_user_code(function, ...)`; these use `ThreadState.tracer_switch`, the two functions that pause and resume the tracer.

**Listeners,** for what a row does not tell. None costs an op anything while there is none of it:

    add_out_listener      each call with `out=`, on any thread
    add_op_listener       arguments and results of each op of one thread
    add_device_listener   each launch on a device, and each change of its memory

**First use.** Code of an op is compiled when the op is first called, or first differentiated: a span of the kind FIRST_USE.

**Threads.** All functions here may be called from any thread. A thread's slots are set by the thread itself, or for a recording
of all threads by the one that starts it; a row, a span and a listener's call come on the thread where they happen.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from functools import partial
from time import perf_counter_ns as clock
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, Protocol

from .._core.cpython import is_only_thread, without_signals_at_entry
from .._core.restoring import carry_out
from .._core.threads import ThreadState, TracerSwitch, threads
from . import backends, entry_globals

__all__ = [
    "BACKWARD",
    "COPY",
    "ENGINE",
    "FILL",
    "KERNEL",
    "MEMORY",
    "MODULE",
    "OP",
    "PYTHON",
    "RUNTIME",
    "SCOPE",
    "STEP",
    "ActivityRecords",
    "DeviceActivities",
    "DeviceListener",
    "DeviceTiming",
    "InputOutline",
    "OpListener",
    "acquire",
    "add_device_listener",
    "add_op_listener",
    "add_out_listener",
    "call_untraced",
    "call_user_code",
    "clock",
    "device_timing",
    "end_span",
    "is_active",
    "note_first_use",
    "now",
    "op_names",
    "op_overloads",
    "op_schemas",
    "outline",
    "release",
    "remove_device_listener",
    "remove_op_listener",
    "remove_out_listener",
    "span",
    "tell_optimizer_step",
    "tell_range_inputs",
    "thread_state",
]

# The kinds of recorded ranges. The numbers are stored in event columns.
OP, BACKWARD, ENGINE, SCOPE, STEP, PYTHON, MODULE, MEMORY = range(8)
# On a device: kernels, copies and fills. RUNTIME is the host's call that launched one of them or waited for it.
KERNEL, COPY, FILL, RUNTIME = range(8, 12)
# On the host again: code of an op is compiled, because it is called or differentiated for the first time.
FIRST_USE = 12
KIND_COUNT = 13

# Before the op's and the module's name.
FIRST_USE_PREFIX = "first use of "
IMPORT_PREFIX = "import "

# The clock for code that is traced while it runs: calling a partial is no event for a tracer.
now: Callable[[], int] = partial(clock)

# Filled by the registry, one entry per op overload; an op's id is its index.
op_names: list[str] = []
op_overloads: list[str] = []
op_schemas: list[Any] = []

# The inputs of a span: (shape, strides in bytes, NumPy dtype) of a tensor, (type, number), (list, number, ...), and None for
# an input that is missing or of another kind.
InputOutline = tuple[tuple[Any, ...] | None, ...]

# Guards the listeners.
observers_lock = threading.Lock()

# The code of the two functions between a call and an op's entry, which tracers of Python calls leave out: "choose" picks one
# of several overloads, "stand_in" compiles an entry at its first call. `overloads` and `dispatcher` fill it.
dispatch_code: dict[str, CodeType] = {}

# A recording puts a function here that gives what to send to a worker process along with a task, so that the worker records
# itself (begin(number) and end() there, deliver() of what end() returned here); None while nothing records.
for_workers: Callable[[], Any] = lambda: None  # noqa: E731


def thread_state() -> ThreadState:
    """The calling thread's state."""
    return threads.state


@without_signals_at_entry
def acquire() -> None:
    """Have ops look at their thread's state until the matching `release()`; calls may nest.

    There is no call in it, so that neither another thread nor a signal comes in between: it needs no lock.
    """
    entry_globals.observers_active += 1


@without_signals_at_entry
def release() -> None:
    """End one `acquire()`. After the last, ops look no further than one global."""
    entry_globals.observers_active -= 1


# Where entries find their thread's state. ContextVar.get takes an eighth of the time of threading.local, which is as much
# as a reading of the clock. A context may be copied to another thread, though, so entries read `_own` only while there is
# no other thread; in a thread or a context without a value it gives None, and the entry reads `threads` instead.
_own: ContextVar[ThreadState | None] = ContextVar("state of the only thread", default=None)
_unknown: ContextVar[ThreadState | None] = ContextVar("no state", default=None)
entry_globals.current = _unknown.get


def expect_one_thread(*, hidden_from_tracer: bool = False, alone: bool = False) -> None:
    """Spare ops the search for their thread's state for as long as the calling thread is the only one.

    `hidden_from_tracer`: a tracer sees every call of a builtin, so entries get a `partial`, whose call is no event.
    `alone`: the caller knows that all other threads wait for it.
    """
    alone = (alone or is_only_thread()) and threading.getprofile() in (None, _on_thread_start)
    find = _own.get if alone else _unknown.get
    if alone:
        _own.set(threads.state)
        threading.setprofile(_on_thread_start)
    entry_globals.current = partial(find) if hidden_from_tracer or isinstance(entry_globals.current, partial) else find


def expect_threads(*, hidden_from_tracer: bool = False) -> None:
    """Have every op look for its thread's state, since there is more than one thread."""
    entry_globals.current = partial(_unknown.get) if hidden_from_tracer else _unknown.get
    if threading.getprofile() is _on_thread_start:
        threading.setprofile(None)


def _on_thread_start(frame: FrameType, event: str, arg: Any) -> None:
    """The profile function of a new thread, called before it can run an op."""
    sys.setprofile(None)
    expect_threads(hidden_from_tracer=isinstance(entry_globals.current, partial))


def is_active() -> bool:
    """Whether a recording or a mode is active on any thread."""
    return entry_globals.observers_active > 0


# A partial, so that calling it is no event for the tracer.
_profile_function = partial(sys.getprofile)


def _has_its_place(switch: TracerSwitch) -> bool:
    """Whether the tracer's function is the thread's profile function: another tool may have taken its place."""
    return _profile_function() is switch[1].args[0]


def call_untraced(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the runtime's own, with the thread's tracer of Python calls paused."""
    state = threads.state
    switch = state.tracer_switch
    if switch is None or _profile_function() is not switch[1].args[0]:  # _has_its_place(), whose call the tracer would see
        return function(*args)
    return _call_with_tracer_paused(state, switch, function, args)


def call_user_code(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function of the user's from inside `call_untraced`, with the tracer resumed for it."""
    state = threads.state
    switch = state.paused_tracer
    return function(*args) if switch is None else _call_with_tracer_resumed(state, switch, function, args)


def _call_with_tracer_paused(
    state: ThreadState, switch: TracerSwitch, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    # The tracer sees the call of this function and its return, and nothing in between.
    pause, resume = switch
    try:
        pause()
        state.paused_tracer, state.tracer_pause_factory = switch, None
        return function(*args)
    finally:
        state.paused_tracer = None
        if _profile_function() is None:
            resume()


def _call_with_tracer_resumed(
    state: ThreadState, switch: TracerSwitch, function: Callable[..., Any], args: tuple[Any, ...]
) -> Any:
    pause, resume = switch
    try:
        state.paused_tracer = None
        resume()
        return function(*args)
    finally:
        try:
            if _has_its_place(switch):
                pause()
        finally:
            state.paused_tracer, state.tracer_pause_factory = switch, None


# Frames from a function of the second code up to one of the first are on the stack although the tracer has not seen them.
UNTRACED_CALL, USER_CODE_CALL = _call_with_tracer_paused.__code__, _call_with_tracer_resumed.__code__


def outline(tensors: Iterable[Any]) -> InputOutline:
    """What a span shows of tensors that it was given."""
    return tuple((tensor._array.shape, tensor._array.strides, tensor._array.dtype) for tensor in tensors)


class span:
    """`with span("Optimizer.step#SGD.step"):` records a named range; without a recording it reads one global and no clock."""

    __slots__ = ("_inputs", "_kind", "_name", "_sequence", "_start")

    def __init__(self, name: str, kind: int = SCOPE, sequence: int = -1, inputs: tuple[Any, ...] = ()) -> None:
        """`inputs` are tensors whose shapes a recording of shapes shows."""
        self._name = name
        self._kind = kind
        self._sequence = sequence
        self._inputs = inputs

    def __enter__(self) -> span:
        self._start = clock() if entry_globals.observers_active else 0
        return self

    @without_signals_at_entry
    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if entry_globals.observers_active:
            record = threads.state.span
            if record is not None and self._start:
                inputs = outline(self._inputs) if self._inputs else ()
                record(self._name, self._kind, self._start, clock(), self._sequence, inputs)


@without_signals_at_entry
def end_span(name: str, start: int) -> None:
    """Record a range of the runtime's own that began at `start`, a time of `now`; without a recording nothing happens.

    For what `span` would do where Python calls are traced at every training step: a tracer sees its three calls.
    """
    record = threads.state.span
    if record is not None:
        record(name, SCOPE, start, now(), -1)


# ---------------------------------------------------------------- calls with out=


def add_out_listener(listener: Callable[[int], None]) -> None:
    """Have `listener(op id)` called on the calling thread at each call with `out=`, before any op inside of it begins."""
    with observers_lock:
        listeners.out = (*listeners.out, listener)


def remove_out_listener(listener: Callable[[int], None]) -> None:
    """Undo one `add_out_listener`; a listener that is not there is no error."""
    with observers_lock:
        if listener in listeners.out:
            place = listeners.out.index(listener)
            listeners.out = listeners.out[:place] + listeners.out[place + 1 :]


# ---------------------------------------------------------------- arguments and results of ops


class OpListener(Protocol):
    """Sees each op of a thread with its arguments, in the order of the schema, and its result."""

    def op_started(self, op: int, args: tuple[Any, ...]) -> Any:
        """Before the op runs and may write to its arguments. `op_ended` gets what this returns."""

    def op_ended(self, op: int, started: Any, result: Any) -> None:
        """After the op has returned; not called for one that raised."""

    def range_started(self, values: tuple[Any, ...]) -> None:
        """Just after a range that was given values has begun."""


class _ListenerMode:
    """A listener in the thread's stack of modes, where it sees the ops that composites are made of, too."""

    def __init__(self, listener: OpListener) -> None:
        self.listener = listener
        self.state = threads.state

    def run(self, op: Any, args: tuple[Any, ...]) -> Any:
        """Run an op as its entry would without this mode, between the two calls of the listener."""
        started = self.listener.op_started(op.id, args)
        modes = threads.state.modes
        if modes:  # what runs inside of another mode is that mode's, not the program's
            result = entry_globals.run_modes(op, args)
        else:
            try:
                modes += (self,)
                result = entry_globals.run_kernel(op, args)
            except entry_globals.KERNEL_ERRORS as error:
                result = entry_globals.slow_path(op, args, error)
            finally:
                modes.remove(self)
        self.listener.op_ended(op.id, started, result)
        return result


def tell_optimizer_step(optimizer: Any) -> None:
    """Tell the calling thread's recordings that an optimizer has made its step."""
    if entry_globals.observers_active:
        stepped = threads.state.optimizer_stepped
        if stepped is not None:
            stepped(optimizer)


def tell_range_inputs(values: tuple[Any, ...]) -> None:
    """Tell the calling thread's op listeners that a range with these inputs has begun."""
    state = threads.state
    for mode in listeners.modes:
        if mode.state is state:
            mode.listener.range_started(values)


def add_op_listener(listener: OpListener) -> None:
    """Have a listener see every op that the calling thread runs from now on."""
    mode = _ListenerMode(listener)
    with observers_lock:
        listeners.modes += (mode,)
        mode.state.modes += (mode,)
        entry_globals.observers_active += 1


def remove_op_listener(listener: OpListener) -> None:
    """Undo one `add_op_listener`, on whichever thread that was; a listener that is not there is no error."""
    with observers_lock:
        mode = next((mode for mode in listeners.modes if mode.listener is listener), None)
        if mode is not None:
            carry_out([partial(_take_out, mode)])


def _take_out(mode: _ListenerMode) -> None:
    """Take a listener out of its thread's modes; nothing happens if it is out."""
    try:
        if mode in mode.state.modes:
            mode.state.modes.remove(mode)
    finally:
        if mode in listeners.modes:
            try:
                listeners.modes.remove(mode)
            finally:
                entry_globals.observers_active -= 1


# ---------------------------------------------------------------- work on devices


class DeviceListener(Protocol):
    """Sees what is put into the streams of devices, and their memory. Called on the thread that does it."""

    def launch_started(self, kind: str, name: str, stream: Any, nbytes: int) -> Any:
        """Just before a "kernel", "copy" or "fill" is put into a stream. `launch_ended` gets what this returns."""

    def launch_ended(self, started: Any) -> None:
        """Just after that, also if it failed."""

    def memory_changed(self, block: Any, change: int) -> None:
        """A block of device memory was given out (bytes above zero) or came back (below)."""


class DeviceTiming(NamedTuple):
    """Reads when work ran on a device. A device's code puts one into `device_timings`.

    `new_event()` makes a mark with `record(stream)` and, once the device has passed it, `timestamp_ns()` and, in milliseconds,
    `elapsed_time(end)`, which may be the finer of the two; `synchronize(index)` waits for a device. `host_offset_ns(clock,
    index, patient)` is what to add to a timestamp now to get the host's clock, or None if the device does not answer at once
    and the caller is not `patient`. `used_devices()` are those that work was put on, `properties(index)` what traces tell of
    one. `activities()` is the device's own account of what it runs; RuntimeError where it has none.
    """

    new_event: Callable[[], Any]
    synchronize: Callable[[int], None]
    host_offset_ns: Callable[[Callable[[], int], int, bool], int | None]
    used_devices: Callable[[], list[int]]
    properties: Callable[[int], dict[str, Any]]
    activities: Callable[[], DeviceActivities]


class ActivityRecords(NamedTuple):
    """What a device tells of itself, as columns: arrays of numbers, lists of texts. Times are those of `time.time_ns()`.

    `kernels` and `collectives` have device, stream, start, end, correlation, name and details, a dictionary each; `calls` of
    the driver have thread, start, end, correlation and name; `ranges` of devices have device, stream, start, end and name. Work
    and the call that launched it have one correlation number, which may come again later. `notes` say what is missing.
    """

    kernels: dict[str, Any]
    collectives: dict[str, Any]
    calls: dict[str, Any]
    ranges: dict[str, Any]
    notes: list[str]


# What the profiles that run say of a domain of marks; without any, every domain is recorded.
mark_filters: list[Callable[[str], bool]] = []


def wants_marks(domain: str) -> bool:
    """Whether marks of a domain are recorded."""
    return not mark_filters or any(wants(domain) for wants in mark_filters)


def mark_name(message: str, domain: str) -> str:
    """What recordings call a mark."""
    return message if domain == "default" else f"[{domain}] {message}"


class DeviceActivities(Protocol):
    """A device's own account of what it runs, from start() to stop(). `nbytes` is the memory it takes."""

    @property
    def nbytes(self) -> int: ...

    def drop_before(self, time_ns: int) -> None:
        """Forget what ended before a time of `time.time_ns()`, as far as memory can be given back by that."""

    def start(self) -> None:
        """Begin; RuntimeError where that is refused."""

    def stop(self, streams: Sequence[Any], is_lost: bool = False) -> ActivityRecords:
        """End, and return what was told, of these streams, which have nothing to do any more, and of others that are lost."""

    def withdraw(self) -> None:
        """End without a result."""


class _EveryDeviceListener:
    """Passes everything on to several listeners, and keeps apart what they return."""

    def __init__(self, listeners: list[DeviceListener]) -> None:
        self._listeners = listeners

    def launch_started(self, kind: str, name: str, stream: Any, nbytes: int) -> Any:
        return [(each, each.launch_started(kind, name, stream, nbytes)) for each in self._listeners]

    def launch_ended(self, started: Any) -> None:
        for each, token in reversed(started):  # so that what they put into the stream nests
            each.launch_ended(token)

    def memory_changed(self, block: Any, change: int) -> None:
        for each in self._listeners:
            each.memory_changed(block, change)


def add_device_listener(listener: DeviceListener) -> None:
    """Have a listener see what all threads do on devices."""
    with observers_lock:
        _set_device_listeners([*listeners.devices, listener])


def remove_device_listener(listener: DeviceListener) -> None:
    """Undo `add_device_listener`; a listener that is not there is no error."""
    with observers_lock:
        _set_device_listeners([each for each in listeners.devices if each is not listener])


def _set_device_listeners(devices: list[DeviceListener]) -> None:
    listeners.devices = devices
    listeners.device = None if not devices else devices[0] if len(devices) == 1 else _EveryDeviceListener(devices)


def device_timing(device_type: str) -> DeviceTiming | None:
    """The clock of a device, or None where there is no such device. Loads the device's code."""
    return device_timings.get(device_type) if backends.available(device_type) else None


# ---------------------------------------------------------------- where the runtime looks for listeners


class _Listeners:
    """`out` is read by each call with `out=`, `device` by each launch on a device; the lists are for removing listeners."""

    __slots__ = ("device", "devices", "modes", "out")

    def __init__(self) -> None:
        self.out: tuple[Callable[[int], None], ...] = ()
        self.device: DeviceListener | None = None
        self.devices: list[DeviceListener] = []
        self.modes: list[_ListenerMode] = []


def note_first_use(op: str, start: int) -> None:
    """Record that code of an op has been compiled since `start`, a time of `clock`; nothing happens without a recording."""
    record = threads.state.span if entry_globals.observers_active else None
    if record is not None:
        record(FIRST_USE_PREFIX + op, FIRST_USE, start, clock(), -1)


listeners = _Listeners()
# By device type; the code of a device fills it.
device_timings: dict[str, DeviceTiming] = {}
