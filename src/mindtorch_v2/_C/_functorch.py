"""torch._C._functorch: what libraries ask of tensors inside `vmap`."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._dispatch.registry import aten
from ..func._batched import BatchedTensor, batched, levels, spread, value_at

__all__ = [
    "current_level",
    "get_unwrapped",
    "is_batchedtensor",
    "is_functionaltensor",
    "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor",
    "is_legacy_batchedtensor",
    "maybe_current_level",
    "maybe_get_bdim",
    "maybe_get_level",
]


def _are_functorch_transforms_active() -> bool:
    """Whether a `vmap` is running. `func.grad` and its kind work on plain tensors, which need no care."""
    return bool(levels())


def _add_batch_dim(tensor: Tensor, in_dim: int, level: int) -> Tensor:
    """The tensor as the `vmap` of a level shows it: without `in_dim`, along which its samples lie."""
    return batched(aten.movedim(tensor, in_dim, 0), level)


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """The tensor with its samples along `out_dim`; one that the level does not show is repeated."""
    value = value_at(tensor, level)
    return aten.movedim(spread(tensor, batch_size) if value is None else value, 0, out_dim)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a running `vmap` shows this tensor without its samples' dim."""
    return isinstance(tensor, BatchedTensor)


is_functorch_wrapped_tensor = is_batchedtensor


def is_gradtrackingtensor(tensor: Any) -> bool:
    """Whether a tensor is wrapped by `func.grad`: never, it works on plain tensors."""
    return False


def is_legacy_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor comes from the `vmap` before functorch, which does not exist here."""
    return False


def is_functionaltensor(tensor: Any) -> bool:
    """Whether a tensor is one of a functionalized program: never."""
    return False


def get_unwrapped(tensor: Any) -> Any:
    """The tensor with the dim of samples."""
    if not isinstance(tensor, BatchedTensor):
        raise RuntimeError("No wrappers present!")
    return tensor._value


def maybe_get_level(tensor: Any) -> int:
    """The number of the `vmap` that a tensor belongs to, -1 for a plain one."""
    return tensor._level if isinstance(tensor, BatchedTensor) else -1


def maybe_get_bdim(tensor: Any) -> int:
    """The dim of the samples in the unwrapped tensor, -1 for a plain one."""
    return 0 if isinstance(tensor, BatchedTensor) else -1


def maybe_current_level() -> int | None:
    """The number of the innermost running `vmap`."""
    return levels()[-1].number if levels() else None


def current_level() -> int:
    """The number of the innermost running `vmap`; RuntimeError if there is none."""
    if not levels():
        raise RuntimeError("no vmap is running")
    return levels()[-1].number
