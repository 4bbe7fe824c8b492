"""torch.futures: results that are set later, possibly by another thread."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, NoReturn, TypeVar, cast

from ._core.device import device as Device

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")
_log = logging.getLogger(__name__)


class Future(Generic[T]):
    """A value, or an exception, that comes later. It is set once.

    Callbacks run in the order in which they were added, on the thread that sets the value, or at once where it is set.
    """

    def __init__(self, *, devices: Sequence[int | str | Device] | None = None) -> None:
        for each in devices or ():
            device = Device(each)
            if device.index is None:
                raise ValueError(f"Expected devices to have indices, got {device}")
            raise RuntimeError(f"PyTorch is not linked with support for {device.type} devices")
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []

    def done(self) -> bool:
        """Whether the value or an exception is there."""
        return self._done

    def wait(self) -> T:
        """The value, once it is there; or the exception, raised."""
        with self._changed:
            while not self._done:
                self._changed.wait()
        return self.value()

    def value(self) -> T:
        """The value of a future that is done; or its exception, raised."""
        if not self._done:
            raise RuntimeError("value() of a Future that is not completed; wait() waits for it")
        if self._error is not None:
            raise self._error
        return cast(T, self._value)

    def set_result(self, result: T) -> None:
        """Complete the future: wait() returns the value from now on, and callbacks run."""
        self._complete(result, None)

    def set_exception(self, result: Exception) -> None:
        """Complete the future with an exception, which wait() raises."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._complete(None, result)

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of what `callback(self)` returns. What it raises, the new future's wait() raises as a RuntimeError."""
        _check_callable("then", callback)
        following: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                failed = RuntimeError(_told(error))
                failed.__cause__ = error
                following._complete(None, failed)
            else:
                following._complete(result, None)

        self._when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call `callback(self)` when the future is done. What it raises is logged and goes no further."""
        _check_callable("add_done_callback", callback)

        def run(done: Future[T]) -> None:
            try:
                callback(done)
            except Exception as error:
                _log.error(_told(error), exc_info=error)

        self._when_done(run)

    def _when_done(self, run: Callable[[Future[T]], Any]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be "
                    "marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for run in callbacks:
            run(self)

    def __reduce__(self) -> NoReturn:
        raise RuntimeError("Can not pickle torch.futures.Future")


def _told(error: Exception) -> str:
    return f"Got the following error when running the callback: {type(error).__name__}: {error}"


def _check_callable(name: str, callback: Any) -> None:
    if not callable(callback):
        raise TypeError(f"{name}(): the callback must be callable, not {type(callback).__name__}")


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future of the list of all these, done when they all are; with the first exception among them, if there is one."""
    for future in futures:
        if not isinstance(future, Future):
            raise TypeError(f"collect_all(): expected a list of Futures, which {type(future).__name__} is not")
    collected: Future[list[Future[Any]]] = Future()
    listed = list(futures)
    lock = threading.Lock()
    left = len(listed)

    def one_done(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = not left
        if last:
            collected._complete(listed, next((future._error for future in listed if future._error is not None), None))

    if not listed:
        collected.set_result([])
    for future in listed:
        future._when_done(one_done)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """The values of all, once they are there; the first exception, raised."""
    return [future.wait() for future in collect_all(futures).wait()]
