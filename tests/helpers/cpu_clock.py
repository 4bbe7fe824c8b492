"""Recordings by a clock that stands still while other programs have the processor, so that a busy machine changes nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import mindtorch_v2 as torch
from mindtorch_v2._autograd import observed_engine
from mindtorch_v2._dispatch import entry_globals, observer
from mindtorch_v2.profiler.recording import record_function
from mindtorch_v2.profiler.recording.recorder import Recorder

# Reading the CPU time of a thread takes a microsecond or two, so that is done only after so long.
_LONG_NS = 100_000

# A file of the profiler's own: `with_stack` does not record calls of it.
_SOURCE = """
def make(real, cpu, long_ns):
    last, now = real(), 0
    behind = cpu()  # what the CPU time was when `now` was 0

    def clock():
        nonlocal last, now
        moment = real()
        passed = max(moment - last, 0)  # less than nothing where another thread, whose calls are traced, was here since
        last += passed
        if passed > long_ns:
            passed = min(passed, max(cpu() - behind - now, 0))
            last = real()
        now += passed
        return now

    return clock
"""


def make_clock() -> Callable[[], int]:
    """Nanoseconds since now, without the time in which the calling thread did not run."""
    scope: dict[str, Callable[..., Callable[[], int]]] = {}
    exec(compile(_SOURCE, record_function.__file__, "exec"), scope)
    identity = time.pthread_getcpuclockid(threading.get_ident())
    return scope["make"](time.perf_counter_ns, lambda: time.clock_gettime_ns(identity), _LONG_NS)


@contextmanager
def cpu_clock() -> Iterator[None]:
    """Inside, recordings that begin have this thread's clock, on every thread, and products run on the one that calls them."""
    clock = make_clock()
    places = [
        (entry_globals, "clock"),
        (observer, "clock"),
        (observer, "now"),
        (observed_engine, "clock"),
        (record_function, "perf_counter_ns"),
    ]
    before = [getattr(module, name) for module, name in places]
    defaults, count = Recorder.__init__.__defaults__, torch.get_num_threads()
    try:
        for module, name in places:
            setattr(module, name, clock)
        Recorder.__init__.__defaults__ = (clock,)
        torch.set_num_threads(1)
        yield
    finally:
        torch.set_num_threads(count)
        Recorder.__init__.__defaults__ = defaults
        for (module, name), known in zip(places, before, strict=True):
            setattr(module, name, known)
