"""Worker process: imports one package and runs the rows it is asked for.

worker.py <module> <threads> <request fd> <reply fd>
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import os
import sys
import time

import rows as registry


class Host:
    """The package under test plus the timing helpers rows use."""

    def __init__(self, module, threads):
        self.module, self.threads = module, threads
        self.wall = time.perf_counter
        cpu = threads == 1 and os.environ.get("BENCH_CLOCK") == "cpu"
        self.clock = time.process_time if cpu else time.perf_counter
        self.quick, self.size, self.cap = False, None, 60.0
        self._torch = None

    @property
    def torch(self):
        if self._torch is None:
            self._torch = importlib.import_module(self.module)
            if hasattr(self._torch, "set_num_threads"):
                with contextlib.suppress(Exception):
                    self._torch.set_num_threads(self.threads)
        return self._torch

    def sub(self, name):
        """Submodule by dotted name, e.g. 'nn.functional'."""
        _ = self.torch  # imported first, so that the package is there
        return importlib.import_module(f"{self.module}.{name}")

    nn = property(lambda self: self.sub("nn"))
    F = property(lambda self: self.sub("nn.functional"))
    optim = property(lambda self: self.sub("optim"))
    profiler = property(lambda self: self.sub("profiler"))

    def profile(self, **options):
        P = self.profiler
        return P.profile(activities=[P.ProfilerActivity.CPU], **options)

    def loop(self, stmt, **names):
        """A function of n that runs `stmt` n times with `names` (and torch, F) as locals."""
        args = {"torch": self.torch, "F": self.F, **names}
        source = f"def loop(_n, _it=_it, {', '.join(f'{k}={k}' for k in args)}):\n for _ in _it(None, _n):\n  {stmt}\n"
        space = {"_it": itertools.repeat, **args}
        exec(source, space)
        return space["loop"]

    def count(self, loop, seconds, most=1 << 22):
        """How many iterations of `loop` fill `seconds`."""
        n = 1
        loop(n)
        while True:
            spent = float("inf")
            for _ in range(3):
                start = self.clock()
                loop(n)
                spent = min(spent, self.clock() - start)
                if spent > seconds:
                    break
            if spent >= seconds / 4 or n >= most:
                return max(1, min(most, int(n * seconds / max(spent, 1e-9))))
            n *= 4

    def per_call(self, loop, seconds=0.01, repeats=9):
        """Best ns per iteration of `loop`."""
        if self.quick:
            seconds, repeats = 0.005, 4
        n, best = self.count(loop, seconds), float("inf")
        for _ in range(repeats):
            start = self.clock()
            loop(n)
            best = min(best, self.clock() - start)
        return best / n * 1e9

    def added(self, loop, start, stop, seconds=0.004, repeats=20, most=20_000):
        """(off, on) best ns per iteration, alternating a plain and a recorded pass."""
        if self.quick:
            repeats = 8
        n, off, on = self.count(loop, seconds, most), float("inf"), float("inf")
        loop(n)
        end = self.wall() + self.cap * 0.6
        for i in range(repeats):
            t = self.clock()
            loop(n)
            off = min(off, self.clock() - t)
            session = start()
            t = self.clock()
            loop(n)
            on = min(on, self.clock() - t)
            stop(session)
            if i and self.wall() > end:
                break
        return off / n * 1e9, on / n * 1e9


def status(key):
    """A kB field of /proc/self/status, in bytes."""
    with open("/proc/self/status") as f:
        for line in f:
            if line.startswith(key + ":"):
                return int(line.split()[1]) * 1024
    raise KeyError(key)


def reset_peak():
    with open("/proc/self/clear_refs", "w") as f:
        f.write("5")


def describe(exc):
    return f"{type(exc).__name__}: {' '.join(str(exc).split())}"[:200]


def serve(module, threads, request_fd, reply_fd):
    requests, replies = os.fdopen(request_fd, "r"), os.fdopen(reply_fd, "w")

    def send(**message):
        replies.write(json.dumps(message) + "\n")
        replies.flush()

    def emit(name, value):
        """Report a value, or what calling `value` returns; a failing call loses only this value."""
        try:
            send(name=name, value=value() if callable(value) else value)
        except Exception as exc:
            send(name=name, error=describe(exc))

    host = Host(module, threads)
    for line in requests:
        ask = json.loads(line)
        host.quick, host.size, host.cap = ask["quick"], ask["size"], ask["cap"]
        try:
            found = registry.find(ask["row"])
            found.run(host, emit)
        except BaseException as exc:
            send(error=describe(exc))
            if isinstance(exc, (KeyboardInterrupt, SystemExit)):
                return
        else:
            if host._torch is not None:
                send(version=str(getattr(host._torch, "__version__", "?")))
            send(done=True)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
