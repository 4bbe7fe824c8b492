"""Eight threads training under a repeating schedule with streaming on: no lost step, no growth, no error.

    python tests/soak/threads.py [--seconds 1800] [--threads 8]

Every thread numbers its training steps. Each window of the schedule must have all active steps of the profile, and from
every thread a gapless run of numbers; all windows together must be in the file. Memory is looked at from the tenth part
of the time on.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import itertools
import os
import sys
import tempfile
import threading
import time

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.profiler import _ExperimentalConfig, load, profile, record_function, schedule, validate

WAIT, WARMUP, ACTIVE = 3, 1, 4
NUMBERS = 1000  # of a thread's steps, over and over: every name is kept once
MOST_GROWTH_MB = 10.0
STEP_S = 0.02


def rss_mb() -> float:
    """Megabytes in use. Free memory goes back first: how much the allocator keeps depends on the largest window so far."""
    gc.collect()
    if hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


class Trainer(threading.Thread):
    """Trains until the event `over` is set."""

    def __init__(self, number: int, over: threading.Event) -> None:
        super().__init__(name=f"trainer {number}")
        self.number, self.over = number, over
        self.steps = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
            optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
            while not self.over.is_set():
                with record_function(f"{self.number}:{self.steps % NUMBERS}"):
                    loss = net(torch.randn(4, 8)).sum()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                self.steps += 1
        except BaseException as error:
            self.failure = error


def gaps(store: object, threads: int) -> list[str]:
    """Where a thread's numbers do not follow one another."""
    problems = []
    for thread in range(threads):
        rows = [
            (int(start), int(store.names[name].split(":")[1]))
            for name, start in zip(store.name, store.start, strict=True)
            if store.names[name].startswith(f"{thread}:")
        ]
        numbers = [number for _, number in sorted(rows)]
        wrong = [(a, b) for a, b in itertools.pairwise(numbers) if b != (a + 1) % NUMBERS]
        if wrong:
            problems.append(f"thread {thread}: {wrong[0][1]} follows {wrong[0][0]}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1800)
    parser.add_argument("--threads", type=int, default=8)
    args = parser.parse_args()
    problems: list[str] = []
    windows = events = 0
    wanted: list[str] = []

    def ready(prof: profile) -> None:
        nonlocal windows, events
        store = prof.profiler.store
        steps = [store.names[name] for name in store.name if store.names[name].startswith("ProfilerStep#")]
        expected = [f"ProfilerStep#{n}" for n in range(prof.step_num - ACTIVE, prof.step_num)]
        if sorted(steps) != sorted(expected):
            problems.append(f"window {windows}: {steps} instead of {expected}")
        problems.extend(f"window {windows}: {gap}" for gap in gaps(store, args.threads))
        wanted.extend(expected)
        windows += 1
        events += len(store)

    over = threading.Event()
    trainers = [Trainer(number, over) for number in range(args.threads)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "run.mtp")
        began, before = time.monotonic(), 0.0
        with profile(
            stream_to=path,
            schedule=schedule(wait=WAIT, warmup=WARMUP, active=ACTIVE),
            on_trace_ready=ready,
            experimental_config=_ExperimentalConfig(profile_all_threads=True),
            record_shapes=True,
        ) as prof:
            for trainer in trainers:
                trainer.start()
            while time.monotonic() - began < args.seconds or prof.step_num % (WAIT + WARMUP + ACTIVE):
                time.sleep(STEP_S)
                prof.step()
                if not before and time.monotonic() - began > args.seconds / 10:
                    before = rss_mb()
            after = rss_mb()
            over.set()
            for trainer in trainers:
                trainer.join()
        problems += [f"{trainer.name}: {trainer.failure!r}" for trainer in trainers if trainer.failure is not None]
        size = os.path.getsize(path)
        loaded = load(path)
        steps = [loaded.store.names[name] for name in loaded.store.name if loaded.store.names[name].startswith("ProfilerStep#")]
        if sorted(steps) != sorted(wanted) or not loaded.recovery.intact:
            problems.append(f"the file has {len(steps)} of {len(wanted)} steps; {loaded.recovery}")
        problems += [str(problem) for problem in validate(loaded) if problem.severity == "error"]
    if after - before > MOST_GROWTH_MB:
        problems.append(f"memory grew by {after - before:.1f} MB")
    trained = sum(trainer.steps for trainer in trainers)
    print(
        f"{args.seconds:.0f} s, {args.threads} threads, {trained} training steps, {windows} windows, {events} events, "
        f"{size / (1 << 20):.1f} MB written; memory {before:.1f} MB after a tenth, {after:.1f} MB at the end"
    )
    for problem in problems[:20]:
        print(f"FAILED {problem}")
    print("fine" if not problems else f"{len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
