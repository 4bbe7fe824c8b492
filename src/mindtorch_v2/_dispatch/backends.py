"""Devices whose code is loaded at their first use: importing the package loads none of it."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.device import device as Device

if TYPE_CHECKING:
    from .registry import OpSpec


class Backend(NamedTuple):
    """The functions that a device's code offers beside kernels.

    `current_index` is the calling thread's device among several. `upload` and `download` move flat arrays between the host
    and a device, by index. `pin` copies a host array to page-locked memory, and `is_pinned` tells whether one is there.
    """

    current_index: Callable[[], int]
    upload: Callable[[np.ndarray, int], np.ndarray]
    download: Callable[[np.ndarray], np.ndarray]
    pin: Callable[[np.ndarray], np.ndarray]
    is_pinned: Callable[[np.ndarray], bool]


# device type -> module that registers its kernels when imported, and raises AssertionError where there is no such device
MODULES = {"npu": "mindtorch_v2._backends.npu.backend"}

# device type -> its functions; the module that is loaded fills this in
loaded: dict[str, Backend] = {}

# device type or layout ("sparse") -> what runs an op that has no kernel there: (op, arguments)
fallbacks: dict[str, Callable[[OpSpec, tuple[Any, ...]], Any]] = {}


def load(device_type: str) -> None:
    """Register the kernels of a device; does nothing for a device without code of its own, and for the second time."""
    if device_type not in loaded and device_type in MODULES:  # the first, since it is asked for each op of a device
        import_module(MODULES[device_type])


def available(device_type: str) -> bool:
    """Whether there is such a device. Loads its code, so call it only where one is wanted."""
    try:
        load(device_type)
    except AssertionError:
        return False
    return device_type in loaded


def resolved(device: Device) -> Device:
    """The device with its index: "npu" is the calling thread's current one."""
    if device.index is not None or device.type not in MODULES:
        return device
    load(device.type)
    return Device(device.type, loaded[device.type].current_index())
