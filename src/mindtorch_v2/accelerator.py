"""torch.accelerator: whichever accelerator is there: the NPU, or none."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from . import npu
from ._core.device import device as Device
from ._lazy_imports import lazy_exports as _lazy_exports

_NONE = "Cannot access accelerator device when none is available."


def is_available() -> bool:
    """Whether an accelerator can be used."""
    return npu.is_available()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The accelerator's device, without an index, or None without one.

    check_available: torch also names an accelerator that it was built for and that is not there, unless told to check.
    Nothing is built for one here, so there is none that is not there.
    """
    return Device("npu") if npu.is_available() else None


def device_count() -> int:
    """How many accelerators there are."""
    return npu.device_count()


def _need() -> None:
    if not npu.is_available():
        raise RuntimeError(_NONE)


def synchronize(device: Any = None) -> None:
    """Wait for all work of the accelerator."""
    _need()
    npu.synchronize(device)


def current_device_index() -> int:
    """The index of this thread's accelerator; RuntimeError without one."""
    _need()
    return npu.current_device()


def set_device_index(device: Any) -> None:
    """Let this thread use another accelerator: an index, a name or a torch.device."""
    _need()
    npu.set_device(device)


def current_stream(device: Any = None) -> Any:
    """The stream that this thread's work goes to."""
    _need()
    return npu.current_stream(device)


def set_stream(stream: Any) -> None:
    """Send this thread's work to a stream."""
    _need()
    npu.set_stream(stream)


# torch's older names of the same.
current_device_idx = current_device_index
set_device_idx = set_device_index


def get_device_module(device: Any = None) -> Any:
    """The module of a device, as `torch.npu` or `torch.cpu`; without a device that of the accelerator, or else `torch.cpu`."""
    if device is None:
        kind = "npu" if npu.is_available() else "cpu"
    elif isinstance(device, str | Device):
        kind = Device(device).type
    else:
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    try:
        return import_module(f".{kind}", __name__.rpartition(".")[0])
    except ModuleNotFoundError:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.") from None


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
