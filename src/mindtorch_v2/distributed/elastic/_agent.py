"""LocalAgent: starts the processes of one machine, watches them, and starts them again as often as it may."""

from __future__ import annotations

import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from .._engines.shared_memory import remove_names
from ._rendezvous import Rendezvous, Round
from ._workers import Output, Worker, Workers
from .multiprocessing.errors import ChildFailedError, ProcessFailure, SignalException

_log = logging.getLogger(__name__)
_LEAVING_S = 300.0


@dataclass
class Job:
    """What a machine runs, and how often."""

    entry: Callable[..., Any] | str
    args: tuple[Any, ...]
    name: str
    local_size: int
    max_restarts: int
    monitor_interval_s: float
    shutdown_timeout_s: float
    role: str
    run_id: str
    signals: tuple[str, ...] = ("SIGTERM", "SIGINT", "SIGHUP", "SIGQUIT")
    environment: Mapping[str, str] | None = None


class LocalAgent:
    """Runs a job's processes on this machine until they are done or may not be started again."""

    def __init__(self, job: Job, rendezvous: Rendezvous, output: Output) -> None:
        self._job, self._rendezvous, self._output = job, rendezvous, output
        self._restarts_left = job.max_restarts
        self._workers: Workers | None = None
        self._round_number = 0
        self._caught: signal.Signals | None = None

    def run(self) -> dict[int, Any]:
        """Results by rank; of commands None. ChildFailedError tells which process failed first."""
        handled = self._handle_signals()
        try:
            while True:
                meeting = self._rendezvous.join(self._job.local_size)
                self._start(meeting)
                ended = self._watch(meeting)
                if ended is not None:
                    self._rendezvous.leave(len(meeting.local_sizes), _LEAVING_S)
                    return ended
        finally:
            self._stop()
            for number, before in handled.items():
                signal.signal(number, before)

    # ------------------------------------------------------------------ starting

    def _start(self, meeting: Round) -> None:
        job = self._job
        workers = self._workers = Workers(self._output, meeting.number)
        self._round_number = meeting.number
        for local_rank in range(job.local_size):
            rank = meeting.first_rank + local_rank
            environment = {**(job.environment or {}), **self._variables(meeting, local_rank, rank)}
            args = tuple(arg.replace("${local_rank}", str(local_rank)) if isinstance(arg, str) else arg for arg in job.args)
            workers.start(local_rank, rank, environment, job.entry, args)

    def _variables(self, meeting: Round, local_rank: int, rank: int) -> dict[str, str]:
        """The environment by which a process finds the others, as torchrun sets it."""
        job, size = self._job, str(meeting.world_size)
        return {
            "LOCAL_RANK": str(local_rank),
            "RANK": str(rank),
            "GROUP_RANK": str(meeting.node_rank),
            "ROLE_RANK": str(rank),
            "ROLE_NAME": job.role,
            "LOCAL_WORLD_SIZE": str(job.local_size),
            "WORLD_SIZE": size,
            "GROUP_WORLD_SIZE": str(len(meeting.local_sizes)),
            "ROLE_WORLD_SIZE": size,
            "MASTER_ADDR": self._rendezvous.master_addr,
            "MASTER_PORT": str(self._rendezvous.port),
            "TORCHELASTIC_RESTART_COUNT": str(meeting.number),
            "TORCHELASTIC_MAX_RESTARTS": str(job.max_restarts),
            "TORCHELASTIC_RUN_ID": job.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
            "TORCH_NCCL_ASYNC_ERROR_HANDLING": os.environ.get("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"),
        }

    # ------------------------------------------------------------------ watching

    def _watch(self, meeting: Round) -> dict[int, Any] | None:
        """Results when all processes are done; None when they are to be started again."""
        workers = self._workers
        assert workers is not None
        while True:
            workers.changed.wait(self._job.monitor_interval_s)
            workers.changed.clear()
            if self._caught is not None:
                raise SignalException(f"Process {os.getpid()} got signal: {self._caught.value}", sigval=self._caught)
            failed = workers.failed()
            if failed:
                self._after_failure(meeting, failed)
                return None
            if workers.are_done:
                return {worker.rank: _result(worker) for worker in workers.workers}
            if len(meeting.local_sizes) > 1 and self._others_changed():
                return None

    def _after_failure(self, meeting: Round, failed: list[Worker]) -> None:
        """Stop the other processes; ChildFailedError if there is no start left."""
        workers = self._workers
        assert workers is not None
        culprit = failed[0]
        told = culprit.failure()
        for worker in workers.workers:
            if worker.exitcode is None:
                _log.warning("Sending process %s closing signal SIGTERM", worker.process.pid)
        self._stop()
        binary = self._job.entry if isinstance(self._job.entry, str) else sys.executable
        _log.error(
            "failed (exitcode: %s) local_rank: %s (pid: %s) of binary: %s", told.exitcode, told.local_rank, told.pid, binary
        )
        if self._restarts_left > 0:
            self._restarts_left -= 1
            if len(meeting.local_sizes) > 1:
                self._rendezvous.ask_for_restart()
            return
        failures: dict[int, ProcessFailure] = {culprit.rank: told}
        for worker in workers.failed():
            failures.setdefault(worker.rank, worker.failure())
        for failure in failures.values():  # those that were stopped, and those that failed because one had
            failure.timestamp = max(failure.timestamp, told.timestamp)
        if len(meeting.local_sizes) > 1:
            self._rendezvous.give_up(f"rank {culprit.rank} on {socket.gethostname()} ended with {told.exitcode}")
        raise ChildFailedError(self._job.name, failures)

    def _others_changed(self) -> bool:
        """Whether another machine's launcher wants to start again; RuntimeError if it has given up."""
        reason = self._rendezvous.failure_elsewhere()
        if reason is not None:
            raise RuntimeError(f"the job {self._job.run_id!r} failed on another machine: {reason}")
        if not self._rendezvous.restart_is_asked_for():
            return False
        self._stop()
        return True

    def _stop(self) -> None:
        """End the processes, and remove the names of shared memory that a process which was killed could not remove."""
        if self._workers is None:
            return
        self._workers.stop(signal.SIGTERM, self._job.shutdown_timeout_s)
        job = self._rendezvous.mpi_job(self._round_number)
        if job is not None:
            remove_names(job)

    # ------------------------------------------------------------------ signals

    def _handle_signals(self) -> dict[int, Any]:
        """Have signals end the processes first; what was there before, by number."""
        if threading.current_thread() is not threading.main_thread():
            return {}
        handled: dict[int, Any] = {}
        for name in self._job.signals:
            number = getattr(signal, name, None)
            if number is None:
                raise ValueError(f"signal {name!r} is not one of this system")
            handled[number] = signal.signal(number, self._on_signal)
        return handled

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        self._caught = signal.Signals(number)
        if self._workers is not None:
            self._workers.changed.set()


def _result(worker: Worker) -> Any:
    """What a function returned; None for a command."""
    return None if worker.results is None or worker.results.empty() else worker.results.get()
