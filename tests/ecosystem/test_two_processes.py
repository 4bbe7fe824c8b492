"""accelerate, Lightning and Fabric on two processes of torchrun: the figures are PyTorch's with gloo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="accelerate is not installed")
pytest.importorskip("lightning", reason="lightning is not installed")
if os.environ.get("ECOSYSTEM") == "run":
    pytest.importorskip("mpi4py", reason="mpi4py is not installed")

HERE = Path(__file__).parent
RUN = ["-m", "mindtorch_v2.distributed.run"] if os.environ.get("ECOSYSTEM") == "run" else ["-m", "torch.distributed.run"]


@pytest.mark.parametrize("program", ["accelerate", "lightning", "fabric"])
def test_on_two_processes(figures, tmp_path, program):
    out = tmp_path / "out"
    script = [str(HERE / "two_processes.py"), program, str(out)]
    done = subprocess.run(
        [sys.executable, *RUN, "--standalone", "--nproc-per-node", "2", *script],
        capture_output=True, text=True, timeout=300,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "ACCELERATE_USE_CPU": "true"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads(out.with_suffix(f".{rank}.json").read_text()) for rank in (0, 1))
    assert first["weights"] == second["weights"]
    for rank, answer in enumerate((first, second)):
        figures.check(f"rank {rank}", answer)
