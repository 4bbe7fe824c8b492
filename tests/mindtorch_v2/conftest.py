"""What several suites stand on: an Ascend device, which is a card where there is one, else the simulator."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _load_build() -> Any:
    spec = importlib.util.spec_from_file_location("ascend_sim_build", ROOT / "tests" / "ascend_sim" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = _load_build()


@pytest.fixture(scope="session")
def simulator() -> Path:
    """The folder with the simulator's libraries."""
    if build.compiler() is None:
        pytest.skip("no C compiler, so the Ascend simulator cannot be built")
    return build.build(ROOT / "build" / "ascend_sim")


@pytest.fixture
def simulator_without(simulator: Path) -> Callable[[str], Path]:
    """Builds libraries that lack a function."""
    return lambda name: build.build(ROOT / "build" / "ascend_sim", without=name)


@pytest.fixture(scope="session")
def npu(request: pytest.FixtureRequest) -> Any:
    """The loaded driver: that of a card if CANN is installed, else the simulator's."""
    from mindtorch_v2._backends.npu import driver

    if not any((folder / "libascendcl.so").exists() for folder in driver.library_folders()):
        if build.compiler() is None:
            pytest.skip("no Ascend driver was found, and no C compiler to build its simulator with")
        os.environ["MINDTORCH_NPU_LIBRARY"] = str(request.getfixturevalue("simulator"))
    if driver._driver is None:
        driver._reason = None  # of an earlier test of this process, which asked for a device where there was none
    reason = driver.why_unavailable()
    if reason is not None:
        pytest.skip(f"no usable Ascend device: {reason}")
    return driver.driver()
