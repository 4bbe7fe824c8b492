"""torch.multiprocessing: Python's multiprocessing. Tensors travel between processes by copy; memory is not shared."""

from __future__ import annotations

import multiprocessing as _multiprocessing
from collections.abc import Callable
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context
from typing import Any

__all__ = [
    *_multiprocessing.__all__,
    "ProcessContext",
    "ProcessRaisedException",
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
    "spawn",
    "start_processes",
]


def get_all_sharing_strategies() -> set[str]:
    """The ways in which tensors reach other processes."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """How tensors reach other processes; set_sharing_strategy() has the one choice."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose the way: there is one."""
    if new_strategy not in get_all_sharing_strategies():
        raise NotImplementedError(f"set_sharing_strategy({new_strategy!r}): tensors travel between processes by copy")


class ProcessRaisedException(Exception):
    """A process that `spawn` started has failed."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid


class ProcessContext:
    """The processes that `start_processes` started."""

    def __init__(self, processes: list[Any]) -> None:
        self.processes = processes

    def pids(self) -> list[int | None]:
        """The process ids, in the order of the ranks."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait for all; ProcessRaisedException if one has failed, True if all have ended."""
        for index, process in enumerate(self.processes):
            process.join(timeout)
            if process.exitcode:
                for other in self.processes:
                    if other.is_alive():
                        other.terminate()
                raise ProcessRaisedException(
                    f"process {index} terminated with exit code {process.exitcode}", index, process.pid
                )
        return all(process.exitcode is not None for process in self.processes)


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Run `fn(i, *args)` in `nprocs` processes."""
    context = get_context(start_method)
    processes: list[Any] = []
    for index in range(nprocs):
        process = context.Process(target=fn, args=(index, *args), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        processes.append(process)
    started = ProcessContext(processes)
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
    return start_processes(fn, args, nprocs, join, daemon, start_method)
