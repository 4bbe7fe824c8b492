"""torch.npu: Ascend devices. Available only where a driver library was found, loaded, and reports a device.

Nothing of the binding is imported before one of these functions needs it.
"""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.cpython import without_signals_at_entry
from .._core.device import device as _Device
from .._core.restoring import Actions, carry_out, restoring
from .._core.rng import default_generator as _generator

if TYPE_CHECKING:
    from .._backends.errors import OutOfMemoryError
    from .._backends.npu.events import Event
    from .._backends.npu.streams import Stream
    from . import profiler
    from ._marks import mstx

__all__ = [
    "Event", "OutOfMemoryError", "Stream", "current_device", "current_stream", "default_stream", "device", "device_count",
    "empty_cache", "fallbacks", "get_device_name", "get_device_properties", "init", "is_available", "is_initialized",
    "manual_seed", "manual_seed_all", "max_memory_allocated", "max_memory_reserved", "mem_get_info", "memory_allocated",
    "memory_reserved", "mstx", "profiler", "reset_peak_memory_stats", "seed", "set_device", "set_stream", "stream",
    "synchronize",
]  # fmt: skip

_CLASSES = {"Event": "npu.events", "Stream": "npu.streams", "OutOfMemoryError": "errors"}


def __getattr__(name: str) -> Any:
    if name == "profiler":
        return import_module(".profiler", __name__)  # which the import system keeps here
    if name == "mstx":
        value = globals()[name] = import_module("._marks", __name__).mstx
        return value
    if name not in _CLASSES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(_part(_CLASSES[name]), name)


def _part(name: str) -> Any:
    return import_module(f".._backends.{name}", __name__)


def _need() -> None:
    """Load the backend, which raises AssertionError where there is no device."""
    _part("npu.backend")


# ---------------------------------------------------------------- devices


def is_available() -> bool:
    """Whether CANN was found, could be loaded and reports a device."""
    is_there: bool = _part("npu.devices").is_available()
    return is_there


def device_count() -> int:
    """How many devices there are, 0 without CANN."""
    count: int = _part("npu.devices").device_count()
    return count


def init() -> None:
    """Start the backend now rather than at its first use."""
    _need()


def is_initialized() -> bool:
    """Whether the backend has started."""
    return "mindtorch_v2._backends.npu.backend" in sys.modules


def current_device() -> int:
    """The index of this thread's device."""
    _need()
    index: int = _part("npu.devices").current_device()
    return index


def _index(device: Any) -> int:
    """The index that an argument means: None and "npu" are the current device."""
    _need()
    if device is None:
        return current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    wanted = _Device(device)
    if wanted.type != "npu":
        raise ValueError(f"Expected a npu device, but got: {wanted}")
    return current_device() if wanted.index is None else wanted.index


def set_device(device: Any) -> None:
    """Let this thread's new tensors and ops use a device, by index, name or torch.device."""
    _part("npu.devices").set_device(_index(device))


class device:
    """`with torch.npu.device(1):` makes a device this thread's for a while."""

    def __init__(self, device: Any) -> None:
        self.idx = _index(device)
        self.prev_idx = -1

    def __enter__(self) -> device:
        self.prev_idx = current_device()
        try:
            set_device(self.idx)
        except BaseException:
            carry_out([partial(set_device, self.prev_idx)])
            raise
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        carry_out([lambda: set_device(self.prev_idx)])


class DeviceProperties(NamedTuple):
    """What is known of a device."""

    name: str
    total_memory: int


def get_device_name(device: Any = None) -> str:
    """What the device is called, such as "Ascend910B3"."""
    index = _index(device)
    name: str = _part("npu.devices").device_name(index)
    return name


def get_device_properties(device: Any = None) -> DeviceProperties:
    """Name and memory of a device."""
    return DeviceProperties(get_device_name(device), mem_get_info(device)[1])


def synchronize(device: Any = None) -> None:
    """Wait for all work of a device."""
    index = _index(device)
    _part("npu.streams").synchronize(index)


# ---------------------------------------------------------------- streams


def current_stream(device: Any = None) -> Stream:
    """The stream that this thread's work on a device goes to."""
    index = _index(device)
    stream: Stream = _part("npu.streams").current_stream(index)
    return stream


def default_stream(device: Any = None) -> Stream:
    """The stream that work goes to unless another was chosen."""
    index = _index(device)
    stream: Stream = _part("npu.streams").default_stream(index)
    return stream


def set_stream(stream: Stream) -> None:
    """Send this thread's work on the stream's device to it."""
    _part("npu.streams").set_current_stream(stream)


@restoring
def stream(undo: Actions, stream: Stream | None) -> None:
    """`with torch.npu.stream(s):` sends work to a stream for a while; None changes nothing."""
    if stream is not None:
        undo.append(partial(set_stream, current_stream(stream.device_index)))
        set_stream(stream)


# ---------------------------------------------------------------- memory


def _statistics(device: Any) -> Any:
    index = _index(device)
    return _part("npu.allocator").allocator_of(index).statistics()


def memory_allocated(device: Any = None) -> int:
    """Bytes that live tensors take on a device; memory_reserved() counts what the allocator keeps for later, too."""
    return int(_statistics(device).allocated) if is_initialized() else 0


def max_memory_allocated(device: Any = None) -> int:
    """The most bytes that tensors took at a time."""
    return int(_statistics(device).peak_allocated) if is_initialized() else 0


def memory_reserved(device: Any = None) -> int:
    """Bytes taken from the device, those kept for later included."""
    return int(_statistics(device).reserved) if is_initialized() else 0


def max_memory_reserved(device: Any = None) -> int:
    """The most bytes taken from the device at a time."""
    return int(_statistics(device).peak_reserved) if is_initialized() else 0


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin to count the peaks anew."""
    if is_initialized():
        _statistics(device).reset_peaks()


reset_max_memory_allocated = reset_peak_memory_stats


def empty_cache() -> None:
    """Give memory that no tensor uses back to the device."""
    if is_initialized():
        for index in range(device_count()):
            _part("npu.allocator").allocator_of(index).empty_cache()


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a device, as CANN counts them."""
    index = _index(device)
    unused, total = _part("npu.devices").memory_info(index)
    return unused, total


# ---------------------------------------------------------------- random numbers, and what ran elsewhere


def manual_seed(seed: int) -> None:
    """Seed the numbers that tensors on the device are filled with: they are made on the host, by its generator."""
    _generator.manual_seed(seed)


manual_seed_all = manual_seed


def seed() -> None:
    """Seed with a number from the system's entropy."""
    _generator.seed()


seed_all = seed


def fallbacks() -> dict[str, int]:
    """The ops that have no NPU kernel and ran on the CPU so far, with how often."""
    return dict(_part("npu.fallback").counts) if is_initialized() else {}
