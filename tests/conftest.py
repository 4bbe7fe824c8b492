"""For all suites: the NPU that some tests bring into their process is not there for the others; no limits of time; no test
leaves something that records; what earlier tests of the process used decides nothing."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# How long an example takes depends on what else the machine does, and which ones there are on nothing: those of every run are
# the same. Without the constants of the modules that happen to be loaded, which take two seconds to find in each process.
settings.register_profile("any_load", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_load")
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants

os.environ["MTPROF_CACHE"] = "off"  # commands that tests run leave nothing in the user's cache folder

BACKEND, DRIVER = "mindtorch_v2._backends.npu.backend", "mindtorch_v2._backends.npu.driver"


def pytest_collection_finish(session):
    """What was collected stays until the end: the collector need not go through 24,000 tests again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    """A process keeps the driver it has loaded; tests that are not marked `npu` see a machine without one.

    Recordings have no rows for ops that happen to be used for the first time in the process, but in tests marked `first_use`.
    All of this holds for their fixtures too, also for those that are set up once for a module.
    """
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("npu") is None:
            _hide_npu(patch)
        observer = sys.modules.get("mindtorch_v2._dispatch.observer")
        if observer is not None and item.get_closest_marker("first_use") is None:
            patch.setattr(observer, "note_first_use", {}.get)  # a function in Python would be a row where calls are recorded
        return (yield)


def _hide_npu(patch):
    patch.delenv("MINDTORCH_NPU_LIBRARY", raising=False)  # nor for the processes they start
    driver = sys.modules.get(DRIVER)
    if driver is None or driver._driver is None:
        return
    from mindtorch_v2._backends.npu.errors import DriverNotFoundError
    from mindtorch_v2._core import device
    from mindtorch_v2._dispatch import backends

    patch.setattr(driver, "_driver", None)
    patch.setattr(driver, "_reason", DriverNotFoundError("hidden from this test"))
    patch.delitem(sys.modules, BACKEND, raising=False)
    patch.delitem(backends.loaded, "npu", raising=False)
    patch.setattr(device, "_accelerator", None)


@pytest.fixture(autouse=True)
def nothing_left_recording():
    """The test that leaves an observer behind fails, not the hundred that come after it in the same process."""
    before = _observers()
    yield
    after = _observers()
    if after != before:
        pytest.fail(f"{after - before} observers of ops were acquired and not released")


def _observers():
    entry_globals = sys.modules.get("mindtorch_v2._dispatch.entry_globals")
    return 0 if entry_globals is None else entry_globals.observers_active
