"""The ops of torch's namespace c10d: one for each collective, with its schema, so that profiles and dispatch modes see them.

Their bodies call the group's method of that name; a negative timeout means the group's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.registry import composite
from ._process_group import ProcessGroup
from ._work import Work, background

_GROUP = "__torch__.torch.classes.c10d.ProcessGroup process_group"
_OP = "__torch__.torch.classes.c10d.ReduceOp reduce_op"
_WORK = "__torch__.torch.classes.c10d.Work"
_ASYNC = "bool async_op=True, int timeout=-1"


def _timeout(milliseconds: int) -> timedelta | None:
    return None if milliseconds < 0 else timedelta(milliseconds=milliseconds)


def _noted(work: Work, async_op: bool) -> Work:
    """The work, whose record says whether the caller waits for it; if not, the background thread tests it."""
    if async_op and not work._done:
        background.watch(work)
    if work.recorded is not None:
        work.recorded.is_async = async_op
    return work


def _op(name: str, arguments: str, returns: str, body: Any) -> Any:
    return composite(f"c10d::{name}({arguments}) -> {returns}", body, nondiff=True)


def _allreduce(
    tensors: list[Tensor], group: ProcessGroup, op: Any, sparse: Any, async_op: bool, timeout: int
) -> tuple[list[Tensor], Work]:
    return tensors, _noted(group.allreduce(tensors, op, _timeout(timeout)), async_op)


def _allreduce_coalesced(tensors: list[Tensor], group: ProcessGroup, op: Any, async_op: bool, timeout: int) -> Work:
    return _noted(group.allreduce_coalesced(tensors, op, _timeout(timeout)), async_op)


def _broadcast(
    tensors: list[Tensor], group: ProcessGroup, root: int, root_tensor: int, async_op: bool, timeout: int
) -> tuple[list[Tensor], Work]:
    return tensors, _noted(group.broadcast(tensors, root, _timeout(timeout)), async_op)


def _reduce(
    tensors: list[Tensor], group: ProcessGroup, op: Any, root: int, root_tensor: int, async_op: bool, timeout: int
) -> Work:
    return _noted(group.reduce(tensors, root, op, _timeout(timeout)), async_op)


def _allgather(
    outputs: list[list[Tensor]], inputs: list[Tensor], group: ProcessGroup, async_op: bool, timeout: int
) -> tuple[list[list[Tensor]], Work]:
    return outputs, _noted(group.allgather(outputs[0], inputs[0], _timeout(timeout)), async_op)


def _allgather_base(output: Tensor, input: Tensor, group: ProcessGroup, async_op: bool, timeout: int) -> tuple[Tensor, Work]:
    return output, _noted(group._allgather_base(output, input, _timeout(timeout)), async_op)


def _reduce_scatter(
    outputs: list[Tensor], inputs: list[list[Tensor]], group: ProcessGroup, op: Any, async_op: bool, timeout: int
) -> tuple[list[Tensor], Work]:
    return outputs, _noted(group.reduce_scatter(outputs[0], inputs[0], op, _timeout(timeout)), async_op)


def _reduce_scatter_base(
    output: Tensor, input: Tensor, group: ProcessGroup, op: Any, async_op: bool, timeout: int
) -> tuple[Tensor, Work]:
    return output, _noted(group._reduce_scatter_base(output, input, op, _timeout(timeout)), async_op)


def _gather(
    outputs: list[list[Tensor]], inputs: list[Tensor], group: ProcessGroup, root: int, async_op: bool, timeout: int
) -> Work:
    return _noted(group.gather(outputs[0] if outputs else [], inputs[0], root, _timeout(timeout)), async_op)


def _scatter(
    outputs: list[Tensor], inputs: list[list[Tensor]], group: ProcessGroup, root: int, async_op: bool, timeout: int
) -> tuple[list[Tensor], Work]:
    return outputs, _noted(group.scatter(outputs[0], inputs[0] if inputs else [], root, _timeout(timeout)), async_op)


def _alltoall(
    outputs: list[Tensor], inputs: list[Tensor], group: ProcessGroup, async_op: bool, timeout: int
) -> tuple[list[Tensor], Work]:
    return outputs, _noted(group.alltoall(outputs, inputs, _timeout(timeout)), async_op)


def _alltoall_base(
    output: Tensor,
    input: Tensor,
    group: ProcessGroup,
    output_split_sizes: Sequence[int],
    input_split_sizes: Sequence[int],
    async_op: bool,
    timeout: int,
) -> Work:
    return _noted(group.alltoall_base(output, input, output_split_sizes, input_split_sizes, _timeout(timeout)), async_op)


def _barrier(tensor: Tensor, group: ProcessGroup, device_ids: Sequence[int], async_op: bool, timeout: int) -> Work:
    return _noted(group.barrier(_timeout(timeout)), async_op)


def _monitored_barrier(
    tensor: Tensor, group: ProcessGroup, device_ids: Sequence[int], timeout: int, wait_all_ranks: bool
) -> None:
    group.monitored_barrier(_timeout(timeout), wait_all_ranks)


def _send(tensors: list[Tensor], group: ProcessGroup, dst: int, tag: int) -> Work:
    return group.send(tensors, dst, tag)


def _recv(tensors: list[Tensor], group: ProcessGroup, src: int, tag: int) -> Work:
    return group.recv(tensors, src, tag)


def _recv_any_source(tensors: list[Tensor], group: ProcessGroup, tag: int) -> Work:
    return group.recv(tensors, None, tag)


allreduce_ = _op(
    "allreduce_", f"Tensor[] tensors, {_GROUP}, {_OP}, Tensor? sparse_indices, {_ASYNC}", f"(Tensor[], {_WORK})", _allreduce
)
allreduce_coalesced_ = _op("allreduce_coalesced_", f"Tensor[] tensors, {_GROUP}, {_OP}, {_ASYNC}", _WORK, _allreduce_coalesced)
broadcast_ = _op(
    "broadcast_", f"Tensor[] tensors, {_GROUP}, int root_rank, int root_tensor, {_ASYNC}", f"(Tensor[], {_WORK})", _broadcast
)
reduce_ = _op("reduce_", f"Tensor[] tensors, {_GROUP}, {_OP}, int root_rank, int root_tensor, {_ASYNC}", _WORK, _reduce)
allgather_ = _op(
    "allgather_",
    f"Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, {_ASYNC}",
    f"(Tensor[][], {_WORK})",
    _allgather,
)
_allgather_base_ = _op(
    "_allgather_base_", f"Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_ASYNC}", f"(Tensor, {_WORK})", _allgather_base
)
reduce_scatter_ = _op(
    "reduce_scatter_",
    f"Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, {_OP}, {_ASYNC}",
    f"(Tensor[], {_WORK})",
    _reduce_scatter,
)
_reduce_scatter_base_ = _op(
    "_reduce_scatter_base_",
    f"Tensor output_tensor, Tensor input_tensor, {_GROUP}, {_OP}, {_ASYNC}",
    f"(Tensor, {_WORK})",
    _reduce_scatter_base,
)
gather_ = _op(
    "gather_", f"Tensor[][] output_tensors, Tensor[] input_tensors, {_GROUP}, int root_rank, {_ASYNC}", _WORK, _gather
)
scatter_ = _op(
    "scatter_",
    f"Tensor[] output_tensors, Tensor[][] input_tensors, {_GROUP}, int root_rank, {_ASYNC}",
    f"(Tensor[], {_WORK})",
    _scatter,
)
alltoall_ = _op(
    "alltoall_", f"Tensor[] output_tensors, Tensor[] input_tensors, {_GROUP}, {_ASYNC}", f"(Tensor[], {_WORK})", _alltoall
)
alltoall_base_ = _op(
    "alltoall_base_",
    f"Tensor output, Tensor input, {_GROUP}, int[] output_split_sizes, int[] input_split_sizes, {_ASYNC}",
    _WORK,
    _alltoall_base,
)
barrier = _op("barrier", f"Tensor tensor, {_GROUP}, int[] device_ids, {_ASYNC}", _WORK, _barrier)
monitored_barrier_ = _op(
    "monitored_barrier_",
    f"Tensor tensor, {_GROUP}, int[] device_ids, int timeout, bool wait_all_ranks",
    "()",
    _monitored_barrier,
)
send = _op("send", f"Tensor[] tensors, {_GROUP}, int dst, int tag", _WORK, _send)
recv_ = _op("recv_", f"Tensor[] tensors, {_GROUP}, int src, int tag", _WORK, _recv)
recv_any_source_ = _op("recv_any_source_", f"Tensor[] tensors, {_GROUP}, int tag", _WORK, _recv_any_source)
