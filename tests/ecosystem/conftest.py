"""Tests with libraries that use torch. They need an environment with those libraries: run them with `make ecosystem`.

A test computes figures and hands them to the fixture `figures`, which compares them with those that real torch gave. With
ECOSYSTEM=record, in an environment that has torch, the same tests write them down instead.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MODE = os.environ.get("ECOSYSTEM")

if MODE == "run":
    from mindtorch_v2 import as_torch

    as_torch.install()
elif MODE != "record":
    collect_ignore_glob = ["test_*.py", "*/test_*.py"]  # no libraries: these tests are not even collected

if MODE:
    os.environ.update(HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


@pytest.fixture
def figures(request):
    """Figures of this test: `figures.check(name, value)` compares a tensor, a number or a list with the recorded one.

    They are kept in `recorded/<name of the test's file>.json`.
    """
    from recording import Figures

    file = Path(request.node.path)
    folder = Path(__file__).parent / "recorded"
    kept = Figures(folder / f"{file.stem.removeprefix('test_')}.json", request.node.name, recording=MODE == "record")
    yield kept
    kept.close()


@pytest.fixture(autouse=True)
def _same_start():
    """Each test begins with the same seeds, gradients on and torch's default dtype."""
    if not MODE:
        yield
        return
    import random

    import numpy as np
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)
    yield
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
