"""Shared by the tests of retention policies: a training run, and a policy and recorder that a test feeds by hand."""

from __future__ import annotations

import os

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._core.threads import threads
from mindtorch_v2.profiler import record_function
from mindtorch_v2.profiler.recording.gc_pauses import GcPauseLog
from mindtorch_v2.profiler.recording.recorder import Options, Recorder
from mindtorch_v2.profiler.retention.base import RecordingWindow

ALL = {"record_shapes": True, "with_stack": True, "profile_memory": True, "with_modules": True, "with_flops": True}


class Clock:
    """A clock that counts up by one at each reading; a test may set `now`."""

    def __init__(self, now=0):
        self.now = now

    def __call__(self):
        self.now += 1
        return self.now


class ByHand:
    """A policy without its thread, and a recorder that the test feeds; with `twin` a second one that keeps all rows."""

    def __init__(self, retention, twin=False, **options):
        self.retention = retention
        retention._pid = os.getpid()
        self.clock = Clock(1000)
        self.recorder = Recorder(Options(**options), self.clock)
        self.recorder.start()
        self.twin = Recorder(Options(**options), lambda: self.clock.now) if twin else None
        if self.twin is not None:
            self.twin.start()
        retention.window = RecordingWindow(
            self.recorder, GcPauseLog(self.clock), None, None, {"options": Options(**options)._asdict(), "trace_id": "T"}
        )
        retention.on_window_start()

    def op(self, number, start, end, sequence=-1):
        threads.state.append_row((number, start, end, sequence))

    def flush(self):
        self.retention.drain_now()

    def stop(self):
        if self.twin is not None:
            self.twin.stop()
        self.recorder.stop()
        if self.twin is not None:
            self.recorder.clock_end_ns = self.twin.clock_end_ns
        self.flush()
        self.retention.on_window_end()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x):
        with record_function("inside"):
            return self.second(torch.relu(self.first(x)))


def helper():
    return torch.ones(3) * 2


def train(prof, steps, flush=None, every=1):
    """Train a small network; every `every` steps flush() in the middle of a step, and after one."""
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for number in range(steps):
        with record_function("iteration"):
            helper()
            loss = net(torch.ones(3, 4)).sum()
            if flush is not None and number % every == every // 2:
                flush()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if flush is not None and number % every == 0:
            flush()
        prof.step()
