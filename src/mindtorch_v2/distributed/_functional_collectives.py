"""torch.distributed._functional_collectives: collectives that return new tensors and leave their arguments as they are.

The tensors are ready when a function returns: there is no compiler that could move other work in between.
"""

from __future__ import annotations

from typing import Any

from .. import _surface as torch
from .._autograd.function import Function
from .._core.tensor import Tensor
from . import _collectives as c10d
from ._absent import absent_class
from ._groups import get_rank, get_world_size, group_or_default, world
from ._reduce_ops import ReduceOp
from .device_mesh import DeviceMesh

__all__ = [
    "AsyncCollectiveTensor",
    "all_gather_inplace",
    "all_gather_into_tensor_coalesced",
    "all_gather_single",
    "all_gather_single_autograd",
    "all_gather_single_coalesced",
    "all_gather_tensor",
    "all_gather_tensor_autograd",
    "all_gather_tensor_inplace",
    "all_reduce",
    "all_reduce_coalesced",
    "all_reduce_inplace",
    "all_to_all_inplace",
    "all_to_all_single",
    "all_to_all_single_autograd",
    "broadcast",
    "permute_tensor",
    "reduce_scatter_single",
    "reduce_scatter_single_autograd",
    "reduce_scatter_single_coalesced",
    "reduce_scatter_tensor",
    "reduce_scatter_tensor_autograd",
    "reduce_scatter_tensor_coalesced",
    "reduce_scatter_tensor_inplace",
    "wait_tensor",
]


def _group(group: Any) -> Any:
    """The group of a name, a list of ranks, a mesh of one dim, a mesh and a dim, or a group."""
    if isinstance(group, str):
        if group not in world.groups:
            raise RuntimeError(f"Could not resolve the process group registered under the name {group!r}")
        return world.groups[group]
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise AssertionError("Only 1D mesh is supported, pass in (DeviceMesh, int) together if mesh > 1D")
        return group.get_group()
    if isinstance(group, tuple) and len(group) == 2 and isinstance(group[0], DeviceMesh):
        return group[0].get_group(group[1])
    if isinstance(group, list):
        for each in world.groups.values():
            if list(each._ranks) == group:
                return each
        raise RuntimeError(f"there is no process group of the ranks {group}: make it with new_group")
    return group_or_default(group)


def _op(name: str) -> Any:
    try:
        return getattr(ReduceOp, {"prod": "PRODUCT"}.get(name.lower(), name.upper()))
    except AttributeError:
        raise ValueError(f"unknown reduction {name!r}") from None


def wait_tensor(tensor: Tensor) -> Tensor:
    """The tensor, which is ready."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """The tensor of the process `src`."""
    result = self.detach().clone()
    c10d.broadcast(result, src, group=_group(group))
    return result


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:  # noqa: N803  torch's name
    """The reduction of all processes' tensors."""
    result = self.detach().clone()
    c10d.all_reduce(result, _op(reduceOp), group=_group(group))
    return result


def all_gather_tensor(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """All processes' tensors, joined along a dim."""
    group = _group(group)
    parts = [torch.empty_like(self) for _ in range(group.size())]
    c10d.all_gather(parts, self.detach().contiguous(), group=group)
    return torch.cat(parts, gather_dim)


def reduce_scatter_tensor(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:  # noqa: N803
    """This process's part, along a dim, of the reduction of all processes' tensors."""
    group = _group(group)
    if self.size(scatter_dim) % group.size():
        raise AssertionError(f"input dimension 0 ({self.size(0)} must be a multiple of group_size {group.size()})")
    parts = [part.contiguous() for part in self.detach().chunk(group.size(), scatter_dim)]
    result = torch.empty_like(parts[0])
    c10d.reduce_scatter(result, parts, _op(reduceOp), group=group)
    return result


def all_reduce_coalesced(self: list[Tensor], reduceOp: str, group: Any, tag: str = "") -> list[Tensor]:  # noqa: N803
    """The reduction of each of several tensors."""
    return [all_reduce(each, reduceOp, group) for each in self]


def all_gather_into_tensor_coalesced(self: list[Tensor], group: Any, tag: str = "") -> list[Tensor]:
    """Each of several tensors of all processes, joined along the first dim."""
    return [all_gather_tensor(each, 0, group) for each in self]


def reduce_scatter_tensor_coalesced(
    inputs: list[Tensor],
    reduceOp: str,  # noqa: N803
    scatter_dim: list[int],
    group: Any,
    tag: str = "",
) -> list[Tensor]:
    """This process's part of the reduction of each of several tensors."""
    if len(scatter_dim) != len(inputs):
        raise AssertionError("len(scatter_dim) must match len(inputs)")
    return [reduce_scatter_tensor(each, reduceOp, dim, group) for each, dim in zip(inputs, scatter_dim, strict=True)]


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Rows of the tensor go to the processes by rank; the result has theirs."""
    group = _group(group)
    rows = self.size(0) if output_split_sizes is None else sum(output_split_sizes)
    result = torch.empty((rows, *self.shape[1:]), dtype=self.dtype)
    c10d.all_to_all_single(result, self.detach().contiguous(), output_split_sizes, input_split_sizes, group=group)
    return result


def permute_tensor(self: Tensor, src_dst: list[int], group: Any, tag: str = "") -> Tensor:
    """Process i's tensor goes to the process src_dst[i]."""
    group = _group(group)
    rank, size = get_rank(group), get_world_size(group)
    sent, received = [0] * size, [0] * size
    for source, target in enumerate(src_dst):
        if source == rank:
            sent[target] = self.numel()
        if target == rank:
            received[source] = self.numel()
    flat = all_to_all_single(self.reshape(-1), received, sent, group)
    return flat.reshape(self.shape) if flat.numel() else torch.zeros_like(self)


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dim: int, group: Any) -> Tensor:
        ctx.dim, ctx.group = dim, group
        return all_gather_tensor(tensor, dim, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        return reduce_scatter_tensor(gradient, "sum", ctx.dim, ctx.group), None, None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, op: str, dim: int, group: Any) -> Tensor:
        ctx.dim, ctx.group, ctx.op = dim, group, op
        return reduce_scatter_tensor(tensor, op, dim, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        whole = all_gather_tensor(gradient, ctx.dim, ctx.group)
        return whole / _group(ctx.group).size() if ctx.op.lower() == "avg" else whole, None, None, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, outputs: Any, inputs: Any, group: Any) -> Tensor:
        ctx.splits, ctx.group = (inputs, outputs), group
        return all_to_all_single(tensor, outputs, inputs, group)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        outputs, inputs = ctx.splits
        return all_to_all_single(gradient, outputs, inputs, ctx.group), None, None, None


def all_gather_tensor_autograd(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """all_gather_tensor with a derivative."""
    return _AllGather.apply(self, gather_dim, _group(group))  # type: ignore[no-any-return]


def reduce_scatter_tensor_autograd(
    self: Tensor,
    reduceOp: str,  # noqa: N803
    scatter_dim: int,
    group: Any,
    tag: str = "",
) -> Tensor:
    """reduce_scatter_tensor with a derivative; of sums and means."""
    if reduceOp.lower() not in ("sum", "avg"):
        raise NotImplementedError(f"the derivative of reduce_scatter_tensor with {reduceOp!r}")
    return _ReduceScatter.apply(self, reduceOp, scatter_dim, _group(group))  # type: ignore[no-any-return]


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """all_to_all_single with a derivative."""
    return _AllToAll.apply(self, output_split_sizes, input_split_sizes, _group(group))  # type: ignore[no-any-return]


# Their names since the collectives of distributed_c10d are called so.
all_gather_single, all_gather_single_autograd = all_gather_tensor, all_gather_tensor_autograd
all_gather_single_coalesced = all_gather_into_tensor_coalesced
reduce_scatter_single, reduce_scatter_single_autograd = reduce_scatter_tensor, reduce_scatter_tensor_autograd
reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
AsyncCollectiveTensor = absent_class(__name__, "AsyncCollectiveTensor")  # tensors are ready when a function returns


def _not_async(async_op: bool) -> None:
    if async_op:
        raise AssertionError("Can't remap async version of inplace op to functional collective")


def all_gather_tensor_inplace(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False, tag: str = "", gather_dim: int = 0
) -> Tensor:
    """all_gather_tensor into a tensor."""
    _not_async(async_op)
    return output_tensor.copy_(all_gather_tensor(input_tensor, gather_dim, group))


def reduce_scatter_tensor_inplace(
    output: Tensor,
    input: Tensor,
    op: str = "sum",
    group: Any = None,
    async_op: bool = False,
    scatter_dim: int = 0,
    tag: str = "",
) -> Tensor:
    """reduce_scatter_tensor into a tensor."""
    _not_async(async_op)
    return output.copy_(reduce_scatter_tensor(input, op, scatter_dim, group))


def all_reduce_inplace(tensor: Tensor, op: str = "sum", group: Any = None, async_op: bool = False, tag: str = "") -> Tensor:
    """all_reduce into the tensor itself."""
    _not_async(async_op)
    return tensor.copy_(all_reduce(tensor, op, group))


def all_to_all_inplace(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
    tag: str = "",
) -> Tensor:
    """all_to_all_single into a tensor."""
    _not_async(async_op)
    return output.copy_(all_to_all_single(input, output_split_sizes, input_split_sizes, group))


def all_gather_inplace(
    tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False, tag: str = ""
) -> list[Tensor]:
    """All processes' tensors, into those of a list."""
    _not_async(async_op)
    whole = all_gather_tensor(tensor, 0, group)
    for target, part in zip(tensor_list, whole.split([each.size(0) for each in tensor_list]), strict=True):
        target.copy_(part)
    return tensor_list
