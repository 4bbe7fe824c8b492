"""ProcessGroup: tensors in and out of a communicator. Each method begins one collective or message and returns its Work.

The methods are torch's, and the ops of `_c10d_ops` call them, so that a profile shows `c10d::allreduce_` where a caller waits.
"""

from __future__ import annotations

import enum
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .._core.memory_format import strided
from .._core.tensor import Tensor, make_tensor
from .._dispatch.communications import Communication
from ._arrays import Arrays, arrays_of
from ._engines.engine import Buffer, Communicator, Request
from ._engines.hccl import HcclCommunicator
from ._errors import DistBackendError
from ._reduce_ops import ReduceOp, kind_of
from ._store.stores import Store
from ._traffic import SeveralCommunications, Traffic, begin_checked, told_to_profiles
from ._work import DeviceWork, Work, background

DEFAULT_TIMEOUT = timedelta(minutes=30)
_BARRIER_TAG = 32_001  # of messages that no caller sends

# Reduced in float32 and rounded once: MPI does not know them.
_NARROW = ("float16", "bfloat16")
_REDUCED = ("float32", "float64", "complex64", "complex128", "int8", "uint8", "int32", "int64", "bool", *_NARROW)
_BITS = ("BAND", "BOR", "BXOR")
_REDUCED_BY_HCCL = ("float32", "complex64", "int8", "int16", "int32", "int64", "bool", *_NARROW)


class BackendType(enum.IntEnum):
    """The engine of a group, as torch numbers them."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = range(7)


class ProcessGroup:
    """Processes that call the same collectives in the same order."""

    BackendType = BackendType

    def __init__(
        self,
        engines: Mapping[str, Communicator],
        ranks: Sequence[int],
        *,
        backend: str,
        name: str,
        desc: str,
        store: Store,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """`engines` are by kind of device, "cpu" first; `ranks` are the group's in the world, by their rank in the group."""
        self._engines = dict(engines)
        self._communicator = next(iter(engines.values()))  # for what needs no tensor
        self._ranks = tuple(ranks)
        self._backend, self.group_name, self.group_desc = backend, name, desc
        self._store, self._timeout = store, timeout
        self._sequence = itertools.count(1)
        self._last_sequence = 0
        self._messages: Counter[tuple[int, int, int]] = Counter()
        self._broken: str | None = None

    # ------------------------------------------------------------------ what it is

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._communicator.rank

    def size(self) -> int:
        """The number of processes."""
        return self._communicator.size

    def name(self) -> str:
        """The name of the backend."""
        return self._backend

    def get_group_store(self) -> Store:
        """The store by which the processes met."""
        return self._store

    def set_timeout(self, timeout: timedelta) -> None:
        """How long operations that begin from now on may take."""
        self._timeout = timeout

    def _get_backend_name(self) -> str:
        return self._backend

    def _get_sequence_number_for_group(self) -> int:
        return self._last_sequence

    def shutdown(self) -> None:
        """Give the engine's resources back."""
        self._broken = "the group was destroyed"
        for engine in self._engines.values():
            engine.close()

    abort = shutdown

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} ({self._backend}): rank {self.rank()} of {self.size()}>"

    # ------------------------------------------------------------------ beginning something

    def _engine(self, tensor: Tensor) -> Any:
        """The engine for tensors of the same device."""
        kind = tensor.device.type
        if kind not in self._engines:
            raise RuntimeError(f"No backend type associated with device type {kind}")
        return self._engines[kind]

    def _begin(
        self,
        what: str,
        traffic: Traffic,
        begin: Callable[[], Request],
        results: list[Any],
        finish: Callable[[], None] | None = None,
        timeout: timedelta | None = None,
        engine: Communicator | None = None,
    ) -> Work:
        """Begin a collective or a message of an engine; without one, of that which needs no tensor."""
        is_message = traffic.collective in ("send", "recv")
        if not is_message:
            self._last_sequence = next(self._sequence)
        label = self._label(what)
        engine = self._communicator if engine is None else engine
        limit = self._timeout if timeout is None else timeout
        recorded = self._told(traffic, engine)
        if isinstance(engine, HcclCommunicator):
            # HCCL compares what the processes call by itself. All of it is in a stream: nothing is left to do on the host.
            on_device = DeviceWork(begin(), results, finish, label, limit, self._fail, recorded)
            on_device.holds_host = traffic.collective == "barrier"
            background.watch(on_device)
            return on_device
        request = begin() if is_message else begin_checked(self, traffic, begin)
        work = Work(request, results, finish, label, limit, self._fail, recorded, traffic.nbytes)
        if not work._advance() and is_message:
            background.watch(work)
        return work

    def _label(self, what: str) -> str:
        """An operation with its place, for errors; DistBackendError if the group cannot be used any more."""
        place = f"rank {self.rank()} of group {self.group_name!r} with {self.size()} processes"
        label = f"{what} ({place}, sequence number {self._last_sequence})"
        if self._broken is not None:
            raise DistBackendError(f"{label}: the group cannot be used any more: {self._broken}")
        return label

    def _told(self, traffic: Traffic, engine: Communicator) -> Communication | None:
        """What recordings are told of a collective or a message that begins."""
        number = self._message_number(traffic) if traffic.collective in ("send", "recv") else self._last_sequence
        return told_to_profiles(self, traffic, lambda: number, isinstance(engine, HcclCommunicator))

    def _message_number(self, traffic: Traffic) -> int:
        """How many messages between the two processes there have been with this tag: the same number at both ends."""
        if traffic.peer is None:
            return 0  # from any process: which one is known too late
        mine = self.rank()
        ends = (mine, traffic.peer) if traffic.collective == "send" else (traffic.peer, mine)
        self._messages[*ends, traffic.tag] += 1
        return self._messages[*ends, traffic.tag]

    def _fail(self, reason: str) -> None:
        self._broken = reason

    # ------------------------------------------------------------------ reductions

    def _reducible(self, tensor: Tensor, op: Any, arrays: Arrays) -> tuple[Buffer, str]:
        """The buffer and the operation of a reduction; what a backend does not know is refused in gloo's words."""
        kind = kind_of(op).name
        if kind == "PREMUL_SUM":
            raise NotImplementedError("ReduceOp.PREMUL_SUM: a reduction of NCCL, which does not exist here")
        if tensor.layout != strided:
            raise NotImplementedError(f"reductions of {tensor.layout} tensors between processes: use to_dense()")
        dtype = str(tensor.dtype).removeprefix("torch.")
        by_hccl = isinstance(self._engine(tensor), HcclCommunicator)
        if by_hccl and (dtype not in _REDUCED_BY_HCCL or kind in _BITS):
            raise RuntimeError(f"HCCL has no ReduceOp.{kind} of {dtype}")
        if dtype not in _REDUCED and not by_hccl:
            raise RuntimeError("Invalid scalar type")
        is_integral = "float" not in dtype and "complex" not in dtype
        if kind in _BITS and not is_integral:
            raise RuntimeError(f"Cannot use ReduceOp.{kind} with non-integral dtype")
        if (kind == "AVG" and is_integral) or (kind not in ("SUM", "AVG") and "complex" in dtype):
            raise RuntimeError(f"Cannot use ReduceOp.{kind} with {dtype}")
        if dtype == "bool":  # any, all, and so on: of numbers that are 0 or 1, wide enough for the sum
            wide = arrays.copied(tensor._array, np.int32)
            arrays.copied_back(tensor, wide)
            return wide, "MAX" if kind == "SUM" else kind
        if dtype in _NARROW and not by_hccl:
            wide = arrays.copied(tensor._array, np.float32)
            arrays.copied_back(tensor, wide)
            buffer = wide
        else:
            buffer = arrays.written(tensor)
        if "complex" in dtype:
            buffer = buffer.reshape(-1).view("f4" if buffer.itemsize == 8 else "f8")
        if kind == "AVG":
            arrays.divide(buffer, self.size())
            kind = "SUM"
        return buffer, kind

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """Every process's tensor becomes the reduction of all."""
        (tensor,) = _list(tensors)
        engine, arrays = self._engine(tensor), arrays_of(tensor)
        buffer, kind = self._reducible(tensor, op, arrays)
        traffic = Traffic("allreduce", [tensor], tensor.numel(), tensor.numel(), kind_of(op).name)
        return self._begin(
            "all_reduce", traffic, lambda: engine.all_reduce(buffer, kind), [tensor], arrays.finish, timeout, engine
        )

    def allreduce_coalesced(self, tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The same for several tensors of one dtype, as one message."""
        engine, arrays = self._engine(tensors[0]), arrays_of(tensors[0])
        parts = [self._reducible(tensor, op, arrays) for tensor in tensors]
        joined = arrays.joined([buffer for buffer, _ in parts])

        def finish() -> None:
            at = 0
            for buffer, _ in parts:
                arrays.assign(buffer.reshape(-1), joined[at : at + buffer.size])
                at += buffer.size
            arrays.finish()

        kind = parts[0][1]
        traffic = Traffic("allreduce_coalesced", list(tensors), joined.size, joined.size, kind_of(op).name)
        return self._begin(
            "all_reduce", traffic, lambda: engine.all_reduce(joined, kind), list(tensors), finish, timeout, engine
        )

    def reduce(self, tensors: Any, root: int, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The root's tensor becomes the reduction of all."""
        (tensor,) = _list(tensors)
        engine, arrays = self._engine(tensor), arrays_of(tensor)
        buffer, kind = self._reducible(tensor, op, arrays)
        traffic = Traffic("reduce", [tensor], tensor.numel(), tensor.numel(), kind_of(op).name, root)
        return self._begin(
            "reduce", traffic, lambda: engine.reduce(buffer, kind, root), [tensor], arrays.finish, timeout, engine
        )

    def reduce_scatter(
        self, output: Tensor, inputs: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        """Every process's output becomes the reduction of all inputs for its rank. As gloo: by reducing everything."""
        whole = arrays_of(output).joined([each._array for each in inputs]).reshape(len(inputs), -1)
        return self._reduce_scatter("reduce_scatter", list(inputs), output, whole, op, timeout)

    def _reduce_scatter_base(
        self, output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        whole = arrays_of(input).copied(input._array).reshape(self.size(), -1)
        return self._reduce_scatter("_reduce_scatter_base", [input], output, whole, op, timeout)

    def _reduce_scatter(
        self, collective: str, inputs: list[Tensor], output: Tensor, whole: Buffer, op: Any, timeout: timedelta | None
    ) -> Work:
        engine = self._engine(output)
        what = "reduce_scatter" if collective == "reduce_scatter" else "reduce_scatter_tensor"
        traffic = Traffic(collective, inputs, whole.size, output.numel(), kind_of(op).name)
        if isinstance(engine, HcclCommunicator):
            arrays = arrays_of(output)
            part, kind = self._reducible(output, op, arrays)
            sent = _as_elements(whole, part, arrays)
            return self._begin(
                what,
                traffic,
                lambda: engine.reduce_scatter(sent, part, kind),
                [output],
                arrays.finish,
                timeout,
                engine,
            )
        arrays, mine = Arrays(), Arrays()
        buffer, kind = self._reducible(make_tensor(whole), op, arrays)

        def finish() -> None:
            arrays.finish()
            mine.copied_back(output, whole[self.rank()])
            mine.finish()

        return self._begin(what, traffic, lambda: engine.all_reduce(buffer, kind), [output], finish, timeout, engine)

    # ------------------------------------------------------------------ moving

    def broadcast(self, tensors: Any, root: int, timeout: timedelta | None = None) -> Work:
        """Every process's tensor becomes the root's."""
        (tensor,) = _list(tensors)
        engine, arrays = self._engine(tensor), arrays_of(tensor)
        buffer = arrays.written(tensor)
        traffic = Traffic("broadcast", [tensor], tensor.numel(), tensor.numel(), "", root)
        return self._begin(
            "broadcast", traffic, lambda: engine.broadcast(buffer, root), [tensor], arrays.finish, timeout, engine
        )

    def allgather(self, outputs: Sequence[Tensor], input: Tensor, timeout: timedelta | None = None) -> Work:
        """The outputs become every process's input, by rank."""
        engine, arrays = self._engine(input), arrays_of(input)
        whole = arrays.fresh((self.size(), input._array.size), input._array.dtype)
        for output, row in zip(outputs, whole, strict=True):
            arrays.copied_back(output, row)
        part = arrays.read(input)
        traffic = Traffic("all_gather", [input], part.size, whole.size)
        return self._begin(
            "all_gather", traffic, lambda: engine.all_gather(part, whole), list(outputs), arrays.finish, timeout, engine
        )

    def _allgather_base(self, output: Tensor, input: Tensor, timeout: timedelta | None = None) -> Work:
        engine, arrays = self._engine(input), arrays_of(input)
        whole, part = arrays.written(output), arrays.read(input)
        traffic = Traffic("_allgather_base", [input], part.size, whole.size)
        return self._begin(
            "all_gather_into_tensor",
            traffic,
            lambda: engine.all_gather(part, whole),
            [output],
            arrays.finish,
            timeout,
            engine,
        )

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int, timeout: timedelta | None = None) -> Work:
        """The root's outputs become every process's input, by rank."""
        engine, arrays = self._engine(input), arrays_of(input)
        part, whole = arrays.read(input), None
        if self.rank() == root:
            whole = arrays.fresh((self.size(), part.size), part.dtype)
            for output, row in zip(outputs, whole, strict=True):
                arrays.copied_back(output, row)
        traffic = Traffic("gather", [input], part.size, 0 if whole is None else whole.size, "", root)
        return self._begin(
            "gather", traffic, lambda: engine.gather(part, whole, root), list(outputs), arrays.finish, timeout, engine
        )

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int, timeout: timedelta | None = None) -> Work:
        """Every process's output becomes its rank's input of the root."""
        engine, arrays = self._engine(output), arrays_of(output)
        part = arrays.written(output)
        whole = arrays.joined([each._array for each in inputs]) if self.rank() == root else None
        traffic = Traffic("scatter", list(inputs), 0 if whole is None else whole.size, part.size, "", root)
        return self._begin(
            "scatter", traffic, lambda: engine.scatter(whole, part, root), [output], arrays.finish, timeout, engine
        )

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], timeout: timedelta | None = None) -> Work:
        """Each output becomes this rank's input of the process of that rank."""
        engine, arrays, at = self._engine(inputs[0]), arrays_of(inputs[0]), 0
        sent = arrays.joined([each._array for each in inputs])
        received = arrays.fresh((sum(each._array.size for each in outputs),), sent.dtype)
        for output in outputs:
            size = output._array.size
            arrays.copied_back(output, received[at : at + size])
            at += size
        counts, received_counts = ([each._array.size for each in side] for side in (inputs, outputs))
        traffic = Traffic("all_to_all", list(inputs), sent.size, received.size)
        return self._begin(
            "all_to_all",
            traffic,
            lambda: engine.all_to_all(sent, counts, received, received_counts),
            list(outputs),
            arrays.finish,
            timeout,
            engine,
        )

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        timeout: timedelta | None = None,
    ) -> Work:
        """Rows of the input go to the processes by rank; the output gets theirs. No sizes: the same number for all."""
        engine, arrays = self._engine(input), arrays_of(input)
        received, sent = arrays.written(output), arrays.read(input)
        if not output_split_sizes and not input_split_sizes and received.size != sent.size:
            raise RuntimeError(f"all_to_all_single: the output has {received.size} elements and the input {sent.size}")
        received_counts = self._split_counts(received, output_split_sizes)
        counts = self._split_counts(sent, input_split_sizes)
        collective = "all_to_allv" if output_split_sizes or input_split_sizes else "all_to_all"
        traffic = Traffic(
            collective,
            [input],
            sent.size,
            received.size,
            in_splits=list(input_split_sizes),
            out_splits=list(output_split_sizes),
        )
        return self._begin(
            "all_to_all_single",
            traffic,
            lambda: engine.all_to_all(sent, counts, received, received_counts),
            [output],
            arrays.finish,
            timeout,
            engine,
        )

    def _split_counts(self, buffer: Buffer, sizes: Sequence[int]) -> list[int]:
        """Elements for each process."""
        rows = buffer.shape[0] if buffer.ndim else 1
        if not sizes:
            if rows % self.size():
                raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
            sizes = [rows // self.size()] * self.size()
        if len(sizes) != self.size():
            raise RuntimeError("Number of tensor splits not equal to group size")
        if sum(sizes) != rows:
            raise RuntimeError("Split sizes doesn't match total dim 0 size")
        width = math.prod(buffer.shape[1:])
        return [size * width for size in sizes]

    def send(self, tensors: Any, dst: int, tag: int) -> Work:
        """Send a message to a rank of the group."""
        (tensor,) = _list(tensors)
        engine = self._engine_of_message(tensor, dst, tag)
        buffer = arrays_of(tensor).copied(tensor._array)
        traffic = Traffic("send", [tensor], buffer.size, 0, peer=dst, tag=tag)
        return self._begin("send", traffic, lambda: engine.send(buffer, dst, tag), [tensor], engine=engine)

    def recv(self, tensors: Any, src: int | None, tag: int) -> Work:
        """Receive a message from a rank of the group, from any if it is None."""
        (tensor,) = _list(tensors)
        engine, arrays = self._engine_of_message(tensor, src, tag), arrays_of(tensor)
        buffer = arrays.written(tensor)
        traffic = Traffic("recv", [tensor], 0, buffer.size, peer=src, tag=tag)
        return self._begin("recv", traffic, lambda: engine.receive(buffer, src, tag), [tensor], arrays.finish, engine=engine)

    def _engine_of_message(self, tensor: Tensor, peer: int | None, tag: int) -> Any:
        engine = self._engine(tensor)
        if isinstance(engine, HcclCommunicator):
            if peer is None:
                raise RuntimeError("HCCL does not support recvAnysource: name the rank that the message comes from")
            if tag:
                raise RuntimeError(f"HCCL has no tags of messages, and got tag {tag}")
        return engine

    def messages(self, messages: Sequence[tuple[bool, Tensor, int]]) -> Work:
        """Messages (whether it is sent, tensor, peer) of which none waits for another: HCCL needs them as one call."""
        tensors = [tensor for _, tensor, _ in messages]
        engine, arrays = self._engine(tensors[0]), arrays_of(tensors[0])
        listed = [
            (is_sent, arrays.copied(tensor._array) if is_sent else arrays.written(tensor), peer)
            for is_sent, tensor, peer in messages
        ]
        traffic = [
            Traffic("send" if is_sent else "recv", [tensor], *((buffer.size, 0) if is_sent else (0, buffer.size)), peer=peer)
            for (is_sent, buffer, peer), tensor in zip(listed, tensors, strict=True)
        ]
        label = self._label("batch_isend_irecv")
        recorded = SeveralCommunications([self._told(each, engine) for each in traffic])
        work = DeviceWork(engine.messages(listed), tensors, arrays.finish, label, self._timeout, self._fail, recorded)
        background.watch(work)
        return work

    def recv_anysource(self, tensors: Any, tag: int) -> Work:
        """Receive a message from any rank of the group."""
        return self.recv(tensors, None, tag)

    def barrier(self, timeout: timedelta | None = None) -> Work:
        """Done when every process has begun it."""
        return self._begin("barrier", Traffic("barrier"), self._communicator.barrier, [], None, timeout)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 hears from each process and tells which did not come; the others wait for its answer."""
        if isinstance(self._communicator, HcclCommunicator):
            raise ValueError("monitored_barrier is only implemented for GLOO backend.")
        limit = self._timeout if timeout is None else timeout
        if self.rank():
            for collective in ("send", "recv"):
                self._sign(collective, 0, limit).wait()
            return
        deadline = time.monotonic() + limit.total_seconds()
        missing = []
        for rank in range(1, self.size()):
            left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
            try:
                self._sign("recv", rank, left).wait()
            except DistBackendError:
                self._broken = None  # the group goes on to be told which ranks are missing
                missing.append(rank)
                if not wait_all_ranks:
                    break
        if missing:
            self._broken = "a monitored_barrier failed"
            names = ", ".join(map(str, missing))
            raise DistBackendError(
                f"[Rank 0]: {'Ranks' if wait_all_ranks else 'Rank'} {names} failed to pass monitoredBarrier in "
                f"{round(limit.total_seconds() * 1000)} ms"
            )
        for rank in range(1, self.size()):
            self._sign("send", rank, limit).wait()

    def _sign(self, collective: str, peer: int, timeout: timedelta) -> Work:
        """Send or receive one number that has no meaning."""
        tensor = make_tensor(np.zeros(1, np.int32))
        begin = self._communicator.send if collective == "send" else self._communicator.receive
        traffic = Traffic(
            collective, [tensor], int(collective == "send"), int(collective == "recv"), peer=peer, tag=_BARRIER_TAG
        )
        return self._begin("monitored_barrier", traffic, lambda: begin(tensor._array, peer, _BARRIER_TAG), [], None, timeout)


def _list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _as_elements(whole: Buffer, part: Buffer, arrays: Arrays) -> Buffer:
    """All parts of a reduction in the elements in which one of them is reduced."""
    if whole.dtype.kind == "c":
        return whole.reshape(-1).view(part.dtype)
    return whole if whole.dtype == part.dtype else arrays.copied(whole, part.dtype)
