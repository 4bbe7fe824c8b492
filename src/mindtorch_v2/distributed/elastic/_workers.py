"""The processes that a launcher starts on its machine: their environment, their output, and their ends."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from .multiprocessing.errors import ProcessFailure

_STREAMS = ("stdout", "stderr")


def _has(setting: int | Mapping[int, int], local_rank: int, stream: int) -> bool:
    value = setting if isinstance(setting, int) else setting.get(local_rank, 0)
    return bool(value & (1 << stream))


@dataclass
class Output:
    """What becomes of what processes print."""

    folder: Path
    redirects: int | dict[int, int] = 0
    tee: int | dict[int, int] = 0
    local_ranks: frozenset[int] | None = None  # whose output is shown; None: of all
    role: str = "default"


@dataclass
class Worker:
    """One process, from its start on."""

    local_rank: int
    rank: int
    process: Any  # a Popen, or a Process of multiprocessing
    error_file: Path
    results: Any = None
    ended: float | None = None  # by the monotonic clock
    exitcode: int | None = None
    copies: list[threading.Thread] = field(default_factory=list)

    def failure(self) -> ProcessFailure:
        """What there is to tell of a process that failed."""
        assert self.exitcode is not None
        return ProcessFailure(self.local_rank, self.process.pid, self.exitcode, str(self.error_file))


class Workers:
    """The processes of one start. A thread for each waits for its end, so that it is known which ended first."""

    def __init__(self, output: Output, attempt: int) -> None:
        self._output, self._folder = output, output.folder / str(attempt)
        self.workers: list[Worker] = []
        self.changed = threading.Event()

    def start(
        self, local_rank: int, rank: int, environment: Mapping[str, str], entry: Callable[..., Any] | str, args: Any
    ) -> None:
        """Start a process: a command, or a function in a new interpreter."""
        folder = self._folder / str(local_rank)
        folder.mkdir(parents=True, exist_ok=True)
        error_file = folder / "error.json"
        error_file.unlink(missing_ok=True)
        everything = {**os.environ, **environment, "TORCHELASTIC_ERROR_FILE": str(error_file)}
        if callable(entry):
            worker = self._start_function(local_rank, rank, everything, entry, args, error_file)
        else:
            worker = self._start_command(local_rank, rank, everything, [entry, *args], folder, error_file)
        self.workers.append(worker)
        threading.Thread(target=self._wait, args=(worker,), name=f"waits for local rank {local_rank}", daemon=True).start()

    def _start_command(
        self, local_rank: int, rank: int, environment: dict[str, str], command: list[str], folder: Path, error_file: Path
    ) -> Worker:
        streams: dict[str, Any] = {}
        copied: list[tuple[str, IO[bytes]]] = []
        for number, name in enumerate(_STREAMS):
            if _has(self._output.redirects, local_rank, number):
                streams[name] = (folder / f"{name}.log").open("wb")
            elif _has(self._output.tee, local_rank, number):
                streams[name] = subprocess.PIPE
                copied.append((name, (folder / f"{name}.log").open("wb")))
            elif self._output.local_ranks is not None and local_rank not in self._output.local_ranks:
                streams[name] = subprocess.DEVNULL
        process = subprocess.Popen(command, env=environment, **streams)
        for stream in streams.values():
            if hasattr(stream, "close"):
                stream.close()
        worker = Worker(local_rank, rank, process, error_file)
        for name, file in copied:
            thread = threading.Thread(target=self._copy, args=(local_rank, getattr(process, name), file, name), daemon=True)
            thread.start()
            worker.copies.append(thread)
        return worker

    def _copy(self, local_rank: int, source: IO[bytes], file: IO[bytes], name: str) -> None:
        """Write what a process prints into its file and, with the rank before each line, here."""
        shown = self._output.local_ranks is None or local_rank in self._output.local_ranks
        target = getattr(sys, name)
        with source, file:
            for line in source:
                file.write(line)
                file.flush()
                if shown:
                    target.write(f"[{self._output.role}{local_rank}]:{line.decode(errors='replace')}")
                    target.flush()

    def _start_function(
        self, local_rank: int, rank: int, environment: dict[str, str], entry: Any, args: Any, error_file: Path
    ) -> Worker:
        if self._output.redirects or self._output.tee:
            raise NotImplementedError("redirects and tee of a function: start a script, or redirect in the function")
        context = multiprocessing.get_context("spawn")
        results = context.SimpleQueue()
        # Of a queue with room for one result, so that a process need not wait until it is read.
        process = context.Process(target=_call, args=(entry, args, environment, results), name=f"local rank {local_rank}")
        process.start()
        return Worker(local_rank, rank, process, error_file, results)

    def _wait(self, worker: Worker) -> None:
        process = worker.process
        if isinstance(process, subprocess.Popen):
            code = process.wait()
        else:
            process.join()
            code = process.exitcode
        worker.ended, worker.exitcode = time.monotonic(), code
        self.changed.set()

    @property
    def are_done(self) -> bool:
        """Whether all processes have ended well."""
        return all(worker.exitcode == 0 for worker in self.workers)

    def failed(self) -> list[Worker]:
        """The processes that have failed, in the order in which they did."""
        return sorted((worker for worker in self.workers if worker.exitcode), key=lambda worker: worker.ended or 0.0)

    def tell(self, number: int) -> None:
        """Send a signal to all processes that run."""
        for worker in self.workers:
            if worker.exitcode is None:
                try:
                    os.kill(worker.process.pid, number)
                except ProcessLookupError:
                    continue

    def stop(self, number: int, timeout_s: float) -> None:
        """End all processes: by a signal, and by SIGKILL those that have not ended after a while."""
        self.tell(number)
        if not self._all_ended(timeout_s):
            self.tell(signal.SIGKILL)
            self._all_ended(timeout_s)
        for worker in self.workers:
            for thread in worker.copies:
                thread.join(1)

    def _all_ended(self, timeout_s: float) -> bool:
        deadline = time.monotonic() + timeout_s
        while any(worker.exitcode is None for worker in self.workers):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self.changed.clear()
            if any(worker.exitcode is None for worker in self.workers):
                self.changed.wait(min(left, 0.2))
        return True


def _call(entry: Callable[..., Any], args: tuple[Any, ...], environment: dict[str, str], results: Any) -> None:
    """The process of a function: run it, and send back what it returns."""
    from .multiprocessing.errors import record

    os.environ.update(environment)
    results.put(record(entry)(*args))
