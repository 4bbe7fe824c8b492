"""A hundred steps of DistributedDataParallel against torch's, recorded with two processes of gloo: models, and every option.

`torch_ddp_training.json`: `python tests/helpers/ddp_training.py --package torch --out FILE`. `make test` runs a quarter of
them, `make soak` all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from ddp_training import chosen_programs, run

TORCH = json.loads(Path(__file__).with_name("torch_ddp_training.json").read_text())
# torch rounds float64 to float16 by way of float32, so a few of a million gradients are sent as the neighboring number.
WITHIN = {"fp16_compress_hook": 2e-6}


@pytest.fixture(scope="module")
def ours():
    return run(sys.executable, "mindtorch_v2")


@pytest.mark.parametrize("name", chosen_programs())
def test_parameters_are_those_of_torch_and_the_same_bits_in_both_processes(ours, name):
    assert ours[0][name] == ours[1][name]
    assert ours[0][name].get("stats") == TORCH[0][name].get("stats")
    for parameter, values in TORCH[0][name]["values"].items():
        assert ours[0][name]["values"][parameter] == pytest.approx(values, rel=0, abs=WITHIN.get(name, 1e-6)), parameter
