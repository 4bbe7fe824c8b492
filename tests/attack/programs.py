"""Programs: whatever ops are put together, the outcome is torch's."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

from attacks import attack

import mindtorch_v2 as torch

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))

import fuzz_programs

ROOT = Path(__file__).parents[2]
warnings.simplefilter("ignore")


def _checked(cases: Any, python: str | None = None) -> fuzz_programs.Check:
    checking = fuzz_programs.Check(torch, python)
    for case in cases:
        checking.add(case)
    assert not checking.groups, checking.report()
    return checking


@attack("random programs give what torch 2.13 gave: values, layouts, gradients, shared memory, refusals", small=200, large=1500)
def recorded_programs(size: int) -> str:
    done = _checked(itertools.islice(fuzz_programs.recorded(ROOT / "tests" / "helpers" / "random_programs.gz"), size))
    assert done.programs == size
    return f"{done.programs:,.0f} recorded programs, {done.statements:,.0f} statements"


@attack("new random programs give what the torch of TORCH_PYTHON gives", small=20, large=20_000, timeout_s=1800)
def new_programs(size: int) -> str:
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        return "not tried: TORCH_PYTHON names no torch"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "programs.gz"
        command = [python, str(ROOT / "tools" / "fuzz_programs.py"), "record", str(path), "--count", str(size), "--seed", "100"]
        subprocess.run(command, check=True, capture_output=True)
        done = _checked(fuzz_programs.recorded(path), python)
    return f"{done.programs:,.0f} programs, {done.statements:,.0f} statements, {done.listed:,.0f} with a listed difference"
