"""vmap: a function of one sample becomes a function of a batch."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from .._core.shape_only import CannotBatch
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from ..utils import _pytree as pytree
from . import _dim_rules, _nn_rules  # noqa: F401  give ops their rules
from ._batched import Level, batched, levels, spread, value_at
from ._rules import Randomness

# Loaded by libraries that replace what it holds.
_STEPS = f"{__package__.rpartition('.')[0]}._functorch.vmap"

InDims = Any
OutDims = Any


def vmap(
    func: Callable[..., Any],
    in_dims: InDims = 0,
    out_dims: OutDims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """`func` over an added dimension of its inputs: `in_dims` says where it is (None: nowhere),
    `out_dims` where it goes.

    `randomness` says what random ops do: "error", "same" for all samples, or "different". With `chunk_size`, that many
    samples are computed at a time.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not (chunk_size == "auto" or (isinstance(chunk_size, int) and chunk_size > 0)):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        steps = sys.modules.get(_STEPS)
        if steps is not None and steps.is_replaced() and chunk_size is None:
            return steps.run(func, in_dims, out_dims, args, functools.partial(_by_steps, func, randomness, kwargs))
        leaves, dims, spec = inputs_of(func, in_dims, args)
        mapped, keyword_spec = pytree.tree_flatten(kwargs)
        leaves, dims = leaves + mapped, dims + [0 if isinstance(leaf, Tensor) else None for leaf in mapped]
        split = len(leaves) - len(mapped)
        size = size_of(leaves, dims)

        def run(part: list[Any], count: int) -> Any:
            inside = _Run(func, count, randomness)
            return inside(
                part,
                dims,
                lambda inputs: (
                    pytree.tree_unflatten(inputs[:split], spec),
                    pytree.tree_unflatten(inputs[split:], keyword_spec),
                ),
                out_dims,
            )

        if chunk_size is None or chunk_size == "auto" or chunk_size >= size:
            return run(leaves, size)
        return _in_chunks(run, leaves, dims, size, chunk_size, out_dims)

    return wrapped


def inputs_of(func: Any, in_dims: InDims, args: tuple[Any, ...]) -> tuple[list[Any], list[int | None], Any]:
    """The leaves of the arguments, and each one's dim of samples."""
    name = getattr(func, "__name__", repr(func))
    if not isinstance(in_dims, int | tuple | list):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) "
            f"tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
            "a function with no inputs. The latter is unsupported."
        )
    leaves, spec = pytree.tree_flatten(args)
    dims = broadcast_prefix(tuple(in_dims) if isinstance(in_dims, list) else in_dims, args)
    if dims is None:
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the structure of "
            f"`inputs`. in_dims has structure {pytree.tree_structure(in_dims)} but inputs has structure {spec}."
        )
    for i, (leaf, dim) in enumerate(zip(leaves, dims, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but in_dim must be "
                "either an integer dimension or None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input but the input is of "
                f"type {type(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the respective "
                "in_dim"
            )
        ndim = leaf._array.ndim
        if not -ndim <= dim < ndim:
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input "
                f"is a Tensor of dimensionality {ndim} so expected in_dim to satisfy -{ndim} <= in_dim < {ndim}."
            )
        dims[i] = dim % ndim
    return leaves, dims, spec


def broadcast_prefix(prefix: Any, tree: Any, leaves: int | None = None) -> list[Any] | None:
    """One entry of `prefix` for each leaf of `tree`: an entry where the tree has a subtree holds for all of it.

    `leaves` is how many there are, where that is known.
    """
    if prefix is None or isinstance(prefix, int):
        return [prefix] * (len(pytree.tree_leaves(tree)) if leaves is None else leaves)
    if isinstance(prefix, list | tuple) and isinstance(tree, list | tuple):
        pairs: Any = list(zip(prefix, tree, strict=True)) if len(prefix) == len(tree) else None
    elif isinstance(prefix, dict) and isinstance(tree, dict):
        pairs = [(prefix[key], tree[key]) for key in tree] if set(prefix) == set(tree) else None
    else:
        return [prefix]
    if pairs is None:
        return None
    entries: list[Any] = []
    for part, subtree in pairs:
        inner = broadcast_prefix(part, subtree)
        if inner is None:
            return None
        entries += inner
    return entries


def size_of(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [leaf._array.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0]


class _Run:
    """One call of a vmapped function."""

    def __init__(self, func: Callable[..., Any], size: int, randomness: str) -> None:
        self.func, self.size = func, size
        running = levels()
        self.level = Level(running[-1].number + 1 if running else 0, size, randomness)

    def __call__(
        self, leaves: list[Any], dims: list[int | None], rebuild: Callable[[list[Any]], Any], out_dims: OutDims
    ) -> Any:
        inputs = [
            leaf if dim is None else batched(aten.movedim(leaf, dim, 0) if dim else leaf, self.level.number)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        args, kwargs = rebuild(inputs)
        return self._outputs(self.call(args, kwargs), out_dims)

    def call(self, args: Any, kwargs: Any) -> Any:
        """What the function gives for one sample, while the level is open."""
        randomness = Randomness(self.level)
        running = levels()
        running += (self.level,)
        try:
            with randomness:
                return self.func(*args, **kwargs)
        except CannotBatch as error:  # the op has no sample-by-sample form either
            raise RuntimeError(str(error)) from error
        finally:
            del running[-1]

    def _outputs(self, outputs: Any, out_dims: OutDims) -> Any:
        leaves, spec = pytree.tree_flatten(outputs)
        dims = broadcast_prefix(
            tuple(out_dims) if isinstance(out_dims, list) else out_dims,
            tuple(outputs) if isinstance(outputs, list) else outputs,
        )
        if dims is not None and len(dims) != len(leaves) and isinstance(out_dims, tuple) and len(out_dims) == 1:
            dims = broadcast_prefix(out_dims[0], outputs)
        if dims is None or len(dims) != len(leaves) or any(isinstance(d, list | tuple | dict) for d in dims):
            if isinstance(out_dims, tuple) and len(out_dims) == 1 and len(leaves) == 1:
                dims = list(out_dims)
            else:
                raise ValueError(
                    f"vmap({getattr(self.func, '__name__', self.func)}, ..., out_dims={out_dims})(<inputs>): out_dims "
                    f"is not compatible with the structure of `outputs`. out_dims has structure "
                    f"{pytree.tree_structure(out_dims)} but outputs has structure {spec}."
                )
        return pytree.tree_unflatten([self._output(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)], spec)

    def _output(self, leaf: Any, dim: int | None) -> Any:
        name = getattr(self.func, "__name__", repr(self.func))
        if not isinstance(leaf, Tensor):
            if dim is None:
                return leaf
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(leaf)}. Did you mean to set "
                "out_dims= to None for output?"
            )
        value = value_at(leaf, self.level.number)
        if dim is None:
            if value is not None:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            return leaf
        samples = spread(leaf, self.size) if value is None else value
        ndim = samples._array.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})")
        return aten.movedim(samples, 0, dim) if dim else samples


def _by_steps(
    func: Callable[..., Any], randomness: str, kwargs: dict[str, Any], size: int, prepare: Callable[[int], Any]
) -> tuple[int, Any]:
    """The level of a call whose steps a library has replaced, and what the function gives."""
    inside = _Run(func, size, randomness)
    level = inside.level.number
    batched_kwargs = pytree.tree_map_only(Tensor, lambda tensor: batched(tensor, level), kwargs)
    return level, inside.call(prepare(level), batched_kwargs)


def _in_chunks(
    run: Callable[[list[Any], int], Any],
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    chunk_size: int,
    out_dims: OutDims,
) -> Any:
    results = []
    for start in range(0, size, chunk_size):
        count = min(chunk_size, size - start)
        results.append(
            run(
                [leaf if dim is None else aten.narrow(leaf, dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)],
                count,
            )
        )
    flat = [pytree.tree_flatten(result)[0] for result in results]
    spec = pytree.tree_structure(results[0])
    places = broadcast_prefix(out_dims, results[0]) or []
    joined = [
        column[0] if dim is None else aten.cat(list(column), dim)
        for column, dim in zip(zip(*flat, strict=True), places, strict=True)
    ]
    return pytree.tree_unflatten(joined, spec)
