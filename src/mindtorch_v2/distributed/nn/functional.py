"""torch.distributed.nn.functional: collectives whose results have derivatives. The backward pass runs the opposite collective.

Every process must run the backward pass of each of them, in the same order.
"""

from __future__ import annotations

from typing import Any

from ... import _surface as torch
from ..._autograd.function import Function
from ..._core.tensor import Tensor
from .. import _collectives as c10d
from .._groups import get_rank, group_or_default
from .._reduce_ops import ReduceOp

__all__ = [
    "all_gather",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "reduce",
    "reduce_scatter",
    "scatter",
]


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, src: int, group: Any) -> Tensor:
        ctx.src, ctx.group = src, group
        result = tensor.detach().clone()
        c10d.broadcast(result, src, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        total = gradient.contiguous().clone()
        c10d.reduce(total, ctx.src, group=ctx.group)
        return total if get_rank() == ctx.src else torch.zeros_like(total), None, None


class _Reduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dst: int, op: Any, group: Any) -> Tensor:
        ctx.dst, ctx.group = dst, group
        result = tensor.detach().clone()
        c10d.reduce(result, dst, op, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _Broadcast.apply(gradient, ctx.dst, ctx.group), None, None, None


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: Any, group: Any) -> Tensor:
        ctx.op, ctx.group = op, group
        result = tensor.detach().clone()
        c10d.all_reduce(result, op, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return _AllReduce.apply(gradient, ctx.op, ctx.group), None, None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, group: Any) -> Any:
        ctx.group = group
        parts = [torch.empty_like(tensor) for _ in range(group.size())]
        c10d.all_gather(parts, tensor.detach().contiguous(), group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        result = torch.empty_like(gradients[ctx.group.rank()])
        c10d.reduce_scatter(result, [each.contiguous() for each in gradients], group=ctx.group)
        return result, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, op: Any, group: Any, output: Tensor, *inputs: Tensor) -> Tensor:
        ctx.group = group
        result = torch.empty_like(output)
        c10d.reduce_scatter(result, [each.detach().contiguous() for each in inputs], op, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return (None, None, None, *_AllGather.apply(gradient, ctx.group))


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, group: Any, shapes: Any, *inputs: Tensor) -> Any:
        ctx.group, ctx.shapes = group, [tuple(each.shape) for each in inputs]
        outputs = [torch.empty(shape, dtype=inputs[0].dtype) for shape in shapes]
        c10d.all_to_all(outputs, [each.detach().contiguous() for each in inputs], group=group)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return (None, None, *_AllToAll.apply(ctx.group, ctx.shapes, *gradients))


class _Gather(Function):
    @staticmethod
    def forward(ctx: Any, dst: int, group: Any, tensor: Tensor) -> Any:
        ctx.dst, ctx.group = dst, group
        parts = [torch.zeros_like(tensor) for _ in range(group.size())]
        is_root = get_rank() == dst
        c10d.gather(tensor.detach().contiguous(), parts if is_root else None, dst, group=group)
        return tuple(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, _Scatter.apply(ctx.dst, ctx.group, *gradients)


class _Scatter(Function):
    @staticmethod
    def forward(ctx: Any, src: int, group: Any, *tensors: Tensor) -> Tensor:
        ctx.src, ctx.group = src, group
        result = torch.zeros_like(tensors[0])
        is_root = get_rank() == src
        c10d.scatter(result, [each.detach().contiguous() for each in tensors] if is_root else None, src, group=group)
        return result

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return (None, None, *_Gather.apply(ctx.src, ctx.group, gradient))


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The tensor of the process `src`; its gradient is the sum of all."""
    return _Broadcast.apply(tensor, src, group_or_default(group))  # type: ignore[no-any-return]


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """In the process `dst` all tensors by rank, zeros elsewhere."""
    return _Gather.apply(dst, group_or_default(group), tensor)  # type: ignore[no-any-return]


def scatter(tensors: list[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """This process's tensor of the list of the process `src`."""
    return _Scatter.apply(src, group_or_default(group), *tensors)  # type: ignore[no-any-return]


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """In the process `dst` the reduction of all tensors."""
    return _Reduce.apply(tensor, dst, op, group_or_default(group))  # type: ignore[no-any-return]


def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of what all processes have for this one in their lists."""
    return _ReduceScatter.apply(op, group_or_default(group), output, *input_list)  # type: ignore[no-any-return]


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """All processes' tensors by rank."""
    return _AllGather.apply(tensor, group_or_default(group))  # type: ignore[no-any-return]


def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None) -> tuple[Tensor, ...]:
    """What each process has for this one; `output_tensor_list` gives the shapes."""
    shapes = [tuple(each.shape) for each in output_tensor_list]
    return _AllToAll.apply(group_or_default(group), shapes, *input_tensor_list)  # type: ignore[no-any-return]


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
) -> Tensor:
    """Rows of the input go to the processes by rank; the result, of the shape of `output`, has theirs."""
    from .._functional_collectives import all_to_all_single_autograd

    return all_to_all_single_autograd(input, output_split_sizes, input_split_sizes, group_or_default(group)).view(output.shape)


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all processes' tensors."""
    return _AllReduce.apply(tensor, op, group_or_default(group))  # type: ignore[no-any-return]
