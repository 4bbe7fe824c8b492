"""Starting processes that run one function, and waiting for them: `spawn`, `start_processes`."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_log = logging.getLogger(__name__)


class ProcessException(Exception):
    """A process that was started has failed. `error_index` is its number, `error_pid` its id."""

    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg: str, error_index: int, pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended by an exception, whose traceback is in the message."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.error_pid = error_pid


class ProcessExitedException(ProcessException):
    """A process ended by itself with an exit code, or by a signal."""

    __slots__ = ["exit_code"]

    def __init__(
        self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None, signal_name: str | None = None
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.error_pid, self.exit_code, self.signal_name = error_pid, exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], error_file: str) -> None:
    """The process: run the function; leave what it raised in a file."""
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes = processes
        self.error_files = error_files
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The process ids, in the order of their numbers."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until a process has ended; True if all have, False if some still run.

        Where one has failed the others are stopped, after `grace_period` seconds if that is given, and its
        ProcessRaisedException or ProcessExitedException is raised.
        """
        if not self.sentinels:
            return True
        ready: Any = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            process = self.processes[index]
            process.join()
            if process.exitcode != 0:
                failed = index
                break
        if failed is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._failure(failed)

    def _end_others(self, grace_period: float | None) -> None:
        if grace_period is not None:
            end = time.monotonic() + grace_period
            for process in self.processes:
                process.join(max(0.0, end - time.monotonic()))
        for process in self.processes:
            if process.is_alive():
                _log.warning("Terminating process %s via signal %s", process.pid, "SIGTERM")
                process.terminate()
        end = time.monotonic() + 30
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _failure(self, index: int) -> ProcessException:
        process = self.processes[index]
        path = self.error_files[index]
        if os.path.exists(path) and os.path.getsize(path):
            with open(path, "rb") as file:
                trace = pickle.load(file)
            message = f"\n\n-- Process {index} terminated with the following error:\n{trace}"
            return ProcessRaisedException(message, index, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            return ProcessExitedException(
                f"process {index} terminated with signal {name}", index, process.pid, code, signal_name=name
            )
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, process.pid, code)

    def __del__(self) -> None:
        for path in getattr(self, "error_files", ()):
            with contextlib.suppress(OSError):
                os.unlink(path)


class SpawnContext(ProcessContext):
    """The older name."""


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes, and wait for them unless `join=False`, which gives their context."""
    context: Any = multiprocessing.get_context(start_method)
    processes, error_files = [], []
    for index in range(nprocs):
        handle, path = tempfile.mkstemp(prefix="torch_process_error_")
        os.close(handle)
        os.unlink(path)
        process = context.Process(target=_run, args=(fn, index, args, path), daemon=daemon)
        process.start()
        error_files.append(path)
        processes.append(process)
    started = ProcessContext(processes, error_files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` fresh processes."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
