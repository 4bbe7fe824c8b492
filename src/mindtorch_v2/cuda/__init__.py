"""torch.cuda: never available here, and it says so."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from .._absent_device import absent
from .._lazy_imports import lazy_exports as _lazy_exports

globals().update(absent("CUDA"))
# `amp` stands on the optimizers: scripts that only ask `is_available()` do without.
__getattr__, __dir__ = _lazy_exports(__name__, ("amp", "nvtx", "random"))

has_half = False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether CUDA devices compute in bfloat16: there are none."""
    return False


class _NeedsCuda:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Stream(_NeedsCuda):
    """A stream of a CUDA device."""


class Event(_NeedsCuda):
    """An event of a CUDA device."""


class CUDAGraph(_NeedsCuda):
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


class graph(_NeedsCuda):
    """Captures work of a CUDA device inside a block."""


class device_of(nullcontext[None]):
    """Chooses the CUDA device of a tensor inside a block: tensors elsewhere choose none."""

    def __init__(self, obj: Any) -> None:
        super().__init__()


def get_arch_list() -> list[str]:
    """The architectures this was compiled for."""
    return []


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Statistics of the CUDA allocator, which has allocated nothing."""
    return {}


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
