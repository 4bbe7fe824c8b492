"""The NPU as a place where ops run. Importing this needs a driver; the dispatcher does it when a device is first asked for."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..._core.device import set_accelerator
from ..._core.tensor import Tensor
from ..._dispatch import backends, observer
from ..._dispatch.dispatcher import prepare
from ..._dispatch.registry import OpSpec
from . import events, fallback, memory, streams, tensors
from .devices import current_device
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


backends.fallbacks["npu"] = run
backends.loaded["npu"] = backends.Backend(
    current_device, tensors.upload, tensors.download, memory.pinned_copy, memory.is_pinned
)
observer.device_timings["npu"] = observer.DeviceTiming(
    # Only the host waits for them: marks that streams can wait for are few, and recording one more blocks.
    partial(events.Event, enable_timing=True, waitable=False),
    streams.synchronize,
    events.host_offset_ns,
)
set_accelerator("npu")
