"""ProcessGroup: tensors in and out of a communicator. Each method begins one collective or message and returns its Work.

The methods are torch's, and the ops of `_c10d_ops` call them, so that a profile shows `c10d::allreduce_` where a caller waits.
"""

from __future__ import annotations

import enum
import itertools
import math
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np

from .._core.memory_format import strided
from .._core.tensor import Tensor, make_tensor
from ._engine import Buffer, Communicator, Request
from ._errors import DistBackendError
from ._reduce_ops import ReduceOp, kind_of
from ._stores import Store
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


class _Arrays:
    """Tensors as contiguous arrays, and what has to be copied back when an operation is done."""

    def __init__(self) -> None:
        self._back: list[tuple[Tensor, Buffer]] = []
        self._means: list[tuple[Buffer, int]] = []

    def read(self, tensor: Tensor) -> Buffer:
        """A contiguous array of a tensor that is only read."""
        return np.ascontiguousarray(tensor._array)

    def written(self, tensor: Tensor) -> Buffer:
        """A contiguous array for a tensor that is written: its own memory where that has no gaps."""
        array: Buffer = tensor._array
        if array.flags.c_contiguous:
            return array
        copied = np.ascontiguousarray(array)
        self._back.append((tensor, copied))
        return copied

    def copied_back(self, tensor: Tensor, buffer: Buffer) -> None:
        """Have a tensor get another buffer's values when the operation is done."""
        self._back.append((tensor, buffer))

    def divide(self, buffer: Buffer, count: int) -> None:
        """Have a sum become a mean when the operation is done."""
        self._means.append((buffer, count))

    def finish(self) -> None:
        """Copy back. As in torch, the tensors' versions are not counted up."""
        for buffer, count in self._means:
            np.divide(buffer, count, out=buffer)
        for tensor, buffer in self._back:
            tensor._array[...] = buffer.reshape(tensor._array.shape)


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
        begin: Callable[[], Request],
        results: list[Any],
        finish: Callable[[], None] | None = None,
        timeout: timedelta | None = None,
        is_collective: bool = True,
    ) -> Work:
        sequence = self._last_sequence
        if is_collective:
            sequence = self._last_sequence = next(self._sequence)
        place = f"rank {self.rank()} of group {self.group_name!r} with {self.size()} processes"
        label = f"{what} ({place}, sequence number {sequence})"
        if self._broken is not None:
            raise DistBackendError(f"{label}: the group cannot be used any more: {self._broken}")
        work = Work(begin(), results, finish, label, self._timeout if timeout is None else timeout, self._fail)
        if not work._advance():
            background.watch(work)
        return work

    def _fail(self, reason: str) -> None:
        self._broken = reason

    # ------------------------------------------------------------------ reductions

    def _reducible(self, tensor: Tensor, op: Any, arrays: _Arrays) -> tuple[Buffer, str]:
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
        arrays = _Arrays()
        buffer, kind = self._reducible(tensor, op, arrays)
        return self._begin("all_reduce", lambda: self._communicator.all_reduce(buffer, kind), [tensor], arrays.finish, timeout)

    def allreduce_coalesced(self, tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The same for several tensors of one dtype, as one message."""
        arrays = _Arrays()
        parts = [self._reducible(tensor, op, arrays) for tensor in tensors]
        joined = np.concatenate([buffer.reshape(-1) for buffer, _ in parts])

        def finish() -> None:
            at = 0
            for buffer, _ in parts:
                buffer.reshape(-1)[...] = joined[at : at + buffer.size]
                at += buffer.size
            arrays.finish()

        kind = parts[0][1]
        return self._begin("all_reduce", lambda: self._communicator.all_reduce(joined, kind), list(tensors), finish, timeout)

    def reduce(self, tensors: Any, root: int, op: Any = ReduceOp.SUM, timeout: timedelta | None = None) -> Work:
        """The root's tensor becomes the reduction of all."""
        (tensor,) = _list(tensors)
        arrays = _Arrays()
        buffer, kind = self._reducible(tensor, op, arrays)
        return self._begin("reduce", lambda: self._communicator.reduce(buffer, kind, root), [tensor], arrays.finish, timeout)

    def reduce_scatter(
        self, output: Tensor, inputs: Sequence[Tensor], op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        """Every process's output becomes the reduction of all inputs for its rank. As gloo: by reducing everything."""
        whole = np.stack([np.ascontiguousarray(each._array) for each in inputs])
        return self._reduce_scatter("reduce_scatter", output, whole, op, timeout)

    def _reduce_scatter_base(
        self, output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, timeout: timedelta | None = None
    ) -> Work:
        whole = np.array(input._array, order="C").reshape(self.size(), -1)
        return self._reduce_scatter("reduce_scatter_tensor", output, whole, op, timeout)

    def _reduce_scatter(self, what: str, output: Tensor, whole: Buffer, op: Any, timeout: timedelta | None) -> Work:
        arrays, mine = _Arrays(), _Arrays()
        buffer, kind = self._reducible(make_tensor(whole), op, arrays)

        def finish() -> None:
            arrays.finish()
            mine.copied_back(output, whole[self.rank()])
            mine.finish()

        return self._begin(what, lambda: self._communicator.all_reduce(buffer, kind), [output], finish, timeout)

    # ------------------------------------------------------------------ moving

    def broadcast(self, tensors: Any, root: int, timeout: timedelta | None = None) -> Work:
        """Every process's tensor becomes the root's."""
        (tensor,) = _list(tensors)
        arrays = _Arrays()
        buffer = arrays.written(tensor)
        return self._begin("broadcast", lambda: self._communicator.broadcast(buffer, root), [tensor], arrays.finish, timeout)

    def allgather(self, outputs: Sequence[Tensor], input: Tensor, timeout: timedelta | None = None) -> Work:
        """The outputs become every process's input, by rank."""
        whole = np.empty((self.size(), input._array.size), input._array.dtype)
        arrays = _Arrays()
        for output, row in zip(outputs, whole, strict=True):
            arrays.copied_back(output, row)
        part = arrays.read(input)
        return self._begin(
            "all_gather", lambda: self._communicator.all_gather(part, whole), list(outputs), arrays.finish, timeout
        )

    def _allgather_base(self, output: Tensor, input: Tensor, timeout: timedelta | None = None) -> Work:
        arrays = _Arrays()
        whole, part = arrays.written(output), arrays.read(input)
        return self._begin(
            "all_gather_into_tensor", lambda: self._communicator.all_gather(part, whole), [output], arrays.finish, timeout
        )

    def gather(self, outputs: Sequence[Tensor], input: Tensor, root: int, timeout: timedelta | None = None) -> Work:
        """The root's outputs become every process's input, by rank."""
        arrays = _Arrays()
        part, whole = arrays.read(input), None
        if self.rank() == root:
            whole = np.empty((self.size(), part.size), part.dtype)
            for output, row in zip(outputs, whole, strict=True):
                arrays.copied_back(output, row)
        return self._begin(
            "gather", lambda: self._communicator.gather(part, whole, root), list(outputs), arrays.finish, timeout
        )

    def scatter(self, output: Tensor, inputs: Sequence[Tensor], root: int, timeout: timedelta | None = None) -> Work:
        """Every process's output becomes its rank's input of the root."""
        arrays = _Arrays()
        part = arrays.written(output)
        whole = np.stack([np.ascontiguousarray(each._array).reshape(-1) for each in inputs]) if self.rank() == root else None
        return self._begin("scatter", lambda: self._communicator.scatter(whole, part, root), [output], arrays.finish, timeout)

    def alltoall(self, outputs: Sequence[Tensor], inputs: Sequence[Tensor], timeout: timedelta | None = None) -> Work:
        """Each output becomes this rank's input of the process of that rank."""
        sent = np.concatenate([np.ascontiguousarray(each._array).reshape(-1) for each in inputs])
        received = np.empty(sum(each._array.size for each in outputs), sent.dtype)
        arrays, at = _Arrays(), 0
        for output in outputs:
            size = output._array.size
            arrays.copied_back(output, received[at : at + size])
            at += size
        counts, received_counts = ([each._array.size for each in side] for side in (inputs, outputs))
        return self._begin(
            "all_to_all",
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
        arrays = _Arrays()
        received, sent = arrays.written(output), arrays.read(input)
        if not output_split_sizes and not input_split_sizes and received.size != sent.size:
            raise RuntimeError(f"all_to_all_single: the output has {received.size} elements and the input {sent.size}")
        received_counts = self._split_counts(received, output_split_sizes)
        counts = self._split_counts(sent, input_split_sizes)
        return self._begin(
            "all_to_all_single",
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
        return self._begin("send", lambda: self._communicator.send(buffer, dst, tag), [tensor], is_collective=False)

    def recv(self, tensors: Any, src: int | None, tag: int) -> Work:
        """Receive a message from a rank of the group, from any if it is None."""
        (tensor,) = _list(tensors)
        arrays = _Arrays()
        buffer = arrays.written(tensor)
        return self._begin(
            "recv", lambda: self._communicator.receive(buffer, src, tag), [tensor], arrays.finish, is_collective=False
        )

    def recv_anysource(self, tensors: Any, tag: int) -> Work:
        """Receive a message from any rank of the group."""
        return self.recv(tensors, None, tag)

    def barrier(self, timeout: timedelta | None = None) -> Work:
        """Done when every process has begun it."""
        return self._begin("barrier", self._communicator.barrier, [], None, timeout)

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        """A barrier in which rank 0 hears from each process and tells which did not come; the others wait for its answer."""
        limit = self._timeout if timeout is None else timeout
        sign = np.zeros(1, np.int32)
        if self.rank():
            for begin in (self._communicator.send, self._communicator.receive):
                self._begin("monitored_barrier", partial(begin, sign, 0, _BARRIER_TAG), [], None, limit, False).wait()
            return
        deadline = time.monotonic() + limit.total_seconds()
        missing = []
        for rank in range(1, self.size()):
            left = timedelta(seconds=max(deadline - time.monotonic(), 0.001))
            receive = partial(self._communicator.receive, np.zeros(1, np.int32), rank, _BARRIER_TAG)
            try:
                self._begin("monitored_barrier", receive, [], None, left, False).wait()
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
            self._begin(
                "monitored_barrier", partial(self._communicator.send, sign, rank, _BARRIER_TAG), [], None, limit, False
            ).wait()


def _list(tensors: Any) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)
