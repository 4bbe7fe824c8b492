"""FunctionEvent and the small classes that torch has beside it."""

from __future__ import annotations

import bisect
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from .._io.terminal import shown
from ..exporters.table import format_time
from ..store.store import MEMORY_EVENT_NAME
from .event_metadata import EventMetadata, read_metadata
from .row_objects import LazyAttributes, detach_row, own_attributes

OUT_OF_MEMORY_EVENT_NAME = "[OutOfMemory]"


class DeviceType(StrEnum):
    """Where an event ran: equal to its name as text, and int() gives torch's number.

    torch's PrivateUse1 is the NPU and equals that name; both names look it up.
    """

    CPU = "CPU"
    CUDA = "CUDA"
    MKLDNN = "MKLDNN"
    OPENGL = "OPENGL"
    OPENCL = "OPENCL"
    IDEEP = "IDEEP"
    HIP = "HIP"
    FPGA = "FPGA"
    MAIA = "MAIA"
    XLA = "XLA"
    Vulkan = "Vulkan"
    Metal = "Metal"
    XPU = "XPU"
    MPS = "MPS"
    Meta = "Meta"
    HPU = "HPU"
    VE = "VE"
    Lazy = "Lazy"
    IPU = "IPU"
    MTIA = "MTIA"
    PrivateUse1 = "NPU"
    NPU = "NPU"

    @classmethod
    def _missing_(cls, value: object) -> DeviceType | None:
        if value == "PrivateUse1":
            return cls.PrivateUse1
        members = list(cls)
        return members[value] if isinstance(value, int) and 0 <= value < len(members) else None

    def __int__(self) -> int:
        return list(type(self)).index(self)

    __index__ = __int__

    def __repr__(self) -> str:
        return f"<DeviceType.{self.name}: {int(self)}>"

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)


class Kernel(NamedTuple):
    """A device kernel that an op launched; duration in microseconds."""

    name: str
    device: int
    duration: float


class Interval:
    """A time span in microseconds."""

    __slots__ = ("end", "start")

    def __init__(self, start: float, end: float) -> None:
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """Microseconds from start to end."""
        return self.end - self.start


class MemRecordsAcc:
    """Looks up memory records by time; each is a pair whose first item has start_ns()."""

    def __init__(self, mem_records: Sequence[tuple[Any, Any]]) -> None:
        self._mem_records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._start_nses = [record[0].start_ns() for record in self._mem_records]

    def in_interval(self, start_ns: int, end_ns: int) -> Iterator[tuple[Any, Any]]:
        """The records from start_ns to end_ns, both included."""
        first = bisect.bisect_left(self._start_nses, start_ns)
        last = bisect.bisect_right(self._start_nses, end_ns)
        yield from self._mem_records[first:last]


class StringTable(defaultdict[str, str]):
    """torch's cache of demangled names. No name here is mangled, so each maps to itself."""

    def __missing__(self, key: str) -> str:
        self[key] = key
        return key


def _time_text(attribute: str) -> property:
    return property(lambda self: format_time(getattr(self, attribute)), doc=f"{attribute} as text with a unit.")


def _alias(attribute: str) -> property:
    return property(lambda self: getattr(self, attribute), doc=f"The same as {attribute}.")


def _deprecated(old: str, new: str, message: str = "`{old}` is deprecated. Use `{new}` instead.") -> property:
    def read(self: Any) -> Any:
        warnings.warn(message.format(old=old, new=new), FutureWarning, stacklevel=2)
        return getattr(self, new)

    return property(read, doc=f"Deprecated name of {new}.")


class FormattedTimesMixin:
    """Averages per call, times as text, and aliases of the device attributes."""

    count: int
    cpu_time_total: float
    device_time_total: float

    cpu_time_str = _time_text("cpu_time")
    device_time_str = _time_text("device_time")
    cpu_time_total_str = _time_text("cpu_time_total")
    device_time_total_str = _time_text("device_time_total")
    self_cpu_time_total_str = _time_text("self_cpu_time_total")
    self_device_time_total_str = _time_text("self_device_time_total")

    cuda_time = _deprecated("cuda_time", "device_time", "`{old}` is deprecated, please use `{new}` instead.")
    npu_time = _alias("device_time")
    npu_time_total = _alias("device_time_total")
    self_npu_time_total = _alias("self_device_time_total")
    npu_memory_usage = _alias("device_memory_usage")
    self_npu_memory_usage = _alias("self_device_memory_usage")

    @property
    def cpu_time(self) -> float:
        """CPU time per call, children included."""
        return 0.0 if self.count == 0 else 1.0 * self.cpu_time_total / self.count

    @property
    def device_time(self) -> float:
        """Device time per call, children included."""
        return 0.0 if self.count == 0 else 1.0 * self.device_time_total / self.count


class FunctionEvent(LazyAttributes, FormattedTimesMixin):
    """One event: torch's attributes, and event["name"], ["kind"], ["step"], ["start_ns"] and the like."""

    __dict__ = LazyAttributes._all_attributes

    id: int
    external_id: int
    name: str
    trace_name: str | None
    overload_name: str | None
    activity_type: str | None
    scope: int
    time_range: Interval
    count: int
    # where it ran
    thread: int
    node_id: int
    device_type: DeviceType
    device_index: int
    device_resource_id: int
    use_device: str | None
    is_async: bool
    is_remote: bool
    is_legacy: bool
    is_user_annotation: bool
    is_python_function: bool
    # callers and callees
    cpu_parent: FunctionEvent | None
    cpu_children: list[FunctionEvent]
    kernels: list[Kernel]
    stack: list[str] | None
    python_id: int
    python_parent_id: int
    python_module_id: int
    # the forward op of a backward node, and the link between the two
    sequence_nr: int
    fwd_thread: int | None
    flow_id: int | None
    flow_type: int | None
    flow_start: bool | None
    linked_correlation_id: int
    # inputs
    input_shapes: Any
    input_dtypes: Any
    concrete_inputs: Any
    kwinputs: Any
    structured_input_shapes: Any
    structured_input_strides: Any
    # what it cost
    cpu_memory_usage: int
    device_memory_usage: int
    flops: int | None
    self_cpu_percent: float
    total_cpu_percent: float
    total_device_percent: float
    event_metadata: EventMetadata | None
    _metadata_json: str | None

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        overload_name: str | None = None,
        fwd_thread: int | None = None,
        input_shapes: Any = None,
        stack: list[str] | None = None,
        scope: int = 0,
        use_device: str | None = None,
        cpu_memory_usage: int = 0,
        device_memory_usage: int = 0,
        is_async: bool = False,
        is_remote: bool = False,
        sequence_nr: int = -1,
        node_id: int = -1,
        device_type: DeviceType = DeviceType.CPU,
        device_index: int = 0,
        device_resource_id: int | None = None,
        is_legacy: bool = False,
        flops: int | None = None,
        trace_name: str | None = None,
        concrete_inputs: Any = None,
        kwinputs: Any = None,
        is_user_annotation: bool = False,
        is_python_function: bool = False,
        activity_type: str | None = None,
        metadata_json: str | None = None,
        flow_id: int | None = None,
        flow_type: int | None = None,
        flow_start: bool | None = None,
        external_id: int = 0,
        linked_correlation_id: int = 0,
        extra_meta: dict[str, str] | None = None,
        structured_input_shapes: Any = None,
        structured_input_strides: Any = None,
        input_dtypes: Any = None,
        python_id: int = -1,
        python_parent_id: int = -1,
        python_module_id: int = -1,
    ) -> None:
        attributes = dict(locals())
        for not_kept in ("self", "start_us", "end_us", "metadata_json", "extra_meta"):
            del attributes[not_kept]
        detach_row(self)
        own_attributes(self).update(
            attributes,
            time_range=Interval(start_us, end_us),
            kernels=[],
            count=1,
            cpu_children=[],
            cpu_parent=None,
            device_resource_id=thread if device_resource_id is None else device_resource_id,
            self_cpu_percent=-1,
            total_cpu_percent=-1,
            total_device_percent=-1,
            _metadata_json=metadata_json,
            event_metadata=read_metadata(extra_meta),
        )

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Add a device kernel that this op launched."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        self._part()
        self.kernels.append(Kernel(name, device, duration))

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Add a direct child, whose parent is set separately."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        if not isinstance(child, FunctionEvent):
            raise AssertionError("Expected child to be a FunctionEvent")
        if child.device_type != DeviceType.CPU:
            raise AssertionError("Expected child device_type to be CPU")
        self._part()
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Set the direct parent."""
        if self.device_type != DeviceType.CPU:
            raise AssertionError("Expected device_type to be CPU")
        if not isinstance(parent, FunctionEvent):
            raise AssertionError("Expected parent to be a FunctionEvent")
        if parent.device_type != DeviceType.CPU:
            raise AssertionError("Expected parent device_type to be CPU")
        self.cpu_parent = parent

    # Note: an asynchronous event does not occupy its thread, so it has no self time or memory.

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds on the CPU, children included."""
        if self._live is not None:
            rows, row = self._live
            return rows.total_us(row)
        return self.time_range.elapsed_us() if self.device_type == DeviceType.CPU else 0

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds on the CPU outside of children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        if self._live is not None:
            rows, row = self._live
            return rows.self_us(row)
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def device_time_total(self) -> float:  # type: ignore[override]
        """Microseconds on the device, children included."""
        if self.is_async or not self.use_device:
            return 0
        if self._live is not None:
            rows, row = self._live
            return rows.device_total_us(row)
        if self.device_type != DeviceType.CPU:
            return self.time_range.elapsed_us()
        kernels = sum(kernel.duration for kernel in self.kernels)
        if self.is_legacy:  # legacy kernels already count those of the children
            return kernels
        return kernels + sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_device_time_total(self) -> float:
        """Microseconds on the device outside of children."""
        if self.is_async or not self.use_device:
            return 0
        if self._live is not None:
            rows, row = self._live
            return rows.device_self_us(row)
        if self.device_type != DeviceType.CPU:
            return self.device_time_total
        return self.device_time_total - sum(child.device_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes of CPU memory allocated minus freed outside of children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    @property
    def self_device_memory_usage(self) -> int:
        """Bytes of device memory allocated minus freed outside of children."""
        if self.is_async or self.device_type != DeviceType.CPU:
            return 0
        return self.device_memory_usage - sum(child.device_memory_usage for child in self.cpu_children)

    @property
    def metadata_json(self) -> str | None:
        """Further fields of the trace, as JSON text."""
        return self._metadata_json

    @property
    def key(self) -> str:
        """The name that averages are grouped by."""
        return self.name

    cuda_time_total = _deprecated("cuda_time_total", "device_time_total")
    self_cuda_time_total = _deprecated("self_cuda_time_total", "self_device_time_total")
    self_cuda_memory_usage = _deprecated("self_cuda_memory_usage", "self_device_memory_usage")

    def __getitem__(self, key: str) -> Any:
        if key in ("name", "device_type"):
            return getattr(self, key)
        source = self._live or self._origin
        if source is not None:
            return source[0].item(source[1], key)
        if key not in _ITEMS:
            raise KeyError(key)
        return _ITEMS[key](self)

    def __repr__(self) -> str:
        device, name = shown(str(self.use_device)), shown(str(self.name))
        return (
            f"<FunctionEvent id={self.id} name={name} overload_name={shown(str(self.overload_name))} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} {device}_time={self.device_time_str} "
            f"name={name} thread={self.thread} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage} "
            f"is_async={self.is_async} is_remote={self.is_remote} seq_nr={self.sequence_nr} "
            f"is_legacy={self.is_legacy}>"
        )


def _kind(event: FunctionEvent) -> str:
    if event.is_python_function:
        return "module" if event.name.startswith("nn.Module: ") else "python"
    if event.name == MEMORY_EVENT_NAME:
        return "memory"
    if event.name.startswith("ProfilerStep"):
        return "step"
    if event.name.startswith("autograd::engine::"):
        return "engine"
    return "scope" if event.is_user_annotation else "backward" if event.scope == 1 else "op"


# event[...] of an event that a caller constructed
_ITEMS: dict[str, Callable[[FunctionEvent], Any]] = {
    "kind": _kind,
    "step": lambda event: 0,
    "start_ns": lambda event: round(event.time_range.start * 1000),
    "end_ns": lambda event: round(event.time_range.end * 1000),
    "duration_ns": lambda event: round(event.time_range.elapsed_us() * 1000),
    "thread_id": lambda event: event.thread,
    "module": lambda event: None,
}
