"""Tensors of subclasses that have no memory of their own: `Tensor._make_wrapper_subclass`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import META
from .._core.shape_only import MetaArray, without_memory
from .._core.storage import FOREIGN, Storage, owner_of
from .._core.strides import row_major
from . import entry_globals
from .interception import python_key


def make_wrapper_subclass(
    cls: type,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    **more: Any,
) -> Any:
    """A tensor of a subclass with a shape, a dtype and a device and no memory: its `__torch_dispatch__` computes with another.

    Only what `__torch_dispatch__` answers can be computed; whatever reads its elements raises.
    """
    if not isinstance(cls, type):
        raise TypeError(f"_make_wrapper_subclass(): argument 'cls' must be type, not {type(cls).__name__}")
    if not hasattr(cls, "__torch_dispatch__"):
        raise RuntimeError(
            f"{cls.__name__} must define __torch_dispatch__ to be made by _make_wrapper_subclass: it has no memory of its own"
        )
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout or more:
        asked = [name for name, value in more.items() if value is not None]
        raise NotImplementedError(
            "_make_wrapper_subclass: sizes, strides, device and layout of a wrapper are those it is made with"
            + (f" (asked for {', '.join(asked)})" if asked else "")
        )
    kind = dt.get_default_dtype() if dtype is None else dtype
    shape = tuple(int(n) for n in size)
    item = kind.np.itemsize
    in_bytes = row_major(shape, item) if strides is None else tuple(int(s) * item for s in strides)
    place = Device("cpu" if device is None else device)
    if place.type not in ("cpu", "meta"):
        raise NotImplementedError(f"_make_wrapper_subclass: no tensors on device {place}")
    tensor: Any = object.__new__(cls)
    array = tensor._array = without_memory(MetaArray, shape, kind.np, in_bytes)
    tensor._keys = python_key(cls) | (META if place.type == "meta" else 0)
    tensor._storage = Storage(owner_of(array), external=FOREIGN, device=place.type)
    tensor._base = None
    if requires_grad:
        entry_globals.require_grad(tensor)
    return tensor
