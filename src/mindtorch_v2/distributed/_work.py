"""Work: a collective or a message under way, and the waiting for it.

The thread that waits for a work tests it itself: at first without a pause, then with longer and longer ones, so that a short
operation ends at once and a peer that is late costs little. What is not waited for is tested by one thread of the process.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .._dispatch.communications import Communication
from ..futures import Future
from ._engines import mpi as _mpi
from ._engines.engine import Request
from ._engines.hccl import DeviceRequest
from ._errors import DistBackendError

if TYPE_CHECKING:
    from ._traffic import SeveralCommunications

# Tests without a pause before the first sleep: longer where bytes are moved meanwhile (4 MB take 1.1 in place of 1.4 ms, at no
# more CPU time), but not long enough for a late process to cost much.
_SPIN_S, _SPIN_S_PER_BYTE, _MOST_SPIN_S = 0.3e-3, 0.25e-9, 2e-3
_LEAST_PAUSE_S, _MOST_PAUSE_S = 20e-6, 500e-6
_S_PER_BYTE = 2e-9  # that an operation may take if no process is late
_IDLE_PAUSE_S = 2e-3  # of the thread that tests what is not waited for, where nothing ends for a while
_yield_core = getattr(os, "sched_yield", lambda: None)


class Work:
    """What a collective with `async_op=True` returns. The tensors are ready when `wait()` has returned."""

    def __init__(
        self,
        request: Request,
        results: list[Any],
        finish: Callable[[], None] | None,
        what: str,
        timeout: timedelta,
        fail: Callable[[str], None],
        recorded: Communication | SeveralCommunications | None = None,
        nbytes: int = 0,
    ) -> None:
        """`finish` puts received data into its tensors; `what` names the operation in errors, `fail` marks its group.

        `recorded` is what profiles are told of it. MPI moves bytes while it is tested, so the more there are (`nbytes`), the
        longer a thread that waits tests without long pauses.
        """
        self.recorded = recorded
        self._request, self._results, self._finish = request, results, finish
        self._what, self._fail = what, fail
        self._began = time.monotonic()
        self._timeout_s = timeout.total_seconds()
        self._busy_s = nbytes * _S_PER_BYTE
        self._spin_s = min(_SPIN_S + nbytes * _SPIN_S_PER_BYTE, _MOST_SPIN_S)
        self._lock = threading.Lock()
        self._done = False
        self._is_waited_for = False
        self._error: BaseException | None = None
        self._future: Future[Any] | None = None

    # ------------------------------------------------------------------ torch's methods

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        return self._advance()

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self._advance() and self._error is None

    def exception(self) -> BaseException | None:
        """Why it failed; None while it has not."""
        self._advance()
        return self._error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Return True when the tensors are ready; raises if it failed, or is not done within the timeout of it or its group."""
        limit = timeout.total_seconds() if timeout else self._timeout_s
        self._wait(limit)
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        """Wait, as for a device: the CPU's tensors are ready then."""
        self.wait()

    def block_current_stream(self) -> None:
        """Wait: the CPU has one stream."""
        self.wait()

    def result(self) -> list[Any]:
        """The tensors of a work that has ended."""
        if not self._advance():
            raise RuntimeError("Work needs to be completed before calling result(). Should call wait() before result().")
        if self._error is not None:
            raise self._error
        return self._results

    def source_rank(self) -> int:
        """The rank, in its group, that a message came from."""
        source = self._request.source() if self._advance() else -1
        if source < 0:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return source

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """A future of the tensors."""
        with self._lock:
            if self._future is not None:
                return self._future
            future = self._future = Future()
            done = self._done
        if done:
            self._complete_future(future)
        else:
            background.watch(self)
        return future

    # ------------------------------------------------------------------ progress

    def _advance(self) -> bool:
        """Test it, and end it if it is done; whether it has ended. For any thread."""
        if self._done:
            return True
        with self._lock:
            if self._done:
                return True
            try:
                if not self._request.test():
                    return False
                if self._finish is not None:
                    self._finish()
            except BaseException as error:
                self._error = self._explained(error)
            self._end()
            future = self._future
        if future is not None:
            self._complete_future(future)
        return True

    def _end(self) -> None:
        self._done = True
        if self.recorded is not None:
            self.recorded.end()

    def _explained(self, error: BaseException) -> BaseException:
        if not isinstance(error, DistBackendError):
            return error
        self._fail(str(error))
        return DistBackendError(f"{self._what}: {error}")

    def _complete_future(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._results)
        else:
            future.set_exception(self._error)  # type: ignore[arg-type]  # an interrupt, too

    def _wait(self, limit_s: float) -> None:
        begin = time.monotonic()
        pause = _LEAST_PAUSE_S
        self._is_waited_for = True
        try:
            while not self._advance():
                waited = time.monotonic() - begin
                if waited > limit_s:
                    self._time_out(limit_s)
                    return
                if waited > self._spin_s:
                    time.sleep(pause)
                else:
                    _yield_core()  # the process waited for may be on the same one
                if waited > self._busy_s:
                    pause = min(pause * 2, _MOST_PAUSE_S)
        finally:
            self._is_waited_for = False

    def _time_out(self, limit_s: float) -> None:
        reason = f"not done after {limit_s:g} s: a process of the group is gone, late, or in another operation"
        with self._lock:
            if self._done:
                return
            self._error = DistBackendError(f"{self._what}: {reason}")
            self._end()
        if not isinstance(self, DeviceWork):
            _mpi.fail()
        self._fail(reason)
        if self._future is not None:
            self._complete_future(self._future)

    def _past_deadline(self) -> bool:
        return time.monotonic() - self._began > self._timeout_s


class DeviceWork(Work):
    """Work in a stream of a device. `wait()` has the caller's stream wait, and the host goes on, as in torch.

    With HCCL_BLOCKING_WAIT=1, or a timeout, the host waits, and learns what failed; without, the next collective tells it.
    """

    _request: DeviceRequest
    holds_host = False  # `wait()` waits on the host, as for a barrier

    def __init__(
        self,
        request: Request,
        results: list[Any],
        finish: Callable[[], None] | None,
        what: str,
        timeout: timedelta,
        fail: Callable[[str], None],
        recorded: Communication | SeveralCommunications | None = None,
    ) -> None:
        """`finish` is done at once, by the stream."""
        assert isinstance(request, DeviceRequest)
        request.seal(finish)
        super().__init__(request, results, None, what, timeout, fail, recorded)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Have the caller's stream wait for it, or the host too."""
        if timeout or self.holds_host or os.environ.get("HCCL_BLOCKING_WAIT") == "1":
            super().wait(timeout)
        if self._error is not None:
            raise self._error
        self._request.follow()
        return True

    def synchronize(self) -> None:
        """Have the caller's stream wait for it."""
        self.wait()


class _Background:
    """The thread that tests works for which nothing waits, from the first one on."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: list[Work] = []
        self._thread: threading.Thread | None = None

    def watch(self, work: Work) -> None:
        """Test a work until it is done."""
        with self._changed:
            if work not in self._watched:
                self._watched.append(work)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="torch.distributed", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        pause = _LEAST_PAUSE_S
        while True:
            with self._changed:
                while not self._watched:
                    self._changed.wait()
                works = list(self._watched)
            ended = [work for work in works if work._done or (not work._is_waited_for and work._advance())]
            late = [work for work in works if work not in ended and work._past_deadline()]
            for work in late:
                work._time_out(work._timeout_s)
            pause = _LEAST_PAUSE_S if ended else min(pause * 2, _IDLE_PAUSE_S)
            with self._changed:
                self._watched = [work for work in self._watched if work not in ended and work not in late]
            time.sleep(pause)


background = _Background()
