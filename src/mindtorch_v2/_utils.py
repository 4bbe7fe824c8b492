"""torch._utils: helpers that public code imports although they are private."""

from __future__ import annotations

import sys
import traceback
from importlib import import_module
from typing import Any, NoReturn

from ._core import dtype as dt
from ._core.device import device as Device
from ._core.tensor import Tensor
from ._dispatch.registry import aten
from ._serialization.rebuild import rebuild_parameter as _rebuild_parameter
from ._serialization.rebuild import rebuild_sparse as _rebuild_sparse_tensor
from ._serialization.rebuild import rebuild_tensor as _rebuild_tensor
from ._serialization.rebuild import rebuild_tensor_v2 as _rebuild_tensor_v2

__all__ = [
    "ExceptionWrapper",
    "_element_size",
    "_flatten_dense_tensors",
    "_rebuild_parameter",
    "_rebuild_sparse_tensor",
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_unflatten_dense_tensors",
]


def _element_size(dtype: Any) -> int:
    """The size in bytes of an element of a dtype."""
    if not isinstance(dtype, dt.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _get_available_device_type() -> str | None:
    """The type of the accelerator that this machine has, None if it has none."""
    accelerator = import_module(".accelerator", __package__).current_accelerator(check_available=True)
    return None if accelerator is None else accelerator.type


def _get_device_module(device_type: str) -> Any:
    """The module of a device type: `torch.cpu`, `torch.npu` ..."""
    module = getattr(sys.modules[__package__], device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'.")
    return module


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a device, given as such, by name or as a number; with `optional`, the accelerator's current one for none.

    The CPU has -1, and only with `allow_cpu`; ValueError where there is no index.
    """
    index: Any = device
    if isinstance(device, str | Device):
        device = Device(device)
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if isinstance(index, int):
        return index
    if not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    accelerator = import_module(".accelerator", __package__)
    return int(accelerator.current_device_index()) if accelerator.is_available() else -1


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again in another thread or process."""

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type: Any = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> NoReturn:
        """Raise it here, with a message that says where it came from."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        try:
            exception = self.exc_type(message)
        except Exception:  # an exception whose constructor takes more than a message
            raise RuntimeError(message) from None
        raise exception


def _flatten_dense_tensors(tensors: Any) -> Tensor:
    """The elements of all tensors in one."""
    return aten.flatten_dense_tensors(list(tensors))  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Any) -> tuple[Tensor, ...]:
    """The parts of a flat tensor, shaped like `tensors`."""
    return tuple(aten.unflatten_dense_tensors(flat, list(tensors)))
