"""Collectives among two and three processes against what torch's gloo answered to the same programs.

`recorded_ranks.json` has torch 2.13's answers: `python tests/helpers/rank_programs.py --package torch --size 2 --out FILE`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from rank_programs import programs, run_ranks

RECORDED = json.loads(Path(__file__).with_name("recorded_ranks.json").read_text())
# Gloo has no word for these dtypes, not even to move them; bytes are bytes here. Of complex numbers it gathers none.
MOVED = ("broadcast", "all_gather", "all_gather_single", "gather", "scatter", "all_to_all")
ON_PURPOSE = {f"{name}/{dtype}" for name in MOVED for dtype in ("int16", "uint16")} | {"gather/complex64"}
ON_PURPOSE |= {"ddp/bf16_compress_hook", "ddp/bf16_compress_wrapper"}  # torch wants NCCL for them
# Three processes take long on two cores: those programs in which a third one makes a difference.
OF_THREE = [
    name for name, _ in programs() if "/" not in name or name.endswith(("/float32", "/bfloat16", "/int64")) or "ddp/" in name
]


@pytest.fixture(scope="module")
def answers():
    return {"2": run_ranks(sys.executable, "mindtorch_v2", 2), "3": run_ranks(sys.executable, "mindtorch_v2", 3, OF_THREE)}


CASES = [("2", name) for name, _ in programs()] + [("3", name) for name in OF_THREE]


@pytest.mark.parametrize("size, name", CASES)
def test_every_rank_answers_as_torch_does(answers, size, name):
    if name in ON_PURPOSE:
        assert all(str(rank[name]).startswith("raises") for rank in RECORDED[size])
        assert not any(str(rank[name]).startswith("raises") for rank in answers[size])
        return
    for recorded, answered in zip(RECORDED[size], answers[size], strict=True):
        assert in_our_words(answered[name]) == recorded[name]


def in_our_words(answer):
    """An answer with torch's name of the package in the text of an exception."""
    if isinstance(answer, list) and answer and isinstance(answer[-1], str):
        return [*answer[:-1], answer[-1].replace("mindtorch_v2.", "torch.")]
    return answer
