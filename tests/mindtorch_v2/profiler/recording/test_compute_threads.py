"""The threads that large kernels share, and those of process groups, are no part of a recording."""

from __future__ import annotations

import subprocess
import sys

import pytest

# In an interpreter of its own: threads that another test left behind would be in the recording.
RECORDED = """
import threading
import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._core import parallel
from mindtorch_v2.distributed._work import _Background
from mindtorch_v2.profiler import ProfilerActivity, profile

torch.set_num_threads(4)
{before}
with profile(activities=[ProfilerActivity.CPU], with_stack=True, profile_memory=True) as prof:
    F.gelu(torch.randn(300_000))
names = [event.name for event in prof.events()]
print(len({{event.thread for event in prof.events()}}), names.count("aten::gelu"), any("parallel.py" in name for name in names))
"""
POOL = "parallel.run(8, lambda _: None)"  # it runs before the recording begins
COLLECTIVES = "threading.Thread(target=_Background()._run, daemon=True).start()"  # tests those for which nothing waits
PROGRAM = "threading.Thread(target=threading.Event().wait, daemon=True).start()"


@pytest.mark.parametrize(
    ("before", "lanes"),
    [(POOL, 1), (COLLECTIVES, 1), (PROGRAM, 2)],
    ids=["of large kernels", "of process groups", "of the program"],
)
def test_threads_of_the_runtime_are_left_out(before, lanes):
    done = subprocess.run([sys.executable, "-c", RECORDED.format(before=before)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(lanes), "1", "False"]
