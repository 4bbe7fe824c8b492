"""Collectives of Python objects: pickled, sent as tensors of bytes with their lengths.

Unpickling runs code, so the processes of a group must trust each other, as in torch.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.device import device as Device
from .._core.tensor import Tensor, make_tensor
from .._ops.creation.conversion import to
from . import _collectives, _messages
from ._groups import get_rank, get_world_size, group_or_default, is_member, rank_in_group, warn_not_in_group

__all__ = [
    "all_gather_object",
    "broadcast_object_list",
    "gather_object",
    "recv_object_list",
    "scatter_object_list",
    "send_object_list",
]


def _to_tensor(value: Any) -> Tensor:
    stream = io.BytesIO()
    pickle.Pickler(stream).dump(value)
    return make_tensor(np.frombuffer(stream.getvalue(), np.uint8).copy())


def _from_tensor(tensor: Tensor, length: int) -> Any:
    return pickle.loads(tensor._array[:length].tobytes())


def _lengths(values: list[int]) -> Tensor:
    return make_tensor(np.array(values, np.int64))


def _bytes(count: int) -> Tensor:
    return make_tensor(np.zeros(count, np.uint8))


def _padded(tensor: Tensor, length: int) -> Tensor:
    padded = _bytes(length)
    padded._array[: tensor.numel()] = tensor._array
    return padded


def _check_device(device: Any, group: Any, what: str) -> None:
    carrier = _carrier(group)
    if device is not None and Device(device).type != carrier:
        raise NotImplementedError(f"{what}(device={device!r}): this group sends objects as tensors of the device {carrier}")


def _carrier(group: Any) -> str:
    """The kind of device whose tensors carry a group's objects: the CPU if the group serves it."""
    return next(iter(group_or_default(group)._engines))


def _carried(collective: Callable[..., Any]) -> Callable[..., Any]:
    """A collective of tensors of the CPU, by way of the device that the group serves."""

    def run(*arguments: Any, group: Any = None, **kwargs: Any) -> Any:
        device = _carrier(group)
        if device == "cpu":
            return collective(*arguments, group=group, **kwargs)
        copies: list[tuple[Tensor, Tensor]] = []

        def moved(value: Any) -> Any:
            if isinstance(value, list):
                return [moved(each) for each in value]
            if isinstance(value, Tensor):
                copies.append((value, to(value, device)))
                return copies[-1][1]
            return value

        result = collective(*map(moved, arguments), group=group, **kwargs)
        for tensor, copy in copies:
            tensor._array[...] = to(copy, "cpu")._array
        return result

    return run


all_gather, broadcast = _carried(_collectives.all_gather), _carried(_collectives.broadcast)
gather, scatter = _carried(_collectives.gather), _carried(_collectives.scatter)
send, recv = _carried(_messages.send), _carried(_messages.recv)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """The list becomes every process's object, by rank."""
    if not is_member(group):
        warn_not_in_group("all_gather_object")
        return
    mine = _to_tensor(obj)
    size = get_world_size(group)
    lengths = [_lengths([0]) for _ in range(size)]
    all_gather(lengths, _lengths([mine.numel()]), group=group)
    longest = max(int(each) for each in lengths)
    parts = [_bytes(longest) for _ in range(size)]
    all_gather(parts, _padded(mine, longest), group=group)
    object_list[:size] = [_from_tensor(part, int(length)) for part, length in zip(parts, lengths, strict=True)]


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """The list of the process `dst` becomes every process's object, by rank."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("gather_object")
        return
    if dst is None and group_dst is None:
        dst = 0
    root = rank_in_group(group, dst, group_dst)
    is_root = group.rank() == root
    if is_root and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if not is_root and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    mine = _to_tensor(obj)
    lengths = [_lengths([0]) for _ in range(group.size())]
    all_gather(lengths, _lengths([mine.numel()]), group=group)
    longest = max(int(each) for each in lengths)
    parts = [_bytes(longest) for _ in range(group.size())] if is_root else None
    gather(_padded(mine, longest), parts, group=group, group_dst=root)
    if object_gather_list is not None and parts is not None:
        object_gather_list[: len(parts)] = [
            _from_tensor(part, int(length)) for part, length in zip(parts, lengths, strict=True)
        ]


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None, group_src: int | None = None
) -> None:
    """Every process's list becomes that of the process `src`, of which it must have the length."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("broadcast_object_list")
        return
    _check_device(device, group, "broadcast_object_list")
    if src is None and group_src is None:
        src = 0
    root = rank_in_group(group, src, group_src)
    is_root = group.rank() == root
    if is_root:
        whole, lengths = _joined(object_list)
    else:
        lengths = _lengths([0] * len(object_list))
    broadcast(lengths, group=group, group_src=root)
    if not is_root:
        whole = _bytes(int(lengths.sum()))
    broadcast(whole, group=group, group_src=root)
    if not is_root:
        _split_into(object_list, whole, lengths)


def _joined(objects: list[Any]) -> tuple[Tensor, Tensor]:
    """Objects as one tensor of bytes, and the length of each."""
    parts = [_to_tensor(each) for each in objects]
    joined = np.concatenate([part._array for part in parts]) if parts else np.zeros(0, np.uint8)
    return make_tensor(joined), _lengths([part.numel() for part in parts])


def _split_into(objects: list[Any], whole: Tensor, lengths: Tensor) -> None:
    at = 0
    for number, length in enumerate(lengths.tolist()):
        objects[number] = pickle.loads(whole._array[at : at + length].tobytes())
        at += length


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: list[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """The first entry of every process's output list becomes its rank's one in the input list of the process `src`."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("scatter_object_list")
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    if src is None and group_src is None:
        src = 0
    root = rank_in_group(group, src, group_src)
    is_root = group.rank() == root
    parts: list[Tensor] = []
    if is_root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        parts = [_to_tensor(each) for each in scatter_object_input_list]
    longest = _lengths([max((part.numel() for part in parts), default=0)])
    broadcast(longest, group=group, group_src=root)
    mine, length = _bytes(int(longest)), _lengths([0])
    scatter(mine, [_padded(part, int(longest)) for part in parts] or None, group=group, group_src=root)
    scatter(length, [_lengths([part.numel()]) for part in parts] or None, group=group, group_src=root)
    scatter_object_output_list[0] = _from_tensor(mine, int(length))


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Send objects to a process, which receives them by `recv_object_list`. A batch is no other thing on the CPU."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("send_object_list")
        return
    _check_device(device, group, "send_object_list")
    to = rank_in_group(group, dst, group_dst)
    if to == get_rank(group):
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    whole, lengths = _joined(object_list)
    send(lengths, group=group, group_dst=to)
    send(whole, group=group, group_dst=to)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receive as many objects as the list has entries; the rank that they came from."""
    group = group_or_default(group)
    if not is_member(group):
        warn_not_in_group("recv_object_list")
        return -1
    _check_device(device, group, "recv_object_list")
    lengths = _lengths([0] * len(object_list))
    source = recv(lengths, src, group=group, group_src=group_src)
    whole = _bytes(int(lengths.sum()))
    if recv(whole, source, group=group) != source:
        raise RuntimeError("Mismatch in return ranks for object sizes and objects.")
    _split_into(object_list, whole, lengths)
    return source
