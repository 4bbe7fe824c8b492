"""The engine on MPI: mpi4py and any MPI library that it finds, MPICH's wheel by default.

Every operation is a non-blocking one of MPI. Reductions of large buffers go in pieces, one after another: whole, they leave the
processor's caches between the steps of MPI's algorithm (32 MB in pieces of 16 MB take about half the time).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import re
import sys
import threading
import uuid
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._errors import DistBackendError, DistStoreError
from .._store import places
from .._store.stores import Store
from .engine import Buffer, Done, Request, as_bytes
from .pmi import LAUNCHER_VARIABLES, PmiServer
from .shared_memory import remove_names

_PIECE_BYTES = 16 << 20
_THREAD_MULTIPLE = 3
_FINALIZE_S = 10.0  # that a process waits for the others before it leaves MPI
_TOGETHER = b"together"

NEEDED = (
    "torch.distributed needs MPI for more than one process: pip install 'mindtorch_v2[distributed]' installs mpi4py and MPICH, "
    "or install mpi4py for the MPI of this machine"
)


class _Job(NamedTuple):
    """The processes that MPI was started with: once in a process's life."""

    world: Any  # mpi4py's COMM_WORLD
    rank: int
    size: int


class _Started:
    job: _Job | None = None
    failed = False  # an operation did not end: leaving MPI would wait for ever


def launched() -> bool:
    """Whether mpiexec, srun or another process manager of MPI started this process."""
    return any(name in os.environ for name in LAUNCHER_VARIABLES)


def _import_mpi() -> Any:
    try:
        import mpi4py
    except ImportError as error:
        raise ImportError(NEEDED) from error
    if "mpi4py.MPI" not in sys.modules:
        # Initialized below, by a call that lets other threads run; finalized at exit for the same reason.
        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        raise ImportError(f"{NEEDED}; mpi4py finds no library of it: {error}") from error
    return MPI


def _library() -> ctypes.CDLL:
    """MPI's library as mpi4py has loaded it."""
    with contextlib.suppress(OSError):
        for line in os.fsdecode(Path("/proc/self/maps").read_bytes()).splitlines():
            if re.search(r"/libmpi(_abi)?\.so[.\d]*$", line):
                return ctypes.CDLL(line.split(maxsplit=5)[-1])
    return ctypes.CDLL(None)


def start_launched() -> _Job:
    """Start MPI as the launcher of this process says; its rank and the number of processes."""
    if _Started.job is None:
        _Started.job = _start(None, -1, -1, timedelta(0))
    return _Started.job


def start(store: Store, rank: int, size: int, timeout: timedelta) -> Communicator:
    """The communicator of all processes, whose ranks and addresses the store holds unless a launcher of MPI knows them."""
    job = _Started.job
    if job is None:
        job = _Started.job = _start(store, rank, size, timeout)
    if (job.rank, job.size) != (rank, size):
        raise DistBackendError(
            f"MPI was started in this process as rank {job.rank} of {job.size}, and cannot be as rank {rank} of {size}: "
            "MPI starts once in a process. Start another process for another set of ranks; or, if an import of mpi4py.MPI "
            "started it, set mpi4py.rc.initialize = False before that, or use torchrun"
        )
    return Communicator(job.world.Dup())


def _start(store: Store | None, rank: int, size: int, timeout: timedelta) -> _Job:
    """Start MPI: by a store, or as a launcher says that started this process."""
    mpi = _import_mpi()
    if mpi.Is_initialized():
        return _Job(mpi.COMM_WORLD, mpi.COMM_WORLD.rank, mpi.COMM_WORLD.size)
    server = meeting = None
    if store is not None and not launched():
        meeting = places.of_mpi(store)
        server = _join(meeting, rank, size, timeout)
    else:
        _initialize(rank, size, None)
    world = mpi.COMM_WORLD
    world.Set_errhandler(mpi.ERRORS_RETURN)
    atexit.register(_finalize, server, meeting, rank, size)
    return _Job(world, world.rank, world.size)


def _join(meeting: Store, rank: int, size: int, timeout: timedelta) -> PmiServer:
    """Start MPI by a store; what answers MPI's questions from now on."""
    if rank == 0:
        places.set_job(meeting, f"mindtorch-{uuid.uuid4().hex}")
    job = places.job(meeting)
    server = PmiServer(meeting.clone(), rank, size, job, timeout)
    server.start()
    try:
        _within(timeout, f"rank {rank} of {size}", lambda: _initialize(rank, size, server))
        meeting.barrier("attached", size, timeout)
    finally:
        # All have attached to the memory that MPICH shares, or the job is lost: its name can go in both cases, so that a
        # process that is killed leaves none behind.
        server.clear_environment()
        remove_names(job)
    return server


def _initialize(rank: int, size: int, server: PmiServer | None) -> None:
    """MPI_Init_thread, by a call that lets other threads run."""
    provided = ctypes.c_int()
    code = _library().MPI_Init_thread(None, None, _THREAD_MULTIPLE, ctypes.byref(provided))
    if code or provided.value < _THREAD_MULTIPLE:
        cause = server.error if server is not None else None
        raise DistBackendError(
            f"rank {rank} of {size}: MPI could not be started (code {code}, threads {provided.value}): "
            f"{cause or 'no reason given'}"
        ) from cause


def _within(timeout: timedelta, who: str, call: Callable[[], None]) -> None:
    """Call on a thread, and wait for it as long as the timeout: MPICH waits for a process that died without an end."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run, name="MPI_Init", daemon=True)
    thread.start()
    thread.join(timeout.total_seconds())
    if thread.is_alive():
        fail()
        raise DistBackendError(
            f"{who}: MPI has not started after {timeout.total_seconds():g} s: a process of the job is gone or late"
        )
    if errors:
        raise errors[0]


def _finalize(server: PmiServer | None, store: Store | None, rank: int, size: int) -> None:
    """Leave MPI, if all processes do: otherwise it would wait for those that are gone."""
    _leave(store, rank, size)
    if server is not None:
        server.answer_in_advance()


def _leave(store: Store | None, rank: int, size: int) -> None:
    if (
        _Started.failed or getattr(sys, "last_value", None) is not None
    ):  # an exception ends this process: the others wait for it
        return
    if store is not None and not _leave_together(store, size):
        return
    _library().MPI_Finalize()  # by ctypes, so that the thread that answers PMI can run
    if store is not None:
        with contextlib.suppress(DistStoreError, RuntimeError):
            if store.add("left", 1) == size:
                store.set("all left", "1")
            if rank == 0:  # it may serve the store, which the others need until they have left
                store.wait(["all left"], timedelta(seconds=_FINALIZE_S))


def _leave_together(store: Store, size: int) -> bool:
    """Whether all processes end at about the same time, and the same answer in each of them.

    A process that has waited for the others in vain decides for them, too: who came to MPI_Finalize later would wait there for
    one that is gone.
    """
    try:
        if store.add("leaving", 1) == size:
            store.compare_set("outcome", "", _TOGETHER)
        with contextlib.suppress(DistStoreError):
            store.wait(["outcome"], timedelta(seconds=_FINALIZE_S))
        return store.compare_set("outcome", "", "apart") == _TOGETHER
    except (DistStoreError, RuntimeError):  # a process died, and the store with it
        return False


def fail() -> None:
    """Note that an operation did not end, so that the process will not wait for others when it ends."""
    _Started.failed = True


class _MpiRequest:
    """A request of MPI's, and what it reads and writes."""

    def __init__(self, mpi: Any, request: Any, *kept: Any) -> None:
        self._mpi, self._request, self._kept = mpi, request, kept
        self._done = False

    def test(self) -> bool:
        """Whether MPI is done with it."""
        if not self._done:
            try:
                self._done = self._test()
            except self._mpi.Exception as error:
                raise DistBackendError(f"MPI: {error}") from error
            if self._done:
                self._kept = ()
        return self._done

    def _test(self) -> bool:
        done: bool = self._request.Test()
        return done

    def source(self) -> int:
        """-1: it is no message that was received."""
        return -1


class _Received(_MpiRequest):
    """A message that is received: it must be as long as the buffer for it."""

    _source = -1

    def _test(self) -> bool:
        status = self._mpi.Status()
        if not self._request.Test(status):
            return False
        self._source = status.source
        (buffer,) = self._kept
        count = status.Get_count(self._mpi.BYTE)
        if count != buffer.size:
            raise DistBackendError(f"rank {self._source} sent {count} bytes, and {buffer.size} were expected")
        return True

    def source(self) -> int:
        """The rank that it came from."""
        return self._source


class _Pieces:
    """Operations on the parts of a buffer, one after another."""

    def __init__(self, mpi: Any, buffer: Buffer, begin: Callable[[Buffer], Any]) -> None:
        self._mpi = mpi
        step = max(_PIECE_BYTES // buffer.itemsize, 1)
        self._rest = [buffer[at : at + step] for at in range(0, buffer.size, step)][::-1]
        self._begin = begin
        self._current = _MpiRequest(mpi, begin(self._rest.pop()), buffer)

    def test(self) -> bool:
        """Whether the last one is done; begins the next one where one is."""
        while self._current.test():
            if not self._rest:
                return True
            self._current = _MpiRequest(self._mpi, self._begin(self._rest.pop()))
        return False

    def source(self) -> int:
        """-1: it is no message."""
        return -1


class Communicator:
    """`engine.Communicator` on one of MPI's."""

    is_alone = False

    def __init__(self, comm: Any) -> None:
        self._comm = comm
        self._mpi = _import_mpi()
        self.rank: int = comm.rank
        self.size: int = comm.size

    def _op(self, name: str) -> Any:
        return getattr(self._mpi, {"PRODUCT": "PROD"}.get(name, name))

    def all_reduce(self, buffer: Buffer, op: str) -> Request:
        """Allreduce in place."""
        mpi_op = self._op(op)
        return self._pieces(buffer, lambda part: self._comm.Iallreduce(self._mpi.IN_PLACE, part, mpi_op))

    def reduce(self, buffer: Buffer, op: str, root: int) -> Request:
        """Reduce, in place at the root."""
        mpi_op = self._op(op)
        if self.rank == root:
            return self._pieces(buffer, lambda part: self._comm.Ireduce(self._mpi.IN_PLACE, part, mpi_op, root))
        return self._pieces(buffer, lambda part: self._comm.Ireduce(part, None, mpi_op, root))

    def broadcast(self, buffer: Buffer, root: int) -> Request:
        """Bcast."""
        return self._pieces(as_bytes(buffer), lambda part: self._comm.Ibcast(part, root))

    def _pieces(self, buffer: Buffer, begin: Callable[[Buffer], Any]) -> Request:
        flat = buffer.reshape(-1)
        return _Pieces(self._mpi, flat, begin) if flat.size else Done()

    def all_gather(self, part: Buffer, parts: Buffer) -> Request:
        """Allgather."""
        part, parts = as_bytes(part), as_bytes(parts)
        return _MpiRequest(self._mpi, self._comm.Iallgather(part, parts), part, parts)

    def gather(self, part: Buffer, parts: Buffer | None, root: int) -> Request:
        """Gather."""
        part, whole = as_bytes(part), None if parts is None else as_bytes(parts)
        return _MpiRequest(self._mpi, self._comm.Igather(part, whole, root), part, whole)

    def scatter(self, parts: Buffer | None, part: Buffer, root: int) -> Request:
        """Scatter."""
        part, whole = as_bytes(part), None if parts is None else as_bytes(parts)
        return _MpiRequest(self._mpi, self._comm.Iscatter(whole, part, root), part, whole)

    def all_to_all(self, sent: Buffer, counts: Sequence[int], received: Buffer, received_counts: Sequence[int]) -> Request:
        """Alltoallv, in bytes."""
        width = sent.itemsize
        sent, received = as_bytes(sent), as_bytes(received)
        specs = [
            [buffer, ([count * width for count in each], list(np.cumsum([0, *each[:-1]]) * width)), self._mpi.BYTE]
            for buffer, each in ((sent, list(counts)), (received, list(received_counts)))
        ]
        return _MpiRequest(self._mpi, self._comm.Ialltoallv(*specs), sent, received)

    def send(self, buffer: Buffer, peer: int, tag: int) -> Request:
        """Isend."""
        buffer = as_bytes(buffer)
        return _MpiRequest(self._mpi, self._comm.Isend(buffer, peer, tag), buffer)

    def receive(self, buffer: Buffer, peer: int | None, tag: int) -> Request:
        """Irecv."""
        buffer = as_bytes(buffer)
        source = self._mpi.ANY_SOURCE if peer is None else peer
        return _Received(self._mpi, self._comm.Irecv(buffer, source, tag), buffer)

    def barrier(self) -> Request:
        """Ibarrier."""
        return _MpiRequest(self._mpi, self._comm.Ibarrier())

    def subgroup(self, ranks: Sequence[int], key: int) -> Communicator:
        """Create_group: the ranks in it take part, and no others."""
        group = self._comm.group.Incl(list(ranks))
        try:
            comm = self._comm.Create_group(group, key % (1 << 15))
        finally:
            group.Free()
        comm.Set_errhandler(self._mpi.ERRORS_RETURN)
        return Communicator(comm)

    def close(self) -> None:
        """Nothing is freed: MPI frees a communicator together with all its processes, which may be gone."""
