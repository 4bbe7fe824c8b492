"""Kills a streamed training run at random moments: everything up to the last flush must be there, and nothing else.

    python tests/soak/kills.py [--kills 200] [--seed 0] [--longest 6]

The child trains under profile(stream_to=...) with changing options. Beside that it writes a line for every range it has
left, with the time at which it left it; the lines reach the file at once, since nothing is buffered. After the kill
- every range that ended longer ago than the flush interval must be in the recovered profile,
- every range of the profile must be one that the child wrote a line for, or the one it was about to write,
- ranges must come in order without a gap, and the recording must keep its promises (`profiler.validate`).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

INTERVAL_S = 1.0
OPTIONS = [
    {},
    {"record_shapes": True},
    {"with_modules": True},
    {"profile_memory": True},
    {"with_stack": True},
    {"record_shapes": True, "with_flops": True, "with_modules": True, "with_stack": True, "profile_memory": True},
]


def child(profile_path: str, log_path: str, options: dict[str, bool], scheduled: bool) -> None:
    import mindtorch_v2 as torch
    from mindtorch_v2 import nn
    from mindtorch_v2.profiler import profile, record_function, schedule

    plan = schedule(wait=1, warmup=1, active=3) if scheduled else None
    net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    number = 0
    with profile(stream_to=profile_path, flush_interval_s=INTERVAL_S, schedule=plan, **options) as prof:
        os.write(log, b"ready\n")
        while True:
            recorded = prof.current_action.name.startswith("RECORD")
            with record_function(f"range {number}"):
                loss = net(torch.randn(8, 16)).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            if recorded:
                os.write(log, f"{number} {time.perf_counter_ns()}\n".encode())
                number += 1
            prof.step()


def one_kill(folder: str, number: int, chance: random.Random, longest: float) -> str | None:
    """Start, wait, kill, look. Returns what is wrong, None if nothing is."""
    from mindtorch_v2.profiler import TraceError, load, validate

    profile_path, log_path = os.path.join(folder, "run.mtp"), os.path.join(folder, "run.log")
    for path in (profile_path, log_path):
        if os.path.exists(path):
            os.unlink(path)
    options, scheduled = OPTIONS[number % len(OPTIONS)], chance.random() < 0.3
    arguments = [profile_path, log_path, repr(options), str(int(scheduled))]
    process = subprocess.Popen([sys.executable, __file__, "--child", *arguments])
    while not os.path.exists(log_path) or os.path.getsize(log_path) == 0:
        time.sleep(0.01)
        if process.poll() is not None:
            return "the child ended by itself"
    time.sleep(chance.uniform(0, longest))
    killed_at = time.perf_counter_ns()  # the same clock in all processes of a machine
    process.send_signal(signal.SIGKILL)
    process.wait()
    with open(log_path) as file:
        lines = [line.split() for line in file.read().split("\n")[1:-1]]
    left = {int(at): int(moment) for at, moment in lines}
    due = [at for at, moment in left.items() if moment < killed_at - INTERVAL_S * 1e9]
    if not os.path.exists(profile_path):  # killed before the first window began
        return f"there is no file, and {len(due)} ranges were due" if due else None
    try:
        loaded = load(profile_path)
    except TraceError as error:
        return f"{error}; {len(due)} ranges were due" if due else None
    store = loaded.store
    rows = [
        (int(store.names[name].split()[1]), int(end))
        for name, end in zip(store.name, store.end, strict=True)
        if store.names[name].startswith("range ")
    ]
    numbers = [at for at, _ in sorted(rows)]
    if numbers != list(range(len(numbers))):
        return f"ranges {numbers[:5]} ... {numbers[-5:]} have gaps"
    if len(numbers) < len(due):
        return f"{len(numbers)} ranges of {len(due)} that had ended {INTERVAL_S} s before the kill"
    if len(numbers) > len(left) + 1:
        return f"{len(numbers)} ranges, but only {len(left)} were left"
    invented = [at for at, end in rows if at in left and end > left[at]]
    if invented:
        return f"range {invented[0]} ended later than it was left"
    errors = [problem for problem in validate(store) if problem.severity == "error"]
    if errors:
        return str(errors[0])
    print(
        f"{number + 1}: {options or 'plain'}{' scheduled' if scheduled else ''}: {len(store)} events, "
        f"{len(left) - len(numbers)} of {len(left)} ranges younger than the last flush; {loaded.recovery}",
        flush=True,
    )
    return None


def main() -> int:
    if "--child" in sys.argv:
        profile_path, log_path, options, scheduled = sys.argv[2:]
        import ast

        child(profile_path, log_path, ast.literal_eval(options), scheduled == "1")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=6.0, help="seconds before the kill at most")
    args = parser.parse_args()
    chance = random.Random(args.seed)
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(args.kills):
            problem = one_kill(folder, number, chance, args.longest)
            if problem is not None:
                failures.append(f"kill {number + 1}: {problem}")
                print(f"FAILED {failures[-1]}", flush=True)
    print(f"{args.kills - len(failures)} of {args.kills} kills recovered")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
