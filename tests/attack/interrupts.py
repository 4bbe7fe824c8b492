"""Interrupts: whatever arrives at whatever moment, state is as it was before, and nothing waits for ever."""

from __future__ import annotations

import ctypes
import gc
import itertools
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from attacks import attack

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._autograd import anomaly, engine, graph, inference
from mindtorch_v2._core import cpython, device, storage
from mindtorch_v2._core import threads as all_threads
from mindtorch_v2._core.threads import ThreadState, threads
from mindtorch_v2._dispatch import entry_globals, observer
from mindtorch_v2.profiler import ExecutionTraceObserver, profile, record_function, schedule
from mindtorch_v2.profiler.config import _ExperimentalConfig
from mindtorch_v2.profiler.recording import active, recorder

_FOLDER = tempfile.mkdtemp()
_LONGEST_S = 20.0  # that one try may take before it counts as hung


# ---------------------------------------------------------------- what must be as before


def _named(values: Any) -> list[str]:
    return [repr(value) for value in values]


def state() -> dict[str, Any]:
    """Everything that a mode, a recording or a hook changes, of this thread and of the process."""
    own = threads.state
    slots = {name: getattr(own, name) for name in ThreadState.__slots__ if name not in ("__weakref__", "sequence")}
    if own.autocast is not None:
        casting = own.autocast
        slots["autocast"] = (dict(casting.enabled), dict(casting.dtypes), casting.cache_enabled, casting.nesting)
    slots["modes"], slots["saved_tensor_hooks"] = _named(own.modes), _named(own.saved_tensor_hooks)
    return slots | {
        "observers": entry_globals.observers_active,
        "entry functions": (entry_globals.new, entry_globals.make_tensor, entry_globals.record_node is graph.record_node),
        "out listeners": observer.listeners.out,
        "op listeners": list(observer.listeners.modes),
        "device listeners": list(observer.listeners.devices),
        "memory listeners": (list(storage.allocation.listeners), storage.allocation.extend, "__del__" in vars(torch.Tensor)),
        "node listeners": list(graph._node_listeners),
        "thread callbacks": list(all_threads.started),
        "recorders": (list(recorder.active_recorders), list(recorder.recorders_by_thread), active.running()),
        "backward passes": list(engine.running.tasks),
        "anomaly": (anomaly.state.enabled, anomaly.state.check_nan),
        "inference": list(inference._inside),
        "default device": (device._default.device, list(device._default.outer)),
        "default dtype": torch.get_default_dtype(),
        "gc callbacks": list(gc.callbacks),
        "profile function": (sys.getprofile(), threading.getprofile()),
        "monitoring": [sys.monitoring.get_tool(tool) for tool in range(6)] if sys.version_info >= (3, 12) else [],
        "locks that are held": _held(recorder.recorders_lock, observer.observers_lock, inference._lock),
        "threads": sorted(thread.name for thread in threading.enumerate()),
        "running threads": len(sys._current_frames()),
        "open files": len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0,
    }


def _held(*locks: Any) -> list[Any]:
    """The locks that another thread cannot take."""
    held: list[Any] = []

    def take() -> None:
        for lock in locks:
            if lock.acquire(timeout=1.0):
                lock.release()
            else:
                held.append(lock)

    helper = threading.Thread(target=take)
    helper.start()
    helper.join()
    return held


def settled_state(expected: dict[str, Any]) -> dict[str, Any]:
    """The state, once threads that were told to end have done so."""
    until = time.monotonic() + 5
    now = state()
    while now != expected and time.monotonic() < until:
        time.sleep(0.002)
        gc.collect()  # a traceback in a circle may hold a file
        now = state()
    return now


# ---------------------------------------------------------------- what is interrupted


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


class _Counting(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


class Training:
    """A step with everything that changes a thread's state on the way."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.x, self.y = torch.randn(3, 4), torch.tensor([0, 1, 0])

    def step(self) -> None:
        with record_function("forward"):
            out = self.model(self.x)
            loss = nn.functional.cross_entropy(_Scaled.apply(out), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        with torch.no_grad():
            out.sum()

    def modes(self) -> None:
        """Every kind of block, one in another.

        An object that sets its mode when it is made, as set_detect_anomaly does, is none: see docs/reliability.md.
        """
        hooks = torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
        with torch.no_grad(), torch.enable_grad(), torch.set_grad_enabled(True), hooks, _Counting():
            with torch.autocast("cpu", dtype=torch.bfloat16), torch.device("cpu"):
                self.model(self.x)
        with torch.autograd.detect_anomaly(), torch.random.fork_rng():
            self.model(self.x).sum().backward()
        with torch.inference_mode():
            self.model(self.x)
        with torch.autograd.forward_ad.dual_level(), torch.backends.mkldnn.flags(enabled=False):
            _ = self.x + 1
        torch.func.vmap(lambda row: row * 2)(self.x)
        with torch.utils.flop_counter.FlopCounterMode(display=False):
            self.model(self.x)


@dataclass(frozen=True)
class Options:
    name: str
    make: Callable[[], Any]  # a context manager around the step


def _options() -> list[Options]:
    everything = {"record_shapes": True, "profile_memory": True, "with_stack": True, "with_modules": True, "with_flops": True}
    numbers = itertools.count()

    def path() -> str:
        return os.path.join(_FOLDER, f"{next(numbers) % 4}")

    sets: dict[str, Callable[[], Any]] = {
        "plain": profile,
        "shapes": lambda: profile(record_shapes=True),
        "memory": lambda: profile(profile_memory=True),
        "stacks": lambda: profile(with_stack=True),
        "modules": lambda: profile(with_modules=True),
        "flops": lambda: profile(with_flops=True),
        "everything": lambda: profile(**everything),
        "all threads": lambda: profile(
            profile_memory=True, experimental_config=_ExperimentalConfig(profile_all_threads=True, capture_overload_names=True)
        ),
        "schedule": lambda: profile(
            schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=lambda prof: prof.key_averages(), **everything
        ),
        "execution trace": lambda: profile(execution_trace_observer=ExecutionTraceObserver().register_callback(os.devnull)),
        "stream": lambda: profile(stream_to=path() + ".mtp", flush_interval_s=0.05),
        "ring": lambda: profile(max_memory_mb=1, mode="ring"),
        "aggregate": lambda: profile(max_memory_mb=1, mode="aggregate"),
        "nested": lambda: _Nested(everything),
        "legacy": lambda: torch.autograd.profiler.profile(with_stack=True),
    }
    return [Options(name, make) for name, make in sets.items()]


class _Nested:
    """A profile in another one."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.outer, self.inner = profile(), profile(**options)

    def __enter__(self) -> Any:
        raise NotImplementedError("entered by `run`")


def run(training: Training, options: Options) -> Any:
    """One profiled training step; returns the profile."""
    context = options.make()
    if isinstance(context, _Nested):
        with context.outer, context.inner:
            training.step()
        return context.inner
    with context as prof:
        training.step()
        if options.name == "schedule":
            prof.step()
            training.step()
            prof.step()
    return prof


def op_counts(prof: Any, name: str) -> Counter[str]:
    """How often each op was recorded."""
    if name == "aggregate":
        return Counter({row.name: row.calls.count for row in prof.aggregate().rows if row.name.startswith("aten::")})
    events = prof.function_events if name == "legacy" else prof.events()
    return Counter(event.name for event in events if event.name.startswith("aten::"))


def _check(training: Training, options: Options, before: dict[str, Any], what: str) -> None:
    after = settled_state(before)
    changed = [f"{name}: {before[name]!r} became {after[name]!r}" for name in before if before[name] != after[name]]
    assert not changed, f"{options.name}, {what}: {changed}"


def _check_works(training: Training, options: Options, expected: Counter[str], what: str) -> None:
    found = op_counts(run(training, options), options.name)
    assert found == expected, f"{options.name}, after {what}: {found - expected} more, {expected - found} fewer"


# ---------------------------------------------------------------- at random moments


_arrivals = [0]


def _interrupt(number: int, frame: Any) -> None:
    _arrivals[0] += 1
    raise KeyboardInterrupt


def _with_an_interrupt(work: Callable[[], Any], after_s: float) -> bool:
    """Run something and raise KeyboardInterrupt in it after a time; returns whether it arrived inside."""
    seen, done = _arrivals[0], False
    try:
        signal.setitimer(signal.ITIMER_REAL, after_s)
        work()
        done = True
        left, _ = signal.setitimer(signal.ITIMER_REAL, 0)
        # A signal that was sent may have gone to another thread, which a busy machine lets run later: it must not arrive later.
        until = time.monotonic() + 10
        while not left and _arrivals[0] == seen and time.monotonic() < until:
            time.sleep(0.001)
    except KeyboardInterrupt:
        return not done
    return False


def _seconds(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


@attack(
    "KeyboardInterrupt at any moment of a profiled training step leaves all state as before",
    small=60,
    large=10_000,
    timeout_s=1500,
)
def real_signals(size: int) -> str:
    return _real_signals(size, _options())


def _real_signals(size: int, sets: list[Options]) -> str:
    chance = random.Random(0)
    training = Training()
    expected = {}
    for options in sets:
        run(training, options)
        expected[options.name] = op_counts(run(training, options), options.name)
    took = {options.name: min(_seconds(lambda: run(training, options)) for _ in range(3)) for options in sets}  # noqa: B023
    gc.collect()
    signal.signal(signal.SIGALRM, _interrupt)
    arrived = 0
    before = state()
    for number in range(size):
        options = sets[number % len(sets)]
        began = time.monotonic()
        arrived += _with_an_interrupt(lambda: run(training, options), 1e-6 + chance.random() * took[options.name])  # noqa: B023
        assert time.monotonic() - began < _LONGEST_S, f"{options.name}: try {number} took {time.monotonic() - began:.0f} s"
        _check(training, options, before, f"try {number}")
        if number % 50 < len(sets):
            _check_works(training, options, expected[options.name], f"try {number}")
    return f"{size:,} tries with {len(sets)} sets of options, {arrived:,} interrupts arrived inside"


# ---------------------------------------------------------------- at every place where one can arrive

# Instructions that may call something: an interrupt that is pending before one of them arrives in what it calls, or after it.
_MAY_CALL = (
    "CALL",
    "BEFORE_WITH",
    "WITH_EXCEPT_START",
    "JUMP_BACKWARD",
    "FOR_ITER",
    "SEND",
    "BINARY",
    "STORE_SUBSCR",
    "GET_ITER",
)
Place = tuple[Any, int]  # code and offset of an instruction

# The interpreter's own function that makes an interrupt pending. An iterator calls it without a place where it would arrive.
_set_interrupt = ctypes.pythonapi.PyErr_SetInterrupt
_set_interrupt.restype = None
_pending_interrupt = iter(_set_interrupt, 0)


def places(work: Callable[[], Any]) -> list[Place]:
    """Where the instructions are, in the order in which they first come up, before which an interrupt may become pending."""
    from opcode import opname

    found: dict[Place, None] = {}

    def trace(frame: Any, event: str, arg: Any) -> Any:
        frame.f_trace_opcodes = True
        if event == "opcode":
            code, place = frame.f_code, frame.f_lasti
            if opname[code.co_code[place]].startswith(_MAY_CALL):
                found[code, place] = None
        return trace

    sys._getframe().f_trace_opcodes = True  # from 3.12 on, the first frame decides for all
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return list(found)


def interrupted_at(work: Callable[[], Any], place: Place, occurrence: int) -> bool:
    """Run something with an interrupt that becomes pending at a place; returns whether it arrived."""
    wanted, offset = place

    @cpython.without_signals_at_entry
    def inside(frame: Any, event: str, arg: Any) -> Any:
        nonlocal occurrence
        if event == "opcode" and frame.f_lasti == offset:
            occurrence -= 1
            if occurrence == 0:
                for _ in _pending_interrupt:
                    break
        return inside

    @cpython.without_signals_at_entry
    def trace(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code is not wanted:
            return None
        frame.f_trace_opcodes = True
        return inside

    sys._getframe().f_trace_opcodes = True
    try:
        try:
            sys.settrace(trace)
            work()
        finally:
            sys.settrace(None)
    except KeyboardInterrupt:
        return True
    return False


def _sweep(size: int, named: list[tuple[str, Callable[[], Any], Callable[[str], None]]]) -> tuple[int, int, int]:
    """Interrupt works at `size` of their places, or at all if there are fewer; returns how many places, tries, arrivals."""
    chance = random.Random(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    cases = [(work, check, place, name) for name, work, check in named for place in places(work)]
    total = len(cases)
    if size < total:
        cases = chance.sample(cases, size)
    arrived = 0
    before = state()
    for work, check, place, name in cases:
        code, offset = place
        what = f"{name}: {code.co_qualname if hasattr(code, 'co_qualname') else code.co_name} at {offset} of {code.co_filename}"
        began = time.monotonic()
        arrived += interrupted_at(work, place, 1 if chance.random() < 0.7 else chance.randrange(2, 5))
        assert time.monotonic() - began < _LONGEST_S, f"{what}: took {time.monotonic() - began:.0f} s"
        after = settled_state(before)
        changed = [f"{each}: {before[each]!r} became {after[each]!r}" for each in before if before[each] != after[each]]
        assert not changed, f"{what}: {changed}"
        check(what)
    return total, len(cases), arrived


@attack(
    "an interrupt at each place of a profiled step where one can arrive leaves all state as before",
    small=40,
    large=4_000,
    timeout_s=900,
)
def every_place(size: int) -> str:
    training = Training()
    tries = itertools.count()
    named = []
    # Finding the places of all sets takes longer than a few tries do.
    for options in _options() if size > 1000 else _options()[6:12:2]:
        run(training, options)
        expected = op_counts(run(training, options), options.name)

        def check(what: str, options: Options = options, expected: Counter[str] = expected) -> None:
            if next(tries) % 20 == 0:
                _check_works(training, options, expected, what)

        named.append((options.name, lambda options=options: run(training, options), check))
    total, tried, arrived = _sweep(size, named)
    return f"{tried:,} of {total:,} places with {len(named)} sets of options, {arrived:,} interrupts arrived"


@attack("an interrupt at each place of a block that sets a mode leaves the mode as before", small=40, large=20_000)
def every_place_of_modes(size: int) -> str:
    training = Training()
    warnings.simplefilter("ignore")  # anomaly mode tells that it is slow
    training.modes()
    training.modes()
    total, tried, arrived = _sweep(size, [("modes", training.modes, lambda what: None)])
    return f"{tried:,} of {total:,} places, {arrived:,} interrupts arrived"
