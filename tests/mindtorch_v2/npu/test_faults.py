"""A device that misbehaves: one clear exception, no wait beyond the timeout, nothing left behind."""

from __future__ import annotations

import time
from typing import Any

import pytest

# Tears everything down and shows what is still alive on the device.
END = """
memory.release_device(0)
print({name: counter(name) for name in ("blocks", "bytes", "host_blocks", "streams", "events", "descriptors", "executors")
       if counter(name)})
"""


def outcome(shown: Any) -> list[str]:
    lines = shown.stdout.splitlines()
    assert lines, shown.stderr
    assert lines[-1] == "{}", shown.stdout + shown.stderr
    assert shown.returncode == 0, shown.stderr
    return lines[:-1]


def test_out_of_memory(in_process: Any) -> None:
    shown = in_process(
        """
        kept = []
        try:
            while True:
                kept.append(memory.empty((1 << 20,), np.dtype("f4")))
        except OutOfMemoryError as error:
            print(len(kept), error.__cause__)
        kept.clear()
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT=f"oom:{64 << 20}",
    )
    (line,) = outcome(shown)
    assert line.startswith("16 aclrtMalloc failed with 207001 (ACL_ERROR_RT_MEMORY_ALLOCATION): ")


def test_out_of_memory_for_a_workspace(in_process: Any) -> None:
    shown = in_process(
        """
        a = memory.empty((1 << 18,), np.dtype("f4")).reshape(512, 512)
        filling = memory.empty((1 << 18,), np.dtype("f4")), memory.empty((1 << 19,), np.dtype("f4"))
        try:
            launch.launch("Mm", a, a, filling[0].reshape(512, 512), 0)
        except OutOfMemoryError as error:
            print(error)
        del a, filling
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT=f"oom:{4 << 20}",
    )
    (line,) = outcome(shown)
    assert line.startswith("NPU out of memory. Tried to allocate 1.00 KiB.")


def test_a_failing_kernel(in_process: Any) -> None:
    shown = in_process(
        """
        a = ones(3)
        launch.launch("Mul", a, a, a)  # the device fails later than the call
        for _ in range(2):
            try:
                print(values(a))
            except errors.NPUError as error:
                print(type(error).__name__, error)
        del a
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT="kernel:Mul",
    )
    first, second = outcome(shown)
    assert first.startswith("NPUError aclrtSynchronizeStreamWithTimeout failed with 507015 (ACL_ERROR_RT_AICORE_EXCEPTION): ")
    assert "kernel Mul" in first
    assert second == "[1. 1. 1.]"  # told once; the stream goes on


@pytest.mark.parametrize("waiting", ["values(a)", "streams.synchronize()", "mark.synchronize()"])
def test_a_hanging_kernel(in_process: Any, waiting: str) -> None:
    start = time.monotonic()
    shown = in_process(
        f"""
        a = ones(3)
        launch.launch("Mul", a, a, a)
        mark = events.Event()
        mark.record()
        try:
            {waiting}
        except TimeoutError as error:
            print(type(error).__name__, error)
        del a, mark
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT="hang:Mul",
        MINDTORCH_NPU_TIMEOUT_S="0.3",
    )
    (line,) = outcome(shown)
    call = (
        "aclrtSynchronizeEventWithTimeout failed with 507047"
        if "mark" in waiting
        else "aclrtSynchronizeStreamWithTimeout failed with 507046"
    )
    assert line.startswith(f"NPUTimeoutError {call}")
    assert time.monotonic() - start < 20


def test_a_hang_does_not_stop_the_end_of_the_process(in_process: Any) -> None:
    shown = in_process(
        """
        a = ones(3)
        launch.launch("Mul", a, a, a)
        print("done")
    """,
        ASCEND_SIM_FAULT="hang:Mul",
        timeout=200,
    )
    assert (shown.stdout, shown.returncode) == ("done\n", 0), shown.stderr


@pytest.mark.parametrize("calls", [12, 20, 40])
def test_a_lost_device(in_process: Any, calls: int) -> None:
    shown = in_process(
        """
        a = b = None
        try:
            a = ones(3)
            for _ in range(50):
                launch.launch("Mul", a, a, a)
                b = memory.empty((3,), np.dtype("f4"))
                streams.synchronize()
        except errors.NPUDeviceLostError as error:
            print(error.error_code, error.message)
        del a, b
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT=f"device_lost:{calls}",
    )
    (line,) = outcome(shown)
    assert line.startswith("507010 EZ9999")


def test_a_device_that_is_lost_while_it_hangs(in_process: Any) -> None:
    shown = in_process(
        """
        import threading, time
        a = ones(3)
        launch.launch("Mul", a, a, a)
        def more():
            time.sleep(0.2)
            try:
                while True:
                    devices.memory_info(0)
            except errors.NPUDeviceLostError:
                pass
        thread = threading.Thread(target=more)
        thread.start()
        try:
            streams.synchronize()
        except errors.NPUDeviceLostError as error:
            print(error)
        thread.join()
        del a
    """
        + END.replace("\n", "\n        "),
        ASCEND_SIM_FAULT="hang:Mul,device_lost:60",
    )
    (line,) = outcome(shown)
    assert "507010 (ACL_ERROR_RT_LOST_HEARTBEAT)" in line


def test_memory_that_was_freed_is_noticed(in_process: Any) -> None:
    shown = in_process(
        """
        a = ones(3)
        stale = np.lib.stride_tricks.as_strided(a, a.shape, a.strides)
        address = a.__array_interface__["data"][0]
        class Ghost:
            __array_interface__ = {"version": 3, "shape": (3,), "typestr": "<f4", "data": (address, False)}
        ghost = np.asarray(Ghost())
        del a, stale
        allocator.allocator_of(0).empty_cache()
        launch.launch("InplaceMuls", ghost, 2)
        try:
            streams.synchronize()
        except errors.NPUError as error:
            print(error.error_code, error.message)
    """
        + END.replace("\n", "\n        ")
    )
    (line,) = outcome(shown)
    assert line.startswith("507015") and "outside of device memory" in line


def test_no_device(in_process: Any) -> None:
    shown = in_process(
        "print(devices.is_available(), devices.device_count(), driver.why_unavailable())", ASCEND_SIM_DEVICES="0"
    )
    assert shown.stdout.strip() == "False 0 CANN reports no device", shown.stderr
