"""Self times by a clock that only kernels advance: an op has the time of its own kernel, and none of another's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import entry_globals
from mindtorch_v2.profiler.assembly.freeze import freeze
from mindtorch_v2.profiler.recording.recorder import Options, Recorder

OWN = {"leaf": 100_000, "around": 30_000, "outermost": 7_000}  # nanoseconds that a kernel takes beside the ops it calls
BELOW = {"leaf": [], "around": ["leaf", "leaf"], "outermost": ["around", "leaf"]}
EVERYTHING = Options(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True, with_modules=True)


class Clock:
    """Nanoseconds that are counted; reading them takes none."""

    def __init__(self):
        self.now = 1_000

    def __call__(self):
        return self.now


CLOCK = Clock()


@pytest.fixture(scope="module")
def ops():
    library = torch.library.Library("counted", "DEF")

    def kernel_of(name):
        def kernel(x):
            CLOCK.now += OWN[name]
            for below in BELOW[name]:
                getattr(torch.ops.counted, below)(x)
            return x.clone()

        return kernel

    for name in OWN:
        library.define(f"{name}(Tensor x) -> Tensor")
        library.impl(name, kernel_of(name), "CPU")
    return torch.ops.counted


@pytest.mark.parametrize(
    "options",
    [
        Options(),
        Options(record_shapes=True),
        Options(profile_memory=True),
        Options(with_stack=True),
        Options(with_modules=True),
        EVERYTHING,
    ],
    ids=["plain", "shapes", "memory", "stack", "modules", "everything"],
)
def test_an_op_has_the_time_of_its_own_kernel(monkeypatch, ops, options):
    x = torch.ones(3)
    ops.outermost(x)  # compiles the entries
    monkeypatch.setattr(entry_globals, "clock", CLOCK)
    recorder = Recorder(options, clock=CLOCK)
    recorder.start()
    try:
        for _ in range(4):
            ops.outermost(x)
    finally:
        recorder.stop()
    store = freeze(recorder)
    own = {name: set() for name in OWN}
    whole = {name: set() for name in OWN}
    count = dict.fromkeys(OWN, 0)
    for row in range(len(store)):
        name = store.names[store.name[row]].removeprefix("counted::")
        if name in OWN:
            own[name].add(int(store.self_ns[row]))
            whole[name].add(int(store.duration[row]))
            count[name] += 1
    assert own == {name: {ns} for name, ns in OWN.items()}
    assert whole == {"leaf": {100_000}, "around": {230_000}, "outermost": {337_000}}
    assert count == {"leaf": 12, "around": 4, "outermost": 4}
