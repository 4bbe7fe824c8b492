"""Every case against what PyTorch 2.13 did: a difference must be in gaps.txt, and a gap that closes must leave it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CASES = HERE / "cases"

_spec = importlib.util.spec_from_file_location("parity_harness", HERE / "parity.py")
parity = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(parity)


def read_gaps(text):
    """`file::case  reason` per line -> {name: reason}."""
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return {line[0]: line[1] if len(line) > 1 else "" for line in lines}


GAPS = read_gaps((HERE / "gaps.txt").read_text())
FILES = sorted(path for path in CASES.glob("*.py") if (CASES / "golden" / f"{path.stem}.json").exists())


def differences(path):
    """Names of the cases of one file that differ, and of all that are compared."""
    golden = json.loads((CASES / "golden" / f"{path.stem}.json").read_text())
    better = parity.departures(CASES)
    golden = {name: want for name, want in golden.items() if f"{path.stem}::{name}" not in better}
    observed = parity.observe(path, "mindtorch_v2")
    seen = {name: observed.get(name, observed.get("__file__")) for name in golden}
    wrong = {name for name, want in golden.items() if parity.score(want, seen[name]) < parity.COUNTS_PASS}
    return {f"{path.stem}::{n}" for n in wrong}, {f"{path.stem}::{n}" for n in golden}, seen, golden


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_cases_behave_as_torch_does_except_for_the_known_gaps(path):
    wrong, compared, seen, golden = differences(path)
    known = {name for name in GAPS if name in compared}
    new = sorted(wrong - known)
    shown = "\n".join(f"{n}\n{parity.difference(golden[n.split('::')[1]], seen[n.split('::')[1]])}" for n in new[:5])
    assert not new, f"{len(new)} cases differ from torch and are not in gaps.txt: {', '.join(new)}\n{shown}"
    closed = sorted(known - wrong)
    assert not closed, f"these work now, take them out of gaps.txt: {', '.join(closed)}"


def test_every_gap_names_a_case_and_a_reason():
    names = {
        f"{path.stem}::{name}" for path in FILES for name in json.loads((CASES / "golden" / f"{path.stem}.json").read_text())
    }
    assert not set(GAPS) - names
    assert all(GAPS.values()), "a gap needs a reason"
