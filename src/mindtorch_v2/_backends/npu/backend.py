"""The NPU as a place where ops run. Importing this needs a driver; the dispatcher does it when a device is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..._core.device import set_accelerator
from ..._core.tensor import Tensor
from ..._dispatch import backends, observer
from ..._dispatch.dispatcher import prepare
from ..._dispatch.registry import OpSpec
from . import events, fallback, memory, streams, tensors
from .devices import current_device, device_name, memory_info
from .driver import why_unavailable
from .placement import home

_reason = why_unavailable()
if _reason is not None:
    raise AssertionError(f"Torch not compiled with NPU enabled: {_reason}")

from . import kernels  # noqa: E402,F401  registers them


def run(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op that has no kernel here on NPU tensors: as a view, which moves no data, or on the CPU."""
    if not op.schema.is_view:
        return fallback.run_on_cpu(op, args, home(op, args))
    source = next(value for value in args if isinstance(value, Tensor))
    views = op.kernel(*prepare(op, args))
    if isinstance(views, list | tuple):
        return tuple(tensors.view(array, source) for array in views)
    return tensors.view(views, source)


def _host_offset_ns(clock: Callable[[], int], index: int, patient: bool) -> int | None:
    return events.host_offset_ns(clock, streams.clock_stream(index), patient)


def _properties(index: int) -> dict[str, Any]:
    return {"id": index, "name": device_name(index), "totalGlobalMem": memory_info(index)[1]}


def _activities() -> observer.DeviceActivities:
    from . import mspti  # here, because a process that is not profiled must not load its library

    return mspti.Activities()


backends.fallbacks["npu"] = run
observer.device_timings["npu"] = observer.DeviceTiming(
    # Only the host waits for them: marks that streams can wait for are few, and recording one more blocks.
    partial(events.Event, enable_timing=True, waitable=False),
    streams.synchronize,
    _host_offset_ns,
    streams.used_devices,
    _properties,
    _activities,
)
set_accelerator("npu")
backends.loaded["npu"] = backends.Backend(  # last, since it says that all is there
    current_device, tensors.upload, tensors.download, memory.pinned_copy, memory.is_pinned
)
