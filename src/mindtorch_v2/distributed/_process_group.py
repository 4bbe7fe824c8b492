"""ProcessGroup: tensors in and out of a communicator. Each method begins one collective or message and returns its Work.

The methods are torch's, and the ops of `_c10d_ops` call them, so that a profile shows `c10d::allreduce_` where a caller waits.
"""

from __future__ import annotations

import enum
import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from .._core.memory_format import strided
from .._core.tensor import Tensor, make_tensor
from ._arrays import Arrays
from ._engines.engine import Buffer, Communicator, Request
from ._errors import DistBackendError
from ._reduce_ops import ReduceOp, kind_of
from ._store.stores import Store
from ._traffic import Traffic, begin_checked, told_to_profiles
from ._work import Work, background

DEFAULT_TIMEOUT = timedelta(minutes=30)
_BARRIER_TAG = 32_001  # of messages that no caller sends

# Reduced in float32 and rounded once: MPI does not know them.
_NARROW = ("float16", "bfloat16")
_REDUCED = ("float32", "float64", "complex64", "complex128", "int8", "uint8", "int32", "int64", "bool", *_NARROW)
_BITS = ("BAND", "BOR", "BXOR")


class BackendType(enum.IntEnum):
    """The engine of a group, as torch numbers them."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = range(7)


class ProcessGroup:
    """Processes that call the same collectives in the same order."""

    BackendType = BackendType

    def __init__(
        self,
        communicator: Communicator,
        ranks: Sequence[int],
        *,
        backend: str,
        name: str,
        desc: str,
        store: Store,
        timeout: timedelta = DEFAULT_TIMEOUT,
    ) -> None:
        """`ranks` are the group's in the world, by their rank in the group."""
        self._communicator = communicator
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
        self._communicator.close()

    abort = shutdown

    def __repr__(self) -> str:
        return f"<ProcessGroup {self.group_name!r} ({self._backend}): rank {self.rank()} of {self.size()}>"

    # ------------------------------------------------------------------ beginning something

    def _begin(
        self,
        what: str,
        traffic: Traffic,
        begin: Callable[[], Request],
        results: list[Any],
        finish: Callable[[], None] | None = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """Begin a collective or a message."""
        is_message = traffic.collective in ("send", "recv")
        if is_message:
            sequence = self._last_sequence
        else:
            sequence = self._last_sequence = next(self._sequence)
        place = f"rank {self.rank()} of group {self.group_name!r} with {self.size()} processes"
        label = f"{what} ({place}, sequence number {sequence})"
        if self._broken is not None:
            raise DistBackendError(f"{label}: the group cannot be used any more: {self._broken}")
        number = self._message_number(traffic) if is_message else sequence
        recorded = told_to_profiles(self, traffic, lambda: number)
        request = begin() if is_message else begin_checked(self, traffic, begin)
        limit = self._timeout if timeout is None else timeout
        work = Work(request, results, finish, label, limit, self._fail, recorded, traffic.nbytes)
        if not work._advance() and is_message:
            background.watch(work)
        return work

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
        if dtype not in _REDUCED:
            raise RuntimeError("Invalid scalar type")
        is_integral = "float" not in dtype and "complex" not in dtype
        if kind in _BITS and not is_integral:
            raise RuntimeError(f"Cannot use ReduceOp.{kind} with non-integral dtype")
        if (kind == "AVG" and is_integral) or (kind not in ("SUM", "AVG") and "complex" in dtype):
            raise RuntimeError(f"Cannot use ReduceOp.{kind} with {dtype}")
        if dtype == "bool":  # any, all, and so on: of numbers that are 0 or 1, wide enough for the sum
            wide = np.ascontiguousarray(tensor._array, np.int32)
            arrays.copied_back(tensor, wide)
            return wide, "MAX" if kind == "SUM" else kind
        if dtype in _NARROW:
            wide = np.ascontiguousarray(tensor._array, np.float32)
            arrays.copied_back(tensor, wide)
            buffer = wide
        else:
            buffer = arrays.written(tensor)
        if "complex" in dtype:
            buffer = buffer.reshape(-1).view(buffer.real.dtype)
        if kind == "AVG":
            arrays.divide(buffer, self.size())
            kind = "SUM"
        return buffer, kind

    def allreduce(self, tensors: Any, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """Every process's tensor becomes the reduction of all."""
        (tensor,) = _list(tensors)
        arrays = Arrays()
        buffer, kind = self._reducible(tensor, op, arrays)
        traffic = Traffic("allreduce", [tensor], tensor.numel(), tensor.numel(), kind_of(op).name)
        return self._begin(
            "all_reduce", traffic, lambda: self._communicator.all_reduce(buffer, kind), [tensor], arrays.finish, timeout
        )

    def allreduce_coalesced(self, tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The same for several tensors of one dtype, as one message."""
        arrays = Arrays()
        parts = [self._reducible(tensor, op, arrays) for tensor in tensors]
        joined = np.concatenate([buffer.reshape(-1) for buffer, _ in parts])

        def finish() -> None:
            at = 0
            for buffer, _ in parts:
                buffer.reshape(-1)[...] = joined[at : at + buffer.size]
                at += buffer.size
            arrays.finish()

        kind = parts[0][1]
        traffic = Traffic("allreduce_coalesced", list(tensors), joined.size, joined.size, kind_of(op).name)
        return self._begin(
            "all_reduce", traffic, lambda: self._communicator.all_reduce(joined, kind), list(tensors), finish, timeout
        )

    def reduce(self, tensors: Any, root: int, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The root's tensor becomes the reduction of all."""
        (tensor,) = _list(tensors)
        arrays = Arrays()
        buffer, kind = self._reducible(tensor, op, arrays)
        traffic = Traffic("reduce", [tensor], tensor.numel(), tensor.numel(), kind_of(op).name, root)
        return self._begin(
            "reduce", traffic, lambda: self._communicator.reduce(buffer, kind, root), [tensor], arrays.finish, timeout
        )

    def reduce_scatter(
        self, output: Tensor, inputs: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        """Every process's output becomes the reduction of all inputs for its rank. As gloo: by reducing everything."""
        whole = np.stack([np.ascontiguousarray(each._array) for each in inputs])
        return self._reduce_scatter("reduce_scatter", list(inputs), output, whole, op, timeout)

    def _reduce_scatter_base(
        self, output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        whole = np.array(input._array, order="C").reshape(self.size(), -1)
        return self._reduce_scatter("_reduce_scatter_base", [input], output, whole, op, timeout)

    def _reduce_scatter(
        self, collective: str, inputs: list[Tensor], output: Tensor, whole: Buffer, op: Any, timeout: timedelta | None
    ) -> Work:
        arrays, mine = Arrays(), Arrays()
        buffer, kind = self._reducible(make_tensor(whole), op, arrays)

        def finish() -> None:
            arrays.finish()
            mine.copied_back(output, whole[self.rank()])
            mine.finish()

        what = "reduce_scatter" if collective == "reduce_scatter" else "reduce_scatter_tensor"
        traffic = Traffic(collective, inputs, whole.size, output.numel(), kind_of(op).name)
        return self._begin(what, traffic, lambda: self._communicator.all_reduce(buffer, kind), [output], finish, timeout)

    # ------------------------------------------------------------------ moving

    def broadcast(self, tensors: Any, root: int, timeout: timedelta | None = None) -> Work:
        """Every process's tensor becomes the root's."""
        (tensor,) = _list(tensors)
        arrays = Arrays()
        buffer = arrays.written(tensor)
        traffic = Traffic("broadcast", [tensor], tensor.numel(), tensor.numel(), "", root)
        return self._begin(
            "broadcast", traffic, lambda: self._communicator.broadcast(buffer, root), [tensor], arrays.finish, timeout
        )

    def allgather(self, outputs: Sequence[Tensor], input: Tensor, timeout: timedelta | None = None) -> Work:
        """The outputs become every process's input, by rank."""
        whole = np.empty((self.size(), input._array.size), input._array.dtype)
        arrays = Arrays()
        for output, row in zip(outputs, whole, strict=True):
            arrays.copied_back(output, row)
        part = arrays.read(input)
        traffic = Traffic("all_gather", [input], part.size, whole.size)
        return self._begin(
            "all_gather", traffic, lambda: self._communicator.all_gather(part, whole), list(outputs), arrays.finish, timeout
        )

    def _allgather_base(self, output: Tensor, input: Tensor, timeout: timedelta | None = None) -> Work:
        arrays = Arrays()
        whole, part = arrays.written(output), arrays.read(input)
        traffic = Traffic("_allgather_base", [input], part.size, whole.size)
        return self._begin(
            "all_gather_into_tensor",
            traffic,
            lambda: self._communicator.all_gather(part, whole),
            [output],
            arrays.finish,
            timeout,
        )

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int, timeout: timedelta | None = None) -> Work:
        """The root's outputs become every process's input, by rank."""
        arrays = Arrays()
        part, whole = arrays.read(input), None
        if self.rank() == root:
            whole = np.empty((self.size(), part.size), part.dtype)
            for output, row in zip(outputs, whole, strict=True):
                arrays.copied_back(output, row)
        traffic = Traffic("gather", [input], part.size, 0 if whole is None else whole.size, "", root)
        return self._begin(
            "gather", traffic, lambda: self._communicator.gather(part, whole, root), list(outputs), arrays.finish, timeout
        )

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int, timeout: timedelta | None = None) -> Work:
        """Every process's output becomes its rank's input of the root."""
        arrays = Arrays()
        part = arrays.written(output)
        whole = np.stack([np.ascontiguousarray(each._array).reshape(-1) for each in inputs]) if self.rank() == root else None
        traffic = Traffic("scatter", list(inputs), 0 if whole is None else whole.size, part.size, "", root)
        return self._begin(
            "scatter", traffic, lambda: self._communicator.scatter(whole, part, root), [output], arrays.finish, timeout
        )

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], timeout: timedelta | None = None) -> Work:
        """Each output becomes this rank's input of the process of that rank."""
        sent = np.concatenate([np.ascontiguousarray(each._array).reshape(-1) for each in inputs])
        received = np.empty(sum(each._array.size for each in outputs), sent.dtype)
        arrays, at = Arrays(), 0
        for output in outputs:
            size = output._array.size
            arrays.copied_back(output, received[at : at + size])
            at += size
        counts, received_counts = ([each._array.size for each in side] for side in (inputs, outputs))
        traffic = Traffic("all_to_all", list(inputs), sent.size, received.size)
        return self._begin(
            "all_to_all",
            traffic,
            lambda: self._communicator.all_to_all(sent, counts, received, received_counts),
            list(outputs),
            arrays.finish,
            timeout,
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
        arrays = Arrays()
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
            lambda: self._communicator.all_to_all(sent, counts, received, received_counts),
            [output],
            arrays.finish,
            timeout,
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
        buffer = np.array(tensor._array, order="C")
        traffic = Traffic("send", [tensor], buffer.size, 0, peer=dst, tag=tag)
        return self._begin("send", traffic, lambda: self._communicator.send(buffer, dst, tag), [tensor])

    def recv(self, tensors: Any, src: int | None, tag: int) -> Work:
        """Receive a message from a rank of the group, from any if it is None."""
        (tensor,) = _list(tensors)
        arrays = Arrays()
        buffer = arrays.written(tensor)
        traffic = Traffic("recv", [tensor], 0, buffer.size, peer=src, tag=tag)
        return self._begin("recv", traffic, lambda: self._communicator.receive(buffer, src, tag), [tensor], arrays.finish)

    def recv_anysource(self, tensors: Any, tag: int) -> Work:
        """Receive a message from any rank of the group."""
        return self.recv(tensors, None, tag)

    def barrier(self, timeout: timedelta | None = None) -> Work:
        """Done when every process has begun it."""
        return self._begin("barrier", Traffic("barrier"), self._communicator.barrier, [], None, timeout)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 hears from each process and tells which did not come; the others wait for its answer."""
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
