"""Batching rules for ops with dims: shapes, reductions, scans, joins, indexing. Samples are dim 0, so dims shift."""

from __future__ import annotations

import math
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.facts import Batching
from .._dispatch.registry import OpSpec, aten
from ._batched import Level, level_of, spread, value_at
from ._rules import call, rule, rule_of

_DIM_NAMES = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")


def only_first(args: list[Any], level: Level) -> Any:
    """The first argument's samples if no other argument is batched, else None."""
    return None if level_of(args[1:]) >= level.number else value_at(args[0], level.number)


def shifted(dim: int, ndim: int) -> int:
    """A sample's dim as the batch's."""
    limit = max(ndim, 1)
    if not -limit <= dim < limit:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-limit}, {limit - 1}], but got {dim})")
    return dim % limit + 1


def _dims(op: OpSpec, args: list[Any], ndim: int) -> list[Any]:
    shifted_args = list(args)
    for i, argument in enumerate(op.schema.arguments):
        if argument.name in _DIM_NAMES and shifted_args[i] is not None and not isinstance(shifted_args[i], Tensor):
            dims = shifted_args[i]
            shifted_args[i] = shifted(dims, ndim) if isinstance(dims, int) else [shifted(d, ndim) for d in dims]
    return shifted_args


@rule(Batching.ALONG_DIM)
def along_dim(op: OpSpec, args: list[Any], level: Level) -> Any:
    value = only_first(args, level)
    if value is None or (op.composite and not op.below_autograd):
        return NotImplemented
    arguments = op.schema.arguments
    at = next((i for i, a in enumerate(arguments) if a.name in _DIM_NAMES), None)
    ndim = value._array.ndim - 1
    if op.schema.name == "squeeze":
        return _squeeze(value, args)
    if at is None or args[at] is None or (args[at] == [] or args[at] == ()):
        return _whole(op, value, args, level)
    if not ndim:
        return NotImplemented
    return call(op, [value, *_dims(op, args, ndim)[1:]])


def _squeeze(value: Tensor, args: list[Any]) -> Tensor:
    shape = value._array.shape[1:]
    dims = range(len(shape)) if len(args) == 1 else [args[1]] if isinstance(args[1], int) else args[1]
    wanted = sorted({shifted(d, len(shape)) for d in dims})
    return aten.squeeze(value, tuple(d for d in wanted if len(shape) and shape[d - 1] == 1))


_WHOLE = {"max": "amax", "min": "amin"}


def _whole(op: OpSpec, value: Tensor, args: list[Any], level: Level) -> Any:
    """A reduction over all dims of each sample, as one over dim 1 of the flattened samples."""
    name = op.schema.name
    flat = aten.reshape(value, (level.size, -1)) if level.size else aten.reshape(value, (0, math.prod(value.shape[1:])))
    if name in _WHOLE:
        return getattr(aten, _WHOLE[name])(flat, (1,))
    if name in ("median", "nanmedian"):
        return getattr(aten, name)(flat, 1)[0]
    if name == "prod":
        return aten.prod(flat, 1, dtype=args[1])
    if name in ("argmax", "argmin") and not args[2]:
        return getattr(aten, name)(flat, 1)
    return NotImplemented


@rule(Batching.REDUCTION)
def reduction(op: OpSpec, args: list[Any], level: Level) -> Any:
    if op.composite and not op.below_autograd:
        return NotImplemented
    value = only_first(args, level)
    if value is None:
        return NotImplemented
    arguments = op.schema.arguments
    at = next((i for i, a in enumerate(arguments) if a.name == "dim"), None)
    ndim = value._array.ndim - 1
    keep = any(a.name == "keepdim" and args[i] for i, a in enumerate(arguments))
    if at is None:
        dims = list(range(1, ndim + 1)) or [1]
        wide = value if ndim else aten.unsqueeze(value, 1)
        keywords = {a.name: args[i] for i, a in enumerate(arguments) if a.name == "dtype"}
        return getattr(aten, op.schema.name)(wide, dims, **keywords)
    if not ndim and (keep or op.schema.name == "count_nonzero"):
        return NotImplemented
    dim = args[at]
    dims = [dim] if isinstance(dim, int) else list(dim or ())
    dims = [shifted(d, ndim) for d in dims] or list(range(1, ndim + 1)) or [1]
    batched_args = [value if ndim else aten.unsqueeze(value, 1), *args[1:]]
    if op.schema.name == "count_nonzero":
        return aten.count_nonzero(batched_args[0], dims)
    batched_args[at] = dims
    return call(op, batched_args)


# ---------------------------------------------------------------- shapes


@rule(Batching.RESHAPE)
def reshaped(op: OpSpec, args: list[Any], level: Level) -> Any:
    value, size = value_at(args[0], level.number), args[1]
    if not isinstance(size, list | tuple):
        return NotImplemented  # view(dtype)
    count = math.prod(value._array.shape[1:])
    if -1 in size:
        known = math.prod(n for n in size if n != -1)
        if not known or count % known:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
        size = [count // known if n == -1 else n for n in size]
    if math.prod(size) != count:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    return (aten.view if op.schema.name == "view" else aten.reshape)(value, (level.size, *size))


@rule_of("expand")
def expanded(op: OpSpec, args: list[Any], level: Level) -> Any:
    value, size = value_at(args[0], level.number), args[1]
    shape = value._array.shape
    lead = len(size) - (len(shape) - 1)
    if lead > 0:
        value = aten.reshape(value, (shape[0], *(1,) * lead, *shape[1:]))
    return aten.expand(value, (shape[0], *size))


@rule_of("permute")
def permuted(op: OpSpec, args: list[Any], level: Level) -> Any:
    value = value_at(args[0], level.number)
    return aten.permute(value, (0, *[shifted(d, value._array.ndim - 1) for d in args[1]]))


@rule_of("t")
def turned(op: OpSpec, args: list[Any], level: Level) -> Any:
    value = value_at(args[0], level.number)
    return aten.transpose(value, 1, 2) if value._array.ndim > 2 else aten.alias(value)


@rule_of("unsqueeze")
def unsqueezed(op: OpSpec, args: list[Any], level: Level) -> Any:
    value = value_at(args[0], level.number)
    return aten.unsqueeze(value, shifted(args[1], value._array.ndim))


@rule(Batching.SHAPE_IN_PLACE)
def in_place_shape(op: OpSpec, args: list[Any], level: Level) -> Any:
    """In-place shape ops: the batched tensor stays the same object, its value is replaced."""
    args[0]._value = getattr(aten, op.schema.name[:-1])(*args)._value
    return args[0]


@rule(Batching.STRIDED)
def restrided(op: OpSpec, args: list[Any], level: Level) -> Any:
    """as_strided and the like: strides count in a sample's own memory, so each sample is copied first."""
    values = [value_at(arg, level.number) for arg in args]
    return aten.stack(
        [
            call(
                op,
                [
                    arg if value is None else aten.clone(aten.select(value, 0, i))
                    for arg, value in zip(args, values, strict=True)
                ],
            )
            for i in range(level.size)
        ]
    )


@rule_of("detach")
def detached(op: OpSpec, args: list[Any], level: Level) -> Any:
    return aten.detach(value_at(args[0], level.number))


@rule_of("contiguous")
def contiguous(op: OpSpec, args: list[Any], level: Level) -> Any:
    return aten.contiguous(value_at(args[0], level.number))


@rule(Batching.SIZED)
def sized(op: OpSpec, args: list[Any], level: Level) -> Any:
    return call(op, [value_at(args[0], level.number), (level.size, *args[1]), *args[2:]])


@rule_of("repeat")
def repeated(op: OpSpec, args: list[Any], level: Level) -> Any:
    value, times = value_at(args[0], level.number), args[1]
    shape = value._array.shape
    lead = len(times) - (len(shape) - 1)
    if lead > 0:
        value = aten.reshape(value, (shape[0], *(1,) * lead, *shape[1:]))
    return aten.repeat(value, (1, *times))


@rule(Batching.LAST_DIMS)
def as_is(op: OpSpec, args: list[Any], level: Level) -> Any:
    """Ops that work on the last dims and let any dims be before them."""
    value = only_first(args, level)
    if value is None or (op.schema.name == "one_hot" and args[1] < 0):
        return NotImplemented
    return call(op, [value, *args[1:]])


# ---------------------------------------------------------------- joins and indexing


def _all_batched(tensors: Any, level: Level) -> list[Tensor]:
    pairs = [(t, value_at(t, level.number)) for t in tensors]
    return [spread(t, level.size) if value is None else value for t, value in pairs]


@rule_of("cat")
def joined(op: OpSpec, args: list[Any], level: Level) -> Any:
    ndim = max(t._array.ndim for t in args[0])
    kept = [t for t in args[0] if t._array.shape != (0,) or ndim == 1]
    return aten.cat(_all_batched(kept, level), shifted(args[1], ndim))


@rule_of("stack")
def stacked(op: OpSpec, args: list[Any], level: Level) -> Any:
    return aten.stack(_all_batched(args[0], level), shifted(args[1], args[0][0]._array.ndim + 1))


@rule(Batching.GATHER)
def gathered(op: OpSpec, args: list[Any], level: Level) -> Any:
    ndim = args[0]._array.ndim
    if not ndim or args[2]._array.ndim != ndim:
        return NotImplemented
    batched_args = [a if not isinstance(a, Tensor) else _all_batched([a], level)[0] for a in args]
    batched_args[1] = shifted(args[1], ndim)
    return call(op, batched_args)


@rule_of("embedding")
def looked_up(op: OpSpec, args: list[Any], level: Level) -> Any:
    if value_at(args[0], level.number) is not None:
        return NotImplemented
    return call(op, [args[0], value_at(args[1], level.number), *args[2:]])


@rule_of("index")
def indexed(op: OpSpec, args: list[Any], level: Level) -> Any:
    """`x[indices]` where the indices lie side by side; others go sample by sample."""
    self, indices = args[0], list(args[1])
    places = [i for i, index in enumerate(indices) if index is not None]
    if places != list(range(places[0], places[-1] + 1)) or any(indices[i]._array.dtype.kind == "b" for i in places):
        return NotImplemented
    value = value_at(self, level.number)
    if level_of([indices[i] for i in places]) < level.number:
        return aten.index(value, [None, *indices])
    if places[0]:
        return NotImplemented
    width = max(indices[i]._array.ndim for i in places)
    aligned = []
    for index in indices:
        samples = value_at(index, level.number)
        if samples is not None:
            shape = samples._array.shape
            samples = aten.reshape(samples, (shape[0], *(1,) * (width + 1 - len(shape)), *shape[1:]))
        aligned.append(index if samples is None else samples)
    if value is None:
        return aten.index(self, aligned)
    rows = aten.reshape(aten.arange(level.size), (level.size, *(1,) * width))
    return aten.index(value, [rows, *aligned])
