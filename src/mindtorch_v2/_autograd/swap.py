"""Exchanging what two tensor objects hold, while each stays the object that others refer to."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any, NoReturn

from .._core.tensor import Tensor, storage_of
from .graph import refresh_accumulator
from .nodes.accumulate import AccumulateGrad, LeafRef

_POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run backward on "
    "a tensor that was swapped. For a module m with `torch.__future__.set_swap_module_params_on_conversion(True)` you should "
    "not change the device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To "
    "resolve this, please only change the device/dtype before running forward (or after both forward and backward)."
)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchange class, attributes, memory and gradient of two tensors; every reference to one then sees the other's content.

    RuntimeError where something refers to one of them weakly, or where their classes have different slots. Graphs that were
    recorded with them no longer run: backward raises.
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if any(type(reference) is not LeafRef for reference in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = _slots(t1)
    if slots != _slots(t2):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    accumulators = [tensor._node if _is_leaf(tensor) else None for tensor in (t1, t2)]
    _invalidate_saved(t1, t2)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    for slot in slots:
        _swap_slot(t1, t2, slot)
    for tensor, accumulator in zip((t2, t1), accumulators, strict=True):
        if accumulator is not None:
            _renew_accumulator(tensor, accumulator)


def _slots(tensor: Tensor) -> set[str]:
    return set(copyreg._slotnames(type(tensor)))  # type: ignore[attr-defined]


def _is_leaf(tensor: Tensor) -> bool:
    return isinstance(getattr(tensor, "_node", None), AccumulateGrad)


def _swap_slot(t1: Tensor, t2: Tensor, slot: str) -> None:
    missing: Any = object()
    first, second = getattr(t1, slot, missing), getattr(t2, slot, missing)
    for tensor, value, before in ((t1, second, first), (t2, first, second)):
        if value is not missing:
            setattr(tensor, slot, value)
        elif before is not missing:
            delattr(tensor, slot)


def _invalidate_saved(t1: Tensor, t2: Tensor) -> None:
    """Give both memories a version with which no node can have saved either tensor: nodes refer to the objects."""
    storages = [storage_of(tensor) for tensor in (t1, t2)]
    version = 1 + max(storage.version for storage in storages)
    for storage in storages:
        storage.version = version


def _renew_accumulator(leaf: Tensor, old: AccumulateGrad) -> None:
    """Give a leaf a new AccumulateGrad with the hooks of the one that its content had, which raises from now on."""
    hooks, old.hooks = old.hooks, None
    old.register_prehook(_raise_poisoned)
    del leaf._node
    refresh_accumulator(leaf)
    leaf._node.hooks = hooks


def _raise_poisoned(grads: Any) -> NoReturn:
    raise RuntimeError(_POISONED)
