"""DLPack: memory shared with other libraries without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.keys import AUTOGRAD, BACKENDS
from .._core.tensor import Tensor, make_external

_CPU = (1, 0)


class _Capsule:
    """A bare capsule as an object that hands it out, which is what NumPy takes."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU


def _dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A capsule on this tensor's memory, to be consumed once."""
    if self._keys & AUTOGRAD:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._keys & BACKENDS:
        raise BufferError(f"Can't export tensors on the {self.device} device")
    return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The device type and index that DLPack knows the CPU by."""
    return _CPU


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an object with `__dlpack__`, or of a capsule."""
    if isinstance(ext_tensor, np.ndarray):
        array = ext_tensor
    elif hasattr(ext_tensor, "__dlpack__"):
        array = np.from_dlpack(ext_tensor)
    elif type(ext_tensor).__name__ == "PyCapsule":
        array = np.from_dlpack(_Capsule(ext_tensor))  # type: ignore[arg-type]
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
            "you might have already constructed a tensor from it once."
        )
    made: Any = make_external(array.copy() if copy else array)
    return made if device is None else made.to(device)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule on a tensor's memory."""
    return _dlpack(tensor)


METHODS = {"__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device}
FUNCTIONS = {"from_dlpack": from_dlpack, "to_dlpack": to_dlpack}
