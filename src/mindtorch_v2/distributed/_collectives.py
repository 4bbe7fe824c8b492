"""Collectives of tensors, with torch's arguments, checks and words. Each runs one op of `_c10d_ops`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._core.tensor import Tensor
from .._ops.creation.factories import empty
from . import _c10d_ops as ops
from ._groups import group_or_default, is_member, rank_in_group, warn_not_in_group
from ._reduce_ops import ReduceOp, kind_of
from ._work import Work
from .constants import default_pg_timeout

_NO_COMPLEX = ("MAX", "MIN", "PRODUCT", "BAND", "BOR", "BXOR")


def _check_tensor(value: Any, name: str) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def _check_tensors(value: Any, name: str) -> None:
    head = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             but got"
    if not isinstance(value, list | tuple):
        raise TypeError(f"{head} {type(value)} instead.")
    if not all(isinstance(each, Tensor) for each in value):
        raise TypeError(f"{head} {type(value)} with elements of type {[type(each) for each in value]}.")


def _check_one_dtype(*groups: Any) -> None:
    tensors = [each for group in groups for each in ([group] if isinstance(group, Tensor) else group)]
    for each in tensors[1:]:
        if each.dtype != tensors[0].dtype:
            raise ValueError(f"Invalid usage of tensors with different dtypesFound {tensors[0].dtype} and  {each.dtype}")


def _check_sizes(tensors: Sequence[Tensor], like: Tensor, what: str) -> None:
    for at, each in enumerate(tensors):
        if each.shape != like.shape:
            wanted, got = (f"({', '.join(map(str, shape))})" for shape in (like.shape, each.shape))
            raise RuntimeError(f"ProcessGroupGloo::{what}: invalid tensor size at index {at} (expected {wanted}, got {got})")


def _check_number(outputs: Sequence[Tensor], group: Any) -> None:
    if len(outputs) != group.size():
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid output tensor list at index 0 (expected length {group.size()}, "
            f"got {len(outputs)})"
        )


def _check_root(root: int, group: Any, what: str) -> None:
    if not 0 <= root < group.size():
        raise RuntimeError(f"ProcessGroupGloo::{what}: invalid root rank: {root}")


def _check_reducible(tensor: Tensor, op: Any, what: str) -> None:
    kind = kind_of(op)
    if tensor.is_complex() and kind.name in _NO_COMPLEX:
        raise ValueError(f"{what} does not support {kind} on complex tensors")


def _done(work: Work, async_op: bool) -> Work | None:
    if async_op:
        return work
    work.wait()
    return None


def supports_complex(reduceOp: Any) -> bool:  # noqa: N803  torch's name
    """Whether a reduction is defined for complex numbers: sums and means are."""
    return kind_of(reduceOp).name not in _NO_COMPLEX


def _deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` is deprecated. Please use `torch.distributed.{instead}` instead.",
        FutureWarning,
        stacklevel=3,
    )


def _discouraged(name: str) -> None:
    warnings.warn(
        f"`torch.distributed.{name}` will be deprecated. If you must use it, please revisit our documentation later at "
        "https://pytorch.org/docs/main/distributed.html#collective-functions",
        FutureWarning,
        stacklevel=3,
    )


# ---------------------------------------------------------------------- reductions


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Every process's tensor becomes the reduction of all, in place."""
    _check_tensor(tensor, "tensor")
    if not is_member(group):
        warn_not_in_group("all_reduce")
        return None
    group = group_or_default(group)
    _check_reducible(tensor, op, "all_reduce")
    return _done(ops.allreduce_([tensor], group, op, None, async_op, -1)[1], async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The same for several tensors of one dtype, as one message."""
    _discouraged("all_reduce_coalesced")
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    _check_tensors(tensors, "tensor")
    _check_one_dtype(tensors)
    if not is_member(group):
        warn_not_in_group("all_reduce_coalesced")
        return None
    group = group_or_default(group)
    for each in tensors:
        _check_reducible(each, op, "all_reduce")
    return _done(ops.allreduce_coalesced_(list(tensors), group, op, async_op, -1), async_op)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The tensor of the process `dst` becomes the reduction of all."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("reduce")
        return None
    root = rank_in_group(group, dst, group_dst)
    _check_tensor(tensor, "tensor")
    _check_root(root, group, "reduce")
    return _done(ops.reduce_([tensor], group, op, root, 0, async_op, -1), async_op)


def reduce_scatter(
    output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Every process's output becomes the reduction of what all have for its rank in their `input_list`."""
    _check_tensor(output, "output")
    _check_tensors(input_list, "input_list")
    _check_one_dtype(output, input_list)
    if not is_member(group):
        warn_not_in_group("reduce_scatter")
        return None
    group = group_or_default(group)
    if len(input_list) != group.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    return _done(ops.reduce_scatter_([output], [list(input_list)], group, op, async_op, -1)[1], async_op)


def reduce_scatter_single(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Every process's output becomes its part, by rank, of the reduction of all inputs."""
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    if not is_member(group):
        warn_not_in_group("reduce_scatter_tensor")
        return None
    group = group_or_default(group)
    if output.numel() * group.size() != input.numel():
        raise RuntimeError(
            f"Check failed: outputShape[0] * worldSize == inputShape[0] ({output.numel() * group.size()} vs. {input.numel()}). "
        )
    return _done(ops._reduce_scatter_base_(output, input, group, op, async_op, -1)[1], async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """The former name of `reduce_scatter_single`."""
    _deprecated("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


# ---------------------------------------------------------------------- moving


def broadcast(
    tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False, group_src: int | None = None
) -> Work | None:
    """Every process's tensor becomes that of the process `src`."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("broadcast")
        return None
    root = rank_in_group(group, src, group_src)
    _check_tensor(tensor, "tensor")
    _check_root(root, group, "broadcast")
    return _done(ops.broadcast_([tensor], group, root, 0, async_op, -1)[1], async_op)


def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The tensors of the list become every process's tensor, by rank."""
    _check_tensors(tensor_list, "tensor_list")
    _check_tensor(tensor, "tensor")
    _check_one_dtype(tensor_list, tensor)
    if not is_member(group):
        warn_not_in_group("all_gather")
        return None
    group = group_or_default(group)
    _check_number(tensor_list, group)
    _check_sizes(tensor_list, tensor, "allgather")
    return _done(ops.allgather_([tensor_list], [tensor], group, async_op, -1)[1], async_op)


def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """The output becomes every process's input, one after another by rank."""
    _check_tensor(input_tensor, "input_tensor")
    _check_tensor(output_tensor, "output_tensor")
    if not is_member(group):
        warn_not_in_group("all_gather_into_tensor")
        return None
    group = group_or_default(group)
    if output_tensor.dtype != input_tensor.dtype:
        raise RuntimeError(
            f"ProcessGroupGloo::allgather: invalid tensor type at index 0 (expected {input_tensor.dtype}, "
            f"got {output_tensor.dtype})"
        )
    if output_tensor.numel() != input_tensor.numel() * group.size():
        # As a list of parts, which is how torch looks at it.
        parts = output_tensor.reshape(-1).chunk(group.size())
        _check_number(parts, group)
        _check_sizes(parts, input_tensor.reshape(-1), "allgather")
    return _done(ops._allgather_base_(output_tensor, input_tensor, group, async_op, -1)[1], async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """The former name of `all_gather_single`."""
    _deprecated("all_gather_into_tensor", "all_gather_single")
    return all_gather_single(output_tensor, input_tensor, group, async_op)


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """The same as `all_gather` for several tensors: `output_tensor_lists` has a list of them for each process."""
    _discouraged("all_gather_coalesced")
    if not is_member(group):
        warn_not_in_group("all_gather_coalesced")
        return None
    _check_tensors(input_tensor_list, "tensor_list")
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for each in output_tensor_lists:
        _check_tensors(each, "output_tensor_lists")
    works = [
        all_gather([outputs[at] for outputs in output_tensor_lists], tensor, group, async_op=True)
        for at, tensor in enumerate(input_tensor_list)
    ]
    if async_op:
        return works[-1].get_future() if works and works[-1] is not None else None
    for work in works:
        if work is not None:
            work.wait()
    return None


def gather(
    tensor: Tensor,
    gather_list: list[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """The list of the process `dst` becomes every process's tensor, by rank."""
    _check_tensor(tensor, "tensor")
    _check_tensors(gather_list or [], "gather_list")
    _check_one_dtype(tensor, gather_list or [])
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("gather")
        return None
    if dst is None and group_dst is None:
        dst = 0
    root = rank_in_group(group, dst, group_dst)
    if group.rank() == root:
        if not gather_list:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        if len(gather_list) != group.size():
            raise RuntimeError(
                f"ProcessGroupGloo::gather: Incorrect output list size {len(gather_list)}. Output list size should be "
                f"{group.size()}, same as size of the process group."
            )
        _check_sizes(gather_list, tensor, "gather")
    elif gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    _check_root(root, group, "gather")
    return _done(ops.gather_([gather_list] if gather_list else [], [tensor], group, root, async_op, -1), async_op)


def scatter(
    tensor: Tensor,
    scatter_list: list[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Every process's tensor becomes its rank's one in the list of the process `src`."""
    _check_tensor(tensor, "tensor")
    _check_tensors(scatter_list or [], "scatter_list")
    _check_one_dtype(tensor, scatter_list or [])
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("scatter")
        return None
    if src is None and group_src is None:
        src = 0
    root = rank_in_group(group, src, group_src)
    if group.rank() == root:
        if not scatter_list:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        if len(scatter_list) != group.size():
            raise RuntimeError(
                f"ProcessGroupGloo::scatter: Incorrect input list size {len(scatter_list)}. Input list size should be "
                f"{group.size()}, same as size of the process group."
            )
        _check_sizes(scatter_list, tensor, "scatter")
    elif scatter_list:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    _check_root(root, group, "scatter")
    return _done(ops.scatter_([tensor], [scatter_list] if scatter_list else [], group, root, async_op, -1)[1], async_op)


def all_to_all(
    output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Work | None:
    """Each tensor of the first list becomes the one that the process of that rank has for this process in its second."""
    if not is_member(group):
        warn_not_in_group("all_to_all")
        return None
    _check_tensors(output_tensor_list, "output_tensor_list")
    _check_tensors(input_tensor_list, "input_tensor_list")
    _check_one_dtype(output_tensor_list, input_tensor_list)
    group = group_or_default(group)
    for name, tensors in (("input", input_tensor_list), ("output", output_tensor_list)):
        if len(tensors) != group.size():
            raise RuntimeError(
                f"ProcessGroupGloo::alltoall: {name} tensor list size {len(tensors)} does not match world size {group.size()}"
            )
    return _done(ops.alltoall_(output_tensor_list, input_tensor_list, group, async_op, -1)[1], async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: list[int] | None = None,
    input_split_sizes: list[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Rows of the input go to the processes by rank, in equal parts or as the sizes say; the output gets theirs."""
    if not is_member(group):
        warn_not_in_group("all_to_all_single")
        return None
    _check_tensor(output, "output")
    _check_tensor(input, "input")
    _check_one_dtype(output, input)
    group = group_or_default(group)
    splits = output_split_sizes or [], input_split_sizes or []
    return _done(ops.alltoall_base_(output, input, group, *splits, async_op, -1), async_op)


# ---------------------------------------------------------------------- barriers


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None, timeout: timedelta | None = None) -> Work | None:
    """Return when every process has called it."""
    if not is_member(group):
        warn_not_in_group("barrier")
        return None
    group = group_or_default(group)
    if device_ids is not None and not isinstance(device_ids, list):
        raise TypeError("Invalid function argument: device_ids type should be List[int]")
    limit = -1 if timeout is None else round(timeout.total_seconds() * 1000)
    work = ops.barrier(empty(1, dtype=_uint8()), group, device_ids or [], async_op, limit)
    return _done(work, async_op)


def _uint8() -> Any:
    from .._core.dtype import DTYPES

    return DTYPES["uint8"]


def monitored_barrier(group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """A barrier that tells which ranks did not come in time: the first, or all with `wait_all_ranks`."""
    if not is_member(group):
        warn_not_in_group("monitored_barrier")
        return
    group = group_or_default(group)
    limit = default_pg_timeout if timeout is None else timeout  # not the group's, as in torch
    ops.monitored_barrier_(empty(0), group, [], round(limit.total_seconds() * 1000), wait_all_ranks)


__all__ = [
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "gather",
    "monitored_barrier",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "supports_complex",
]
