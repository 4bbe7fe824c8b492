"""Small programs and what PyTorch 2.13 answered to them: printed text, warnings, and the exception that ended them.

`recorded_answers.json` holds both. Addresses are written as 0x... .
"""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops._support import warn

CASES = json.loads((pathlib.Path(__file__).parent / "recorded_answers.json").read_text())
PREAMBLE = "import numpy as np, gc, weakref, copy, pickle, io\nfrom torch import nn\nimport torch.nn.functional as F\n"


def answer(code: str) -> str:
    """What a program prints, and how it ends."""
    out = io.StringIO()
    torch.manual_seed(0)
    warn._said.clear()  # each was recorded in a process of its own, in which nothing had been warned of
    program = re.sub(r"^(from|import) torch\b", r"\1 mindtorch_v2", PREAMBLE + code, flags=re.MULTILINE)
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            exec(compile(program, "<case>", "exec"), {"torch": torch, "__name__": "__main__"})
        for warning in caught:
            out.write(f"WARN {warning.category.__name__}: {str(warning.message)[:100]}\n")
    except Exception as error:
        out.write(f"EXC {type(error).__name__}: {str(error)[:300]}")
    finally:
        torch.set_grad_enabled(True)
    return re.sub("0x[0-9a-f]+", "0x...", out.getvalue())


@pytest.mark.parametrize("name", CASES)
def test_answers_as_torch(name: str) -> None:
    assert answer("\n".join(CASES[name]["code"])).split("\n") == CASES[name]["answer"]
