"""Messages between two processes: send, recv, their asynchronous forms, and batches of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from . import _c10d_ops as ops
from ._collectives import _check_tensor
from ._groups import (
    get_global_rank,
    group_or_default,
    is_member,
    rank_in_group,
    warn_not_in_group,
)
from ._work import Work

__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]


def isend(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> Work | None:
    """Begin to send a tensor; it must not be changed before the work is done."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("isend")
        return None
    to = rank_in_group(group, dst, group_dst)
    _check_tensor(tensor, "tensor")
    if to == group.rank():
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    work: Work = ops.send([tensor], group, to, tag)
    return work


def irecv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> Work | None:
    """Begin to receive a tensor, from any process if none is named."""
    _check_tensor(tensor, "tensor")
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("irecv")
        return None
    work: Work
    if src is None and group_src is None:
        work = ops.recv_any_source_([tensor], group, tag)
    else:
        work = ops.recv_([tensor], group, rank_in_group(group, src, group_src), tag)
    return work


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Send a tensor, and return when it may be changed again."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receive a tensor; the rank that it came from, -1 if this process is not in the group."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    if src is not None:
        return src
    return get_global_rank(group, work.source_rank())


class P2POp:
    """A message of a batch: `isend` or `irecv`, with its arguments."""

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or ``torch.distributed.irecv``."
            )
        _check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = group_or_default(group)
        self.group_peer = rank_in_group(self.group, peer, group_peer)
        self.peer = get_global_rank(self.group, self.group_peer) if peer is None else peer

    def __repr__(self) -> str:
        mine = self.group.rank()
        source, target = (mine, self.group_peer) if self.op is isend else (self.group_peer, mine)
        return (
            f"P2POp({self.op.__name__} pg={self.group.group_name}, group_src={source}, group_dst={target},  "
            f"{self.tensor.shape}, {self.tensor.dtype})"
        )


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> list[Work]:
    """Begin all messages of a list."""
    if not all(isinstance(each, P2POp) for each in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    group = p2p_op_list[0].group
    if any(each.group is not group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    if p2p_op_list[0].tensor.device.type == "npu":
        if any(each.tag for each in p2p_op_list):
            raise RuntimeError("HCCL has no tags of messages")
        return [group.messages([(each.op is isend, each.tensor, each.group_peer) for each in p2p_op_list])]
    works = []
    for each in p2p_op_list:
        side = {"group_dst" if each.op is isend else "group_src": each.group_peer}
        work = each.op(each.tensor, group=each.group, tag=each.tag, **side)
        if work is not None:
            works.append(work)
    return works
