"""torch.cuda: never available here, and it says so."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from .._absent_device import absent, refuses
from .._lazy_imports import lazy_exports as _lazy_exports

# Those of CUDA alone.
_REFUSED = [
    "caching_allocator_alloc",
    "can_device_access_peer",
    "cudart",
    "current_blas_handle",
    "current_solver_handle",
    "get_per_process_memory_fraction",
    "get_stream_from_external",
    "get_sync_debug_mode",
    "set_per_process_memory_fraction",
    "set_sync_debug_mode",
]
# Functions that fail in PyTorch without CUDA before they find out that there is none.
_NO_NVML = "nvidia-ml-py does not seem to be installed or it can't be imported."
_OTHER_ERRORS: dict[str, tuple[type[Exception], str]] = {
    **dict.fromkeys(
        ("clock_rate", "device_memory_used", "memory_usage", "power_draw", "temperature", "utilization"),
        (ModuleNotFoundError, _NO_NVML),
    ),
    "caching_allocator_delete": (AttributeError, "module 'torch._C' has no attribute '_cuda_cudaCachingAllocator_raw_delete'"),
    "change_current_allocator": (AttributeError, "module 'torch._C' has no attribute '_cuda_changeCurrentAllocator'"),
    "check_error": (AttributeError, "'NoneType' object has no attribute 'cudaError'"),
    "get_allocator_backend": (AttributeError, "module 'torch._C' has no attribute '_cuda_getAllocatorBackend'"),
    "graph_pool_handle": (RuntimeError, "Tried to instantiate dummy base class _graph_pool_handle"),
    "make_graphed_callables": (RuntimeError, "Tried to instantiate dummy base class CUDAGraph"),
    "memory_snapshot": (AttributeError, "module 'torch._C' has no attribute '_cuda_memorySnapshot'"),
    "memory_summary": (KeyError, "allocated_bytes.all.current"),
}
globals().update({name: refuses(name, *error) for name, error in _OTHER_ERRORS.items()})
globals().update(absent("CUDA", _REFUSED))
# `amp` stands on the optimizers: scripts that only ask `is_available()` do without.
__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("amp", "comm", "gds", "graphs", "jiterator", "memory", "nccl", "nvtx", "profiler", "random", "streams"),
    {".._backends.errors": ("OutOfMemoryError",)},
)

has_half = has_magma = False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether CUDA devices compute in bfloat16: there are none."""
    return False


class _NeedsCuda:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Stream(_NeedsCuda):
    """A stream of a CUDA device."""


class _DummyBase:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"Tried to instantiate dummy base class {type(self).__name__}")


class Event(_DummyBase):
    """An event of a CUDA device."""


class CUDAGraph(_DummyBase):
    """A captured graph of a CUDA device."""


class device(_NeedsCuda):
    """Chooses a CUDA device inside a block."""


class StreamContext:
    """Works on a stream inside a block; None, the only one there can be, changes nothing."""

    def __init__(self, stream: Stream | None) -> None:
        if stream is not None:
            raise TypeError(f"StreamContext(): expected None, since no CUDA stream exists, got {type(stream).__name__}")
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """Work on a stream inside a block; None, the only one there can be, changes nothing."""
    return StreamContext(stream)


class ExternalStream(Stream):
    """A stream of a CUDA device that another library has made."""


class MemPool(_DummyBase):
    """Memory of a CUDA device apart from the rest."""


class CUDAPluggableAllocator(_NeedsCuda):
    """An allocator of a CUDA device's memory from a shared library."""


class CudaError(RuntimeError):
    """A call of the CUDA runtime failed, for `except`: none is ever made."""


class DeferredCudaCallError(Exception):
    """A call that waited for the CUDA runtime to start failed, for `except`."""


class graph:
    """Captures work of a CUDA device inside a block, on a stream of its own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Stream()


class device_of(nullcontext[None]):
    """Chooses the CUDA device of a tensor inside a block: tensors elsewhere choose none."""

    def __init__(self, obj: Any) -> None:
        super().__init__()


def get_arch_list() -> list[str]:
    """The architectures this was compiled for."""
    return []


def get_gencode_flags() -> str:
    """The compiler's options for the architectures this was compiled for."""
    return ""


def is_tf32_supported() -> bool:
    """Whether CUDA devices compute in TF32: there are none."""
    return False


def memory_stats(device: Any = None) -> OrderedDict[str, Any]:
    """Statistics of the CUDA allocator, which has allocated nothing."""
    return OrderedDict()


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Statistics of the CUDA allocator, which has allocated nothing."""
    return {}


# Of memory on the host, for transfers.
host_memory_stats, host_memory_stats_as_nested_dict = memory_stats, memory_stats_as_nested_dict


def list_gpu_processes(device: Any = None) -> str:
    """The processes on a CUDA device as text."""
    return "pynvml module not found, please install nvidia-ml-py"


def set_stream(stream: Stream | None) -> None:
    """Choose a stream; None, the only one there can be, changes nothing."""
    if stream is not None:
        raise AttributeError(f"{type(stream).__name__!r} object has no attribute 'stream_id'")


@contextmanager
def use_mem_pool(pool: MemPool, device: Any = None) -> Iterator[None]:
    """Take memory from a pool inside a block."""
    raise AssertionError("Torch not compiled with CUDA enabled")
    yield


class _NoTensorType(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA enabled.")


def _tensor_type(name: str) -> type:
    """`torch.cuda.FloatTensor`: for isinstance, of which no tensor is one."""
    return _NoTensorType(name, (), {"__module__": __name__, "is_cuda": True, "is_xpu": False, "is_sparse": False})


class _NoStorage:
    """`torch.cuda.FloatStorage`: for isinstance, of which no storage is one."""

    is_cuda, is_sparse = True, False

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        raise AssertionError("Torch not compiled with CUDA enabled")


def _unavailable(name: str) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(f"{name}: Not available for CUDA storage")

    call.__name__ = name
    return staticmethod(call)


for _name in ("from_buffer", "_new_with_weak_ptr", "_new_shared_filename"):
    setattr(_NoStorage, _name, _unavailable(_name))

_TYPES = ("BFloat16", "Bool", "Byte", "Char", "Double", "Float", "Half", "Int", "Long", "Short")
_tensor_types = {f"{name}Tensor": _tensor_type(f"{name}Tensor") for name in _TYPES}
_storage_types = {
    f"{name}Storage": type(f"{name}Storage", (_NoStorage,), {"__module__": __name__})
    for name in (*_TYPES, "ComplexDouble", "ComplexFloat")
}
globals().update({**_tensor_types, **_storage_types})
