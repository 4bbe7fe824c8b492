"""The time of an optimizer belongs to its step, and mtprof diff finds a slow one, whatever else is recorded.

A process of its own has a made-up clock, which goes on by a microsecond whenever it is read: nothing sleeps, and the machine's
load does not matter.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from mindtorch_v2.profiler.config import RECORD_OPTIONS

SETS = [(), *((f"--{option}",) for option in RECORD_OPTIONS), ("--stack", "--modules"), ("--all",)]
PAUSE_S = 0.03
TRAINING = f"""
import sys
import time
import mindtorch_v2 as torch
from mindtorch_v2 import nn

class Own(torch.optim.SGD):
    def step(self, closure=None):
        time.sleep({PAUSE_S} if "slow" in sys.argv else 0)
        return super().step(closure)

def train(optimizer):
    for _ in range(10):
        optimizer.zero_grad()
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()

model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
train(Own(model.parameters(), lr=0.1))
"""
DRIVER = """
import itertools, json, sys, time
from collections import deque

reading = itertools.count(0, 1000)
time.perf_counter_ns = time.thread_time_ns = reading.__next__
time.sleep = lambda seconds: deque(itertools.islice(reading, int(seconds * 1e6)), maxlen=0)

from mindtorch_v2.profiler import load
from mindtorch_v2.profiler.analysis.comparison.diff import diff
from mindtorch_v2.profiler.analysis.steps import steps
from mindtorch_v2.profiler.cli.main import main

answers = []
# Traces: a saved profile would have what recording costs measured, which takes long.
for options in json.loads(sys.argv[1]):
    for word in ("quick", "slow"):
        assert main(["run", "-q", *options, "--schedule", "1,1,6,1", "-o", word + ".json", "train.py", word]) == 0
    store = load("slow.json").store
    which = steps(store)
    update = store.label == store.labels.index("Optimizer.step#Own.step")
    answers.append({
        "steps": which.duration.tolist(),
        "inside": ((store.start[update] >= which.start) & (store.end[update] <= which.end)).tolist(),
        "code": main(["diff", "quick.json", "slow.json", "--fail-over", "5%"]),
        "changes": [(change.key.name, change.verdict) for change in diff(load("quick.json").store, store).found],
    })
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slow")
    (folder / "train.py").write_text(TRAINING)
    command = [sys.executable, "-c", DRIVER, json.dumps(SETS)]
    ended = subprocess.run(command, cwd=folder, text=True, capture_output=True, timeout=300, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(zip(SETS, json.loads(ended.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize("options", SETS, ids=lambda options: " ".join(options) or "plain")
def test_a_slow_optimizer_is_in_its_step_and_is_found(answers, options):
    answer = answers[options]
    assert len(answer["steps"]) == 6 and min(answer["steps"]) > PAUSE_S * 1e9
    assert answer["inside"] == [True] * 6
    assert answer["code"] == 1
    assert ["Optimizer.step#Own.step", "slower"] in answer["changes"]
