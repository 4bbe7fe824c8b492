"""Arguments of a profile: activities, scopes, states and the experimental switches, checked as torch checks them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, IntEnum
from typing import Any, NamedTuple

from .._dispatch import observer


class ProfilerActivity(Enum):
    """The device whose work is recorded. NPU is this runtime's name for torch's PrivateUse1."""

    CPU = 0
    XPU = 1
    CUDA = 2
    HPU = 3
    MTIA = 4
    PrivateUse1 = 5
    NPU = PrivateUse1

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


class RecordScope(IntEnum):
    """What an event is, as the number in FunctionEvent.scope."""

    FUNCTION = 0
    BACKWARD_FUNCTION = 1
    TORCHSCRIPT_FUNCTION = 2
    KERNEL_FUNCTION_DTYPE = 3
    CUSTOM_CLASS = 4
    BUILD_FEATURE = 5
    LITE_INTERPRETER = 6
    USER_SCOPE = 7
    STATIC_RUNTIME_OP = 8
    STATIC_RUNTIME_MODEL = 9


class ProfilerState(IntEnum):
    """The kind of profiler that runs; here it is always KINETO."""

    Disabled = 0
    CPU = 1
    CUDA = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5
    KINETO = 6
    KINETO_GPU_FALLBACK = 7
    KINETO_PRIVATEUSE1_FALLBACK = 8
    KINETO_ONDEMAND = 9


class ProfilerConfig(NamedTuple):
    """The options of one recording, as torch's profile.config() returns them."""

    state: ProfilerState
    report_input_shapes: bool
    profile_memory: bool
    with_stack: bool
    with_flops: bool
    with_modules: bool
    experimental_config: _ExperimentalConfig
    trace_id: str


def as_flag(name: str, value: Any) -> bool:
    """A truth value, by torch's rule: None and whatever has __bool__; TypeError for text, lists and the like."""
    if value is not None and not hasattr(type(value), "__bool__"):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return bool(value)


SAMPLED = "sampled"
SAMPLED_STACKS = "sampled_stacks"  # key of the metadata that says how many ops have a stack
STACKS_PER_SECOND = 1000.0
UNRECORDED_STEPS = "unrecorded_steps"  # key of a store's options: nanoseconds of each step before the recording


def as_stack_option(with_stack: Any, stacks_per_second: float | None) -> tuple[bool, float]:
    """Whether Python calls are traced, and how many stacks a second are sampled; TypeError or ValueError for bad values."""
    if not (isinstance(with_stack, str) and with_stack == SAMPLED):
        if stacks_per_second is not None:
            raise ValueError(f"stacks_per_second is for with_stack={SAMPLED!r}")
        return as_flag("with_stack", with_stack), 0.0
    rate = STACKS_PER_SECOND if stacks_per_second is None else stacks_per_second
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        raise TypeError(f"stacks_per_second must be a number, not {type(rate).__name__}")
    if not 0 < rate <= 1e9:
        raise ValueError(f"stacks_per_second must be more than 0 and at most 1e9, got {rate}")
    return False, float(rate)


def as_strict_flag(name: str, value: Any) -> bool:
    """A truth value that must be a bool or an int; TypeError for anything else."""
    if not isinstance(value, int):
        raise TypeError(f"{name} must be a bool, not {type(value).__name__}")
    return bool(value)


def as_timeout(value: float | None) -> float | None:
    """The value if it is None or not negative, else ValueError."""
    if value is not None and value < 0:
        raise ValueError("post_processing_timeout_s must be non-negative")
    return value


class ActiveProfilerType(Enum):
    """The kind of profile that records a thread."""

    NONE = 0
    LEGACY = 1
    KINETO = 2
    NVTX = 3
    ITT = 4
    PRIVATEUSE1 = 5

    def __repr__(self) -> str:
        return f"<{self}: {self.value}>"

    def __int__(self) -> int:
        return int(self.value)


class Switches:
    """What torch._C._profiler switches for the whole process. A recording goes by what they are when it starts."""

    concrete_inputs = True  # whether inputs have the values of arguments that are no tensors
    forward_backward_links = True  # whether traces link ops to their backward nodes


def _set_record_concrete_inputs_enabled_val(val: bool) -> None:
    """Set whether profiles with record_shapes note the values of arguments that are no tensors."""
    Switches.concrete_inputs = as_flag("val", val)


def _set_fwd_bwd_enabled_val(val: bool) -> None:
    """Set whether traces have flows from ops to their backward nodes."""
    Switches.forward_backward_links = as_flag("val", val)


def _set_cuda_sync_enabled_val(val: bool) -> None:
    """Accepts False: waits for a CUDA device cannot be recorded, so True raises NotImplementedError."""
    if as_flag("val", val):
        raise NotImplementedError("_set_cuda_sync_enabled_val(True): there is no CUDA here")


# Switches for hardware or formats that this runtime does not have.
_UNSUPPORTED = (
    "profiler_metrics",
    "profiler_measure_per_kernel",
    "performance_events",
    "enable_cuda_sync_events",
    "disable_external_correlation",
    "record_python_gc_info",
    "custom_profiler_config",
    "adjust_timestamps",
)


class _ExperimentalConfig:
    """Switches that torch calls experimental.

    adjust_profiler_step moves the ends of steps to those of the Python calls that they end in, so that a trace shows no step
    that overlaps a call partially. profile_all_threads records every thread, capture_overload_names puts overload names into
    events, trace_only leaves out events() and averages, expose_kineto_event_metadata fills metadata_json. verbose is
    accepted: with_stack alone fills stacks here. Any other switch raises NotImplementedError when it is turned on.
    """

    def __init__(
        self,
        profiler_metrics: Sequence[str] = (),
        profiler_measure_per_kernel: bool = False,
        verbose: bool = False,
        performance_events: Sequence[str] = (),
        enable_cuda_sync_events: bool = False,
        adjust_profiler_step: bool = False,
        disable_external_correlation: bool = False,
        profile_all_threads: bool = False,
        capture_overload_names: bool = False,
        record_python_gc_info: bool = False,
        expose_kineto_event_metadata: bool = False,
        custom_profiler_config: str = "",
        adjust_timestamps: bool = False,
        trace_only: bool = False,
    ) -> None:
        switches = dict(locals())
        del switches["self"]
        for name, value in switches.items():
            if name in ("profiler_metrics", "performance_events"):
                if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(v, str) for v in value):
                    raise TypeError(f"{name} must be a list of str, not {type(value).__name__}")
            elif name == "custom_profiler_config":
                if not isinstance(value, str):
                    raise TypeError(f"{name} must be a str, not {type(value).__name__}")
            else:
                switches[name] = as_flag(name, value)
            if switches[name] and name in _UNSUPPORTED:
                raise NotImplementedError(f"_ExperimentalConfig({name}={value!r}) is not supported")
        self.__dict__.update(switches)

    verbose: bool
    adjust_profiler_step: bool
    profile_all_threads: bool
    capture_overload_names: bool
    expose_kineto_event_metadata: bool
    custom_profiler_config: str
    trace_only: bool


# The device of each activity but the CPU's.
_DEVICES = {
    ProfilerActivity.CUDA: "cuda",
    ProfilerActivity.XPU: "xpu",
    ProfilerActivity.MTIA: "mtia",
    ProfilerActivity.HPU: "hpu",
    ProfilerActivity.PrivateUse1: "npu",
}


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be recorded: the CPU's, and the NPU's once the program uses one."""
    in_use = "mindtorch_v2._backends.npu.backend" in sys.modules
    return {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1} if in_use else {ProfilerActivity.CPU}


def device_available() -> bool:
    """Whether an NPU can be recorded. Loads the device's code, so call it only where a device is wanted."""
    return observer.device_timing("npu") is not None


def kineto_available() -> bool:
    """Whether profiles have Kineto's form; always true here."""
    return True


def parse_activities(
    activities: Iterable[Any] | None,
) -> tuple[set[ProfilerActivity], dict[ProfilerActivity, set[str]]]:
    """The activities, and the filters of those that are given as {activity: [name, ...]}."""
    if activities is None:
        return supported_activities(), {}
    if isinstance(activities, Iterator):
        raise AssertionError("activities must be a collection, not an iterator that can be read only once")
    chosen: list[ProfilerActivity] = []
    invalid: list[Any] = []
    filters: dict[ProfilerActivity, set[str]] = {}
    for entry in activities:
        for activity in entry if isinstance(entry, dict) else (entry,):
            (chosen if isinstance(activity, ProfilerActivity) else invalid).append(activity)
            if isinstance(entry, dict):
                filters[activity] = set(entry[activity])
    if not chosen:
        raise AssertionError("No valid profiler activities found")
    if invalid:
        raise TypeError(f"Expected ProfilerActivity or dict, got {type(invalid[0])}")
    for activity in chosen:
        if chosen.count(activity) > 1:
            raise ValueError(f"Activity {activity} specified more than once")
    return set(chosen), filters


_RUNTIMES = {
    name: name.lower()
    for name in ("CUDA_RUNTIME", "CUDA_DRIVER", "XPU_RUNTIME", "XPU_DRIVER", "PRIVATEUSE1_RUNTIME", "PRIVATEUSE1_DRIVER")
}
# The names that a filter may have, and the category of each in a trace.
_OF_HOST = {
    "CPU_OP": "cpu_op",
    "USER_ANNOTATION": "user_annotation",
    "PYTHON_FUNCTION": "python_function",
    "CPU_INSTANT_EVENT": "cpu_instant_event",
    "EXTERNAL_CORRELATION": "",
    **_RUNTIMES,
}
_OF_DEVICE = {
    "CONCURRENT_KERNEL": "kernel",
    "GPU_MEMCPY": "gpu_memcpy",
    "GPU_MEMSET": "gpu_memset",
    "GPU_USER_ANNOTATION": "gpu_user_annotation",
    "OVERHEAD": "",
    **_RUNTIMES,
}


def filtered_out(filters: Mapping[ProfilerActivity, Iterable[str]]) -> list[str]:
    """The categories that filters leave out of a trace; RuntimeError for a name that its activity does not have."""
    members_of_all: set[str] = set()
    chosen: set[str] = set()
    for activity, names in filters.items():
        members = _OF_HOST if activity is ProfilerActivity.CPU else _OF_DEVICE
        for name in names:
            if name not in members:
                raise RuntimeError(f"Unknown or non-member activity type name: '{name}'")
            chosen.add(members[name])
        members_of_all.update(members.values())
    return sorted(members_of_all - chosen - {""})


def device_of(activities: Iterable[ProfilerActivity]) -> str | None:
    """The device of the first activity that is not the CPU's, None if there is none."""
    return next((device for activity, device in _DEVICES.items() if activity in activities), None)


# What `mtprof run` and `%%profile` call what can be recorded: option -> argument of profile().
RECORD_OPTIONS = {
    "stack": "with_stack",
    "memory": "profile_memory",
    "shapes": "record_shapes",
    "modules": "with_modules",
    "flops": "with_flops",
}
