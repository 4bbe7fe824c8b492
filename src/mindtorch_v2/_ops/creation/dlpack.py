"""DLPack: memory shared with other libraries without a copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.cpython import is_capsule_named
from ..._core.keys import AUTOGRAD, BACKENDS, CONJUGATED, LAZY
from ..._core.tensor import Tensor, make_external
from ..._dispatch.errors import need_tensor

_CPU = (1, 0)


# Capsules of this name do not say whether their memory may be written to; later ones do.
_UNVERSIONED = b"dltensor"


class _Exporter:
    """Hands a capsule to NumPy, taken as it is or requested from another library, and notes its name."""

    def __init__(self, source: Any) -> None:
        self._source = source
        self.unversioned = False

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._source.__dlpack__(**options) if hasattr(self._source, "__dlpack__") else self._source
        self.unversioned = is_capsule_named(capsule, _UNVERSIONED)
        return capsule

    def __dlpack_device__(self) -> Any:
        return self._source.__dlpack_device__() if hasattr(self._source, "__dlpack_device__") else _CPU


class _Writable:
    """The memory of an array that NumPy takes for read-only."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory
        interface = array.__array_interface__
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


def _array_of(source: Any) -> np.ndarray:
    """An array on the memory of a capsule, or of an object that makes one."""
    exporter = _Exporter(source)
    array: np.ndarray = np.from_dlpack(exporter)
    if exporter.unversioned and not array.flags.writeable:
        # An unversioned capsule does not say whether it is read-only: NumPy refuses to write, torch writes.
        return np.asarray(_Writable(array))
    return array


def _dlpack(
    self: Tensor, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    """A capsule on this tensor's memory, to be consumed once."""
    if self._keys & AUTOGRAD:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self._keys & LAZY:
        raise BufferError(f"Can't export tensors with the {'conjugate' if self._keys & CONJUGATED else 'negative'} bit set")
    if self._keys & BACKENDS:
        raise BufferError(f"Can't export tensors on the {self.device} device")
    return self._array.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    """The device type and index that DLPack knows the CPU by."""
    return _CPU


def exports(obj: Any) -> bool:
    """Whether an object can be given to `from_dlpack`."""
    return hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule"


def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of an object with `__dlpack__`, or of a capsule."""
    if isinstance(ext_tensor, np.ndarray):
        array = ext_tensor
    elif exports(ext_tensor):
        array = _array_of(ext_tensor)
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so "
            "you might have already constructed a tensor from it once."
        )
    tensor: Any = make_external(array.copy() if copy else array)
    return tensor if device is None else tensor.to(device)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule on a tensor's memory."""
    need_tensor("_to_dlpack", tensor, "data")
    return _dlpack(tensor)


METHODS = {"__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device}
FUNCTIONS = {"from_dlpack": from_dlpack, "to_dlpack": to_dlpack}
