"""torch.distributed.elastic.multiprocessing.errors: what a process leaves behind when it fails, and how a launcher tells it.

A function decorated with `record` writes what it raises into the file that the variable TORCHELASTIC_ERROR_FILE names, so
that the launcher can show the traceback of the process that failed first.
"""

from __future__ import annotations

import functools
import json
import os
import signal
import socket
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ....._core.files import write_whole

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "SignalException", "get_error_handler", "record"]

JSON = dict[str, Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])
_ERROR_FILE = "TORCHELASTIC_ERROR_FILE"
_NOT_RECORDED = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


class SignalException(Exception):
    """A launcher was told to end by a signal, `sigval`."""

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class ErrorHandler:
    """Writes exceptions into the file that the launcher named."""

    def initialize(self) -> None:
        """Have hangs and crashes of the interpreter show their stacks."""
        import faulthandler

        try:
            faulthandler.enable(all_threads=True)
        except (ValueError, RuntimeError, OSError) as error:  # no stderr to write to
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Write down an exception; nothing happens without a file to write to."""
        path = os.environ.get(_ERROR_FILE)
        if not path:
            return
        told = {
            "message": f"{type(e).__name__}: {e}",
            "extraInfo": {"py_callstack": "".join(traceback.format_exception(e)), "timestamp": str(int(time.time()))},
        }
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, [json.dumps({"message": told}).encode()])


def get_error_handler() -> ErrorHandler:
    """The handler that `record` uses."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """A process that failed: its exit code, and what it wrote into its error file."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: JSON = field(init=False)
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self) -> None:
        """Read the error file, if the process left one."""
        self.error_file_data, self.message, self.timestamp = {}, self._without_file(), int(time.time())
        path = Path(self.error_file)
        if not path.is_file():
            self.error_file = "<N/A>"
            return
        try:
            self.error_file_data = json.loads(path.read_bytes())
        except (OSError, ValueError):  # the process was killed while it wrote
            return
        told = self.error_file_data.get("message", "")
        if isinstance(told, str):
            self.message = told
        else:
            more = told.get("extraInfo", {})
            self.message = more.get("py_callstack", told.get("message", ""))
            self.timestamp = int(more.get("timestamp", self.timestamp))

    def _without_file(self) -> str:
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        return _NOT_RECORDED

    def signal_name(self) -> str:
        """The name of the signal that ended it, "<N/A>" if none did."""
        if self.exitcode >= 0:
            return "<N/A>"
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return "<Invalid signal>"

    def timestamp_isoformat(self) -> str:
        """When it failed."""
        return time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(self.timestamp))


GlobalRank = int


class ChildFailedError(Exception):
    """Processes of a job failed. `failures` has them by rank, the one that failed first included."""

    def __init__(self, name: str, failures: dict[GlobalRank, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError("failures cannot be empty")
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[GlobalRank, ProcessFailure]:
        """The rank that failed first, and its failure; of those of one second, the first in the mapping."""
        rank = min(self.failures, key=lambda each: self.failures[each].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """The failures as a table: that which came first stands last, as the root cause."""
        first, _ = self.get_first_failure()
        others = [each for each in self.failures if each != first]
        root = self._lines(0, first)
        rest = [line for number, rank in enumerate(others, 1) for line in self._lines(number, rank)]
        title = f"{self.name} FAILED"
        longest = max(len(line) for line in (title, *root, *rest))
        width = min(longest, 60)
        edge, section = boarder_delim * width, section_delim * width
        listed = "\n".join(rest) or "  <NO_OTHER_FAILURES>"
        cause = "\n".join(root)
        cause_title = "Root Cause (first observed failure):"
        return "\n".join(["", edge, title, section, "Failures:", listed, section, cause_title, cause, edge])

    def _lines(self, number: int, rank: int) -> list[str]:
        failure = self.failures[rank]
        name = f" ({failure.signal_name()})" if failure.exitcode < 0 else ""
        message = failure.message.rstrip("\n").replace("\n", "\n  ")
        text = (
            f"[{number}]:\n"
            f"  time      : {failure.timestamp_isoformat()}\n"
            f"  host      : {socket.getfqdn()}\n"
            f"  rank      : {rank} (local_rank: {failure.local_rank})\n"
            f"  exitcode  : {failure.exitcode} (pid: {failure.pid}) {name}\n"
            f"  error_file: {failure.error_file}\n"
            f"  traceback : {message}"
        )
        return text.split("\n")


def record(fn: _Function, error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Decorate the main function of a process: what it raises is written down for the launcher, and raised on."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            # A launcher that ran the function itself ends with its code; others learn what it was.
            if error.code not in (None, 0):
                handler.record_exception(error)
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            path = os.environ.get(_ERROR_FILE)
            if path and failure.error_file_data:
                write_whole(path, [json.dumps(failure.error_file_data).encode()])
            elif path:
                handler.record_exception(error)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return recorded
