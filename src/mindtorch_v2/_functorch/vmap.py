"""torch._functorch.vmap: the three steps of a vmapped call.

A library whose containers flatten in a way of their own sets `_process_batched_inputs`, `_create_batched_inputs` or
`_unwrap_batched` to its own functions; `vmap` then runs through them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._C._functorch import _add_batch_dim, _remove_batch_dim
from .._core.tensor import Tensor
from ..func._batched import value_at
from ..func._vmap import broadcast_prefix, inputs_of, size_of
from ..utils._pytree import TreeSpec, tree_flatten, tree_unflatten

__all__ = ["is_replaced", "run"]


def _get_name(func: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    return getattr(func, "__name__", repr(func))


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: Any = None) -> list[Any] | None:
    """One entry of `tree` for each leaf of a structure; None where they do not fit."""
    if is_leaf is not None:
        raise NotImplementedError("_broadcast_to_and_flatten(is_leaf=...): see docs/compatibility.md")
    return broadcast_prefix(tree, tree_unflatten([None] * treespec.num_leaves, treespec), leaves=treespec.num_leaves)


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The number of samples, the dim of each leaf that they lie along, the leaves and their structure."""
    leaves, dims, spec = inputs_of(func, in_dims, args)
    return size_of(leaves, dims), dims, leaves, spec


def _create_batched_inputs(
    flat_in_dims: list[int | None], flat_args: list[Any], vmap_level: int, args_spec: TreeSpec
) -> tuple[Any, ...]:
    """The arguments of one sample."""
    batched = [
        arg if dim is None else _add_batch_dim(arg, dim, vmap_level) for dim, arg in zip(flat_in_dims, flat_args, strict=True)
    ]
    return tree_unflatten(batched, args_spec)


def _maybe_remove_batch_dim(name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None) -> Any:
    """A result with its samples along `out_dim`; with None as it is, which must not be one of a sample."""
    if out_dim is None:
        if isinstance(batched_output, Tensor) and value_at(batched_output, vmap_level) is not None:
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. "
            "Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]) -> Any:
    """The results with their samples along `out_dims`."""
    leaves, spec = tree_flatten(batched_outputs)
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of "
            f"`outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    removed = [
        _maybe_remove_batch_dim(_get_name(func), leaf, vmap_level, batch_size, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    return tree_unflatten(removed, spec)


_STEPS = ("_process_batched_inputs", "_create_batched_inputs", "_unwrap_batched")
_own = {name: globals()[name] for name in _STEPS}


def is_replaced() -> bool:
    """Whether a library has put a function of its own in the place of a step."""
    return any(globals()[name] is not _own[name] for name in _STEPS)


def run(func: Callable[..., Any], in_dims: Any, out_dims: Any, args: tuple[Any, ...], call: Callable[..., Any]) -> Any:
    """A vmapped call by the steps. `call(size, prepare)` opens a level and calls `func` with what `prepare(level)` gives."""
    size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
    level, outputs = call(size, lambda level: _create_batched_inputs(dims, leaves, level, spec))
    return _unwrap_batched(outputs, out_dims, level, size, func)
