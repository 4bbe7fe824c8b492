"""What recording an NPU costs and how exact it is, on the simulator: with libmspti, and with pairs of events.

    python benchmarks/npu_recording.py [--launches 2000] [--rounds 5]

Per launch: CPU time of the launching thread without a recording, and what a recording adds to it while it runs and at its end.
Resolution: the smallest step between durations. Clock error: what the compared clocks are apart from what the simulator knows.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
_SIMULATED_OFFSET_NS = 86_400_000_000_123  # that device_clock() in tests/ascend_sim/runtime.c is ahead of the host's
SOURCES = {"libmspti": "", "event pairs": "0"}  # MINDTORCH_NPU_MSPTI


def _launch(torch: Any, count: int) -> None:
    x = torch.ones(8, device="npu")
    for _ in range(count):
        x.add_(1)
    torch.npu.synchronize()


def _without(torch: Any, count: int) -> float:
    start = time.thread_time_ns()
    _launch(torch, count)
    return (time.thread_time_ns() - start) / count / 1000


def _recorded(torch: Any, count: int) -> tuple[float, float, Any]:
    from mindtorch_v2.profiler import ProfilerActivity, profile

    prof = profile(activities=[ProfilerActivity.CPU, ProfilerActivity.NPU])
    prof.start()
    start = time.thread_time_ns()
    _launch(torch, count)
    running = time.thread_time_ns() - start
    prof.stop()
    store = prof.profiler.store
    return running / count / 1000, (time.thread_time_ns() - start - running) / count / 1000, store


def measure(launches: int, rounds: int) -> None:
    """Print the figures of the source that this process uses."""
    import numpy as np

    import mindtorch_v2 as torch
    from mindtorch_v2._dispatch import observer

    warnings.simplefilter("ignore")
    _launch(torch, launches)
    _recorded(torch, launches)
    plain, running, ending = [], [], []
    steps: set[int] = set()
    for _ in range(rounds):
        plain.append(_without(torch, launches))
        during, end, store = _recorded(torch, launches)
        running.append(during)
        ending.append(end)
        steps |= set(np.diff(np.unique(store.duration[store.is_work])).tolist())
    timing = observer.device_timing("npu")
    assert timing is not None
    errors = [abs((timing.host_offset_ns(time.perf_counter_ns, 0, True) or 0) + _SIMULATED_OFFSET_NS) for _ in range(50)]
    print(
        f"{min(plain):.1f} us a launch, {min(running) - min(plain):.1f} us more while recording,",
        f"{min(ending):.1f} us at its end;",
        f"durations in steps of {min(steps)} ns;",
        f"clocks within {np.median(errors) / 1000:.2f} us, at most {max(errors) / 1000:.2f}",
    )


def main() -> None:
    """Measure both sources, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--launches", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        measure(args.launches, args.rounds)
        return
    library = subprocess.check_output([sys.executable, str(ROOT / "tests" / "ascend_sim" / "build.py")], text=True).strip()
    for source, setting in SOURCES.items():
        environment = {**os.environ, "MINDTORCH_NPU_LIBRARY": library, "MINDTORCH_NPU_MSPTI": setting}
        command = [sys.executable, __file__, "--measure", "--launches", str(args.launches), "--rounds", str(args.rounds)]
        print(f"{source}: {subprocess.check_output(command, env=environment, text=True).strip()}")


if __name__ == "__main__":
    main()
