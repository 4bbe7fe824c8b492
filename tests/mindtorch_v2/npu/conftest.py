"""What the NPU tests use beside the device: its counters, copies to and fro, and processes of their own."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[3]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.npu)


@pytest.fixture
def counter(npu: Any) -> Callable[[str], int]:
    """Reads a counter of the simulator: blocks, bytes, host_blocks, streams, events, descriptors, executors, kernels ..."""
    library = ctypes.CDLL(str(npu.paths["libascendcl.so"]))
    if not hasattr(library, "sim_counter"):
        pytest.skip("only the simulator counts")
    function = library.sim_counter
    function.restype = ctypes.c_int64
    return lambda name: function(name.encode())


@pytest.fixture
def on_device(npu: Any) -> Callable[[Any], np.ndarray]:
    """Copies a host array to the device."""
    from mindtorch_v2._backends.npu import memory

    def copy(array: Any) -> np.ndarray:
        host = np.ascontiguousarray(array).reshape(np.shape(array))
        device = memory.empty(host.shape, host.dtype)
        memory.to_device(device, host)
        return device

    return copy


@pytest.fixture
def on_host(npu: Any) -> Callable[[np.ndarray], np.ndarray]:
    """Copies a contiguous device array to the host, after all work before it."""
    from mindtorch_v2._backends.npu import memory

    def copy(device: np.ndarray) -> np.ndarray:
        host = np.empty(device.shape, device.dtype)
        memory.to_host(host, device)
        return host

    return copy


@pytest.fixture
def by_events(npu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has kernels recorded by pairs of events, as where there is no libmspti."""
    from mindtorch_v2._dispatch import observer
    from mindtorch_v2.profiler.recording import device

    def refuse() -> Any:
        raise RuntimeError("the test forbids it")

    timing = observer.device_timing("npu")
    assert timing is not None
    monkeypatch.setitem(observer.device_timings, "npu", timing._replace(activities=refuse))
    monkeypatch.setattr(device, "_told", {"the test forbids it"})


@pytest.fixture
def in_process(simulator: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs Python code on the simulator in a process of its own, where a driver can be loaded anew.

    The code finds NumPy as np, the files of the backend by name, and `counter(name)`.
    """
    start = """
        import ctypes, sys
        import numpy as np
        from mindtorch_v2._backends.errors import OutOfMemoryError
        from mindtorch_v2._backends.npu import allocator, devices, driver, errors, events, launch, memory, streams

        def counter(name):
            function = ctypes.CDLL(str(driver.driver().paths["libascendcl.so"])).sim_counter
            function.restype = ctypes.c_int64
            return function(name.encode())

        def ones(*shape):
            device = memory.empty(shape, np.dtype("f4"))
            memory.to_device(device, np.ones(shape, "f4"))
            return device

        def values(device):
            host = np.empty(device.shape, device.dtype)
            memory.to_host(host, device)
            return host
    """

    def run(code: str, *, library: Path | None = None, timeout: float = 300, **env: str) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("ASCEND", "MINDTORCH_NPU"))}
        clean |= {"MINDTORCH_NPU_LIBRARY": str(library or simulator), "PYTHONPATH": str(ROOT / "src"), **env}
        return subprocess.run(
            [sys.executable, "-c", textwrap.dedent(start) + textwrap.dedent(code)],
            env=clean,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    return run
