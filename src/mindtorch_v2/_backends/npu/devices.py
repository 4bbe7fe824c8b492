"""Which Ascend device a thread works on. CANN keeps that per thread, so every thread sets it before its first call."""

from __future__ import annotations

import os
import threading

from .driver import driver, why_unavailable
from .signatures import MEMORY_HBM


class _Thread(threading.local):
    """`current` is the device the program chose in this thread, `bound` the one CANN was told of last."""

    current = 0
    bound = -1


_thread = _Thread()


def is_available() -> bool:
    """Whether CANN was found, could be loaded and reports a device."""
    return why_unavailable() is None


def device_count() -> int:
    """How many devices CANN reports; 0 without CANN."""
    return driver().call("aclrtGetDeviceCount") if why_unavailable() is None else 0


def current_device() -> int:
    """The index of this thread's device."""
    return _thread.current


def set_device(index: int) -> None:
    """Choose the device that this thread's new tensors and work go to; other threads keep theirs."""
    count = device_count()
    if not 0 <= index < count:
        raise RuntimeError(f"Invalid device id {index}: there are {count} NPU devices")
    activate(index)
    _thread.current = index


def activate(index: int) -> None:
    """Have CANN work on a device in this thread, without changing the program's choice."""
    if _thread.bound != index:
        driver().call("aclrtSetDevice", index)
        _thread.bound = index


def device_name(index: int) -> str:
    """What the device is called, such as "Ascend910B3"."""
    activate(index)
    return driver().call("aclrtGetSocName")


def memory_info(index: int) -> tuple[int, int]:
    """Free and total bytes of a device, as CANN counts them."""
    activate(index)
    unused, total = driver().call("aclrtGetMemInfo", MEMORY_HBM)
    return unused, total


def timeout_ms() -> int:
    """How long a wait for the device may take: MINDTORCH_NPU_TIMEOUT_S seconds (600; 0: for ever), in milliseconds."""
    seconds = float(os.environ.get("MINDTORCH_NPU_TIMEOUT_S", "600"))
    return int(seconds * 1000) if seconds > 0 else -1
