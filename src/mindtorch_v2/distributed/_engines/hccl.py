"""The engine of NPUs: HCCL, through CANN. Buffers are row-major arrays in device memory.

A collective goes into the communicator's own stream, behind what the caller's stream has to do; what has to be done with its
result follows there. Nothing waits on the host: a request is done when the device has passed its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from importlib import import_module
from typing import Any

from .._errors import DistBackendError
from .._store.stores import PrefixStore, Store
from .engine import Buffer, Request


def _part(name: str) -> Any:
    """A file of the NPU's binding, which is loaded on demand."""
    return import_module(f"mindtorch_v2._backends.npu.{name}")


def why_unavailable() -> str | None:
    """Why NPUs cannot talk here, None if they can."""
    reason: str | None = _part("hccl").why_unavailable()
    return reason


def start(store: Store, ranks: Sequence[int], rank: int, timeout: timedelta) -> HcclCommunicator:
    """The communicator of some ranks of the world, which meet by a store; the device is the current one of each."""
    device = _part("devices").current_device()
    mine = list(ranks).index(rank)
    if mine == 0:
        store.set("root info", _part("hccl").root_info())
    else:
        store.wait(["root info"], timeout)
    return HcclCommunicator(_part("hccl").Comm(store.get("root info"), mine, len(ranks), device), store, ranks, timeout)


class DeviceRequest:
    """Work in a communicator's stream. `seal` puts what follows it there, and the mark of its end."""

    def __init__(self, communicator: HcclCommunicator, source: int = -1) -> None:
        self._communicator, self._source = communicator, source
        self._event: Any = None

    def seal(self, finish: Callable[[], None] | None) -> None:
        """Have the device do what is left to do, such as copying results to their tensors."""
        streams, stream = _part("streams"), self._communicator.stream
        if finish is not None:
            before = streams.current_stream(stream.device_index)
            streams.set_current_stream(stream)
            try:
                finish()
            finally:
                streams.set_current_stream(before)
        self._event = stream.record_event()

    def test(self) -> bool:
        """Whether the device has passed it."""
        if not self._event.query():
            return False
        self._communicator.raise_failure()
        return True

    def follow(self) -> None:
        """Have the caller's stream go on after it."""
        stream = self._communicator.stream
        _part("streams").current_stream(stream.device_index).wait_event(self._event)

    def source(self) -> int:
        """The rank that a message came from."""
        return self._source


class HcclCommunicator:
    """`engine.Communicator` on HCCL's."""

    is_alone = False

    def __init__(self, comm: Any, store: Store, ranks: Sequence[int], timeout: timedelta) -> None:
        self._comm, self._store, self._ranks, self._timeout = comm, store, tuple(ranks), timeout
        self.rank: int = comm.rank
        self.size: int = comm.size
        self.stream = _part("streams").Stream(comm.device_index)

    def raise_failure(self) -> None:
        """DistBackendError if HCCL says that something failed, with what the stream says of it."""
        reason = self._comm.failure()
        if reason is None:
            return
        try:
            self.stream.synchronize(0)
        except _part("errors").NPUError as error:
            reason = str(error)
        raise DistBackendError(f"HCCL: {reason}")

    def _begin(self, run: Callable[[Any], None], *buffers: Buffer | None, source: int = -1) -> Request:
        device = self.stream.device_index
        self.stream.wait_stream(_part("streams").current_stream(device))
        _part("tensors").used_by(self.stream, *(each for each in buffers if each is not None and each.size))
        run(self.stream)
        return DeviceRequest(self, source)

    def all_reduce(self, buffer: Buffer, op: str) -> Request:
        """HcclAllReduce in place."""
        return self._begin(lambda stream: self._comm.all_reduce(buffer, op, stream), buffer)

    def reduce(self, buffer: Buffer, op: str, root: int) -> Request:
        """HcclReduce, in place at the root."""
        return self._begin(lambda stream: self._comm.reduce(buffer, op, root, stream), buffer)

    def reduce_scatter(self, parts: Buffer, part: Buffer, op: str) -> Request:
        """HcclReduceScatter."""
        return self._begin(lambda stream: self._comm.reduce_scatter(parts, part, op, stream), parts, part)

    def broadcast(self, buffer: Buffer, root: int) -> Request:
        """HcclBroadcast."""
        return self._begin(lambda stream: self._comm.broadcast(buffer, root, stream), buffer)

    def all_gather(self, part: Buffer, parts: Buffer) -> Request:
        """HcclAllGather."""
        return self._begin(lambda stream: self._comm.all_gather(part, parts, stream), part, parts)

    def gather(self, part: Buffer, parts: Buffer | None, root: int) -> Request:
        """Messages to the root: HCCL has no gather."""
        message = _part("hccl").Message
        if parts is None:
            return self._begin(lambda stream: self._comm.messages([message(True, part, root)], stream), part)
        _part("tensors").assign(parts[root], part.reshape(-1))
        wanted = [message(False, parts[rank], rank) for rank in range(self.size) if rank != root]
        if not wanted:
            return self._begin(lambda stream: None, part, parts)
        return self._begin(lambda stream: self._comm.messages(wanted, stream), part, parts)

    def scatter(self, parts: Buffer | None, part: Buffer, root: int) -> Request:
        """HcclScatter."""
        return self._begin(lambda stream: self._comm.scatter(parts, part, root, stream), parts, part)

    def all_to_all(self, sent: Buffer, counts: Sequence[int], received: Buffer, received_counts: Sequence[int]) -> Request:
        """HcclAlltoAll, or HcclAlltoAllV where numbers differ."""
        sides = sent, counts, received, received_counts
        return self._begin(lambda stream: self._comm.all_to_all(*sides, stream), sent, received)

    def send(self, buffer: Buffer, peer: int, tag: int) -> Request:
        """HcclSend."""
        return self.messages([(True, buffer, peer)])

    def receive(self, buffer: Buffer, peer: int | None, tag: int) -> Request:
        """HcclRecv."""
        assert peer is not None
        return self.messages([(False, buffer, peer)])

    def messages(self, messages: Sequence[tuple[bool, Buffer, int]]) -> Request:
        """HcclSend, HcclRecv, or HcclBatchSendRecv for several, none of which waits for another."""
        wanted = [_part("hccl").Message(*each) for each in messages]
        source = wanted[0].peer if len(wanted) == 1 and not wanted[0].is_sent else -1
        buffers = [each.buffer for each in wanted]
        return self._begin(lambda stream: self._comm.messages(wanted, stream), *buffers, source=source)

    def barrier(self) -> Request:
        """HcclBarrier."""
        return self._begin(self._comm.barrier)

    def subgroup(self, ranks: Sequence[int], key: int) -> HcclCommunicator:
        """A communicator of some ranks, which meet by the store."""
        chosen = [self._ranks[rank] for rank in ranks]
        store = PrefixStore(f"subgroup {key} of {'_'.join(map(str, chosen))}", self._store)
        return start(store, chosen, self._ranks[self.rank], self._timeout)

    def close(self) -> None:
        """Destroy it, if nothing of it is under way: what hangs goes with the process."""
        if self.stream.handle and self.stream.query():
            self._comm.destroy()
