"""Batching rules for products, convolutions, pooling, normalization and losses."""

from __future__ import annotations

from typing import Any

from .._core.tensor import Tensor
from .._dispatch.facts import SPATIAL, Batching
from .._dispatch.registry import OpSpec, aten
from ._batched import Level, level_of, spread, value_at
from ._dim_rules import only_first
from ._rules import batched, call, pointwise, rule, rule_of


def _either(tensor: Tensor, level: Level) -> Tensor:
    value = value_at(tensor, level.number)
    return tensor if value is None else value


@rule(Batching.PRODUCT)
def matrix_product(op: OpSpec, args: list[Any], level: Level) -> Any:
    _check(op, args)
    return aten.matmul(_either(args[0], level), _either(args[1], level))


@rule_of("mv")
def matrix_vector(op: OpSpec, args: list[Any], level: Level) -> Any:
    _check(op, args)
    return aten.squeeze(aten.matmul(_either(args[0], level), aten.unsqueeze(_either(args[1], level), -1)), -1)


@rule_of("dot", "vdot")
def inner_product(op: OpSpec, args: list[Any], level: Level) -> Any:
    _check(op, args)
    first = aten.conj(args[0]) if op.schema.name == "vdot" else args[0]
    return _value(aten.sum(aten.mul(first, args[1])), level)


_RANKS = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1), "vdot": (1, 1)}


def _check(op: OpSpec, args: list[Any]) -> None:
    """The op's own demands on one sample, which matmul would not make."""
    first, second = args[0]._array, args[1]._array
    wanted = _RANKS[op.schema.name]
    if (first.ndim, second.ndim) != wanted or first.shape[-1] != second.shape[-2 if second.ndim > 1 else -1]:
        raise RuntimeError(f"{op.schema.name}: shapes {list(first.shape)} and {list(second.shape)} cannot be multiplied")
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {args[0].dtype.cpp_name} != {args[1].dtype.cpp_name}"
        )


def _value(tensor: Tensor, level: Level) -> Tensor:
    value = value_at(tensor, level.number)
    return spread(tensor, level.size) if value is None else value


def _scaled_sum(self: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    scaled = product if alpha == 1 else product * alpha  # type: ignore[operator]
    return scaled if beta == 0 else scaled + (self if beta == 1 else self * beta)  # type: ignore[operator]


@rule(Batching.ADDED_PRODUCT)
def added_product(op: OpSpec, args: list[Any], level: Level) -> Any:
    """beta * self + alpha * product, from ops that have rules."""
    self, first, second, beta, alpha = args
    name = op.schema.name
    if name == "addr":
        product = aten.outer(first, second)
    else:
        product = {"addmm": aten.mm, "addmv": aten.mv, "baddbmm": aten.bmm, "addbmm": aten.bmm}[name](first, second)
    if name == "addbmm":
        product = aten.sum(product, (0,))
    return _value(_scaled_sum(self, product, beta, alpha), level)


# ---------------------------------------------------------------- convolution and pooling


def _folded(tensor: Tensor) -> Tensor:
    """Samples and batch as one dim."""
    shape = tensor._array.shape
    return aten.reshape(tensor, (shape[0] * shape[1], *shape[2:]))


def _unfolded(tensor: Any, size: int) -> Any:
    if isinstance(tensor, tuple):
        return tuple(_unfolded(t, size) for t in tensor)
    shape = tensor._array.shape
    return aten.reshape(tensor, (size, shape[0] // size, *shape[1:]))


@rule_of("convolution")
def convolution(op: OpSpec, args: list[Any], level: Level) -> Any:
    data, weight, bias, *options = args
    value = value_at(data, level.number)
    kernels = value_at(weight, level.number)
    size = level.size
    if value is None and kernels is None:
        output = spread(call(op, [data, weight, None, *options]), size)
    elif kernels is None:
        output = _unfolded(call(op, [_folded(value), weight, None, *options]), size)
    else:
        # Each sample has its own kernels: one grouped convolution, the samples side by side in the channels.
        wide = spread(data, size) if value is None else value
        moved = aten.transpose(wide, 0, 1)
        shape = moved._array.shape
        moved = aten.reshape(moved, (shape[0], size * shape[2], *shape[3:]))
        groups = options[-1] * size
        flat = call(op, [moved, _folded(kernels), None, *options[:-1], groups])
        shape = flat._array.shape
        output = aten.transpose(aten.reshape(flat, (shape[0], size, shape[1] // size, *shape[2:])), 0, 1)
    if bias is None:
        return output
    spatial = output._array.ndim - 3
    shaped = aten.reshape(bias, (bias._array.shape[0], *(1,) * spatial))
    return _value(aten.add(batched(output, level.number), shaped), level)


@rule(*SPATIAL.values())
def over_space(op: OpSpec, args: list[Any], level: Level) -> Any:
    """Ops over images: the samples join the batch, or are the batch where there is none."""
    value = only_first(args, level)
    if value is None:
        return NotImplemented
    if op.batching is SPATIAL.get(value._array.ndim - 2):
        return call(op, [value, *args[1:]])
    return _unfolded(call(op, [_folded(value), *args[1:]]), level.size)


# ---------------------------------------------------------------- normalization and losses


@rule_of("native_layer_norm")
def layer_norm(op: OpSpec, args: list[Any], level: Level) -> Any:
    data, shape, weight, bias, eps = args
    value = value_at(data, level.number)
    if value is None:
        return NotImplemented
    if level_of([weight, bias]) < level.number:
        return call(op, [value, shape, weight, bias, eps])
    output, mean, rstd = call(op, [value, shape, None, None, eps])
    output = batched(output, level.number)
    if weight is not None:
        output = aten.mul(output, weight)
    if bias is not None:
        output = aten.add(output, bias)
    return output._value, mean, rstd


@rule(Batching.LOSS)
def elementwise_loss(op: OpSpec, args: list[Any], level: Level) -> Any:
    """The loss of each element, and then the reduction of each sample."""
    at = next(i for i, a in enumerate(op.schema.arguments) if a.name == "reduction")
    losses = pointwise(op, [0 if i == at else a for i, a in enumerate(args)], level)
    if losses is NotImplemented or args[at] == 0:
        return losses
    logical = batched(losses, level.number)
    return _value(aten.mean(logical) if args[at] == 1 else aten.sum(logical), level)


@rule_of("nll_loss_forward")
def nll_loss(op: OpSpec, args: list[Any], level: Level) -> Any:
    data, target, weight, reduction, ignore_index = args
    if weight is not None:
        return NotImplemented
    counted = aten.ne(target, ignore_index)
    chosen = aten.unsqueeze(aten.mul(target, counted), -1)
    picked = aten.squeeze(aten.gather(data, -1, chosen), -1)
    losses = aten.where(counted, aten.neg(picked), aten.zeros_like(picked))
    total = aten.to(aten.sum(counted) * bool(reduction), data.dtype)
    if reduction:
        losses = aten.sum(losses)
        losses = aten.div(losses, total) if reduction == 1 else losses
    return _value(losses, level), _value(total, level)
