"""For all suites: the NPU that some tests bring into their process is not there for the others; no limits of time."""

from __future__ import annotations

import os
import sys

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does.
settings.register_profile("any_load", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any_load")

os.environ["MTPROF_CACHE"] = "off"  # commands that tests run leave nothing in the user's cache folder

BACKEND, DRIVER = "mindtorch_v2._backends.npu.backend", "mindtorch_v2._backends.npu.driver"


@pytest.fixture(autouse=True)
def _npu_for_its_own_tests_only(request, monkeypatch):
    """A process keeps the driver it has loaded; tests that are not marked `npu` see a machine without one."""
    if request.node.get_closest_marker("npu") is not None:
        return
    monkeypatch.delenv("MINDTORCH_NPU_LIBRARY", raising=False)  # nor for the processes they start
    driver = sys.modules.get(DRIVER)
    if driver is None or driver._driver is None:
        return
    from mindtorch_v2._backends.npu.errors import DriverNotFoundError
    from mindtorch_v2._core import device
    from mindtorch_v2._dispatch import backends

    monkeypatch.setattr(driver, "_driver", None)
    monkeypatch.setattr(driver, "_reason", DriverNotFoundError("hidden from this test"))
    monkeypatch.delitem(sys.modules, BACKEND, raising=False)
    monkeypatch.delitem(backends.loaded, "npu", raising=False)
    monkeypatch.setattr(device, "_accelerator", None)
