"""torch.npu.mstx: marks and ranges of the program, which recordings show and, where the device is used, CANN's tools see."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

from .._core.cpython import without_signals_at_entry
from .._dispatch import observer
from ..profiler.recording.record_function import record_function

_Function = TypeVar("_Function", bound=Callable[..., Any])
_DEFAULT = "default"


class _Range(NamedTuple):
    scope: record_function | None  # None: no recording wants its domain
    number: int | None  # of CANN's library
    domain: str


_numbers = itertools.count(1)
_open: dict[int, _Range] = {}
_nested = threading.local()  # .open: the ranges of range_push() by domain


class mstx:
    """Marks in the timeline. Recordings have them as user annotations, those of a domain as `[domain] message`."""

    @staticmethod
    def mark(message: str, stream: Any = None, domain: str = _DEFAULT) -> None:
        """Mark a moment. stream: a torch.npu.Stream whose work CANN's tools see marked, too."""
        handle = _checked("mark", message, stream, domain)
        scope = _scope(message, domain)
        if scope is not None:
            with scope:
                pass
        library = _library()
        if library is not None:
            library.mark(message, handle, domain)

    @staticmethod
    def range_start(message: str, stream: Any = None, domain: str = _DEFAULT) -> int:
        """Begin a range; returns the number to give to range_end(), which another thread may call."""
        handle = _checked("range_start", message, stream, domain)
        library = _library()
        number = None if library is None else library.range_start(message, handle, domain)
        scope = _scope(message, domain)
        key = next(_numbers)
        _open[key] = _Range(None if scope is None else scope.__enter__(), number, domain)
        return key

    @staticmethod
    def range_end(range_id: int, domain: str = _DEFAULT) -> None:
        """End a range. A number that no open range of the domain has is a warning."""
        started = _open.get(range_id) if isinstance(range_id, int) else None
        if started is None or started.domain != domain:
            warnings.warn(f"mstx.range_end: there is no open range {range_id!r} in domain {domain!r}", stacklevel=2)
            return
        del _open[range_id]
        if started.scope is not None:
            started.scope.__exit__(None, None, None)
        library = _library()
        if library is not None and started.number is not None:
            library.range_end(started.number, domain)

    @staticmethod
    def range_push(message: str, stream: Any = None, domain: str = _DEFAULT) -> int:
        """Begin a range inside those that this thread has open in the domain; returns how many those were."""
        ranges = _stack(domain)
        ranges.append(mstx.range_start(message, stream, domain))
        return len(ranges) - 1

    @staticmethod
    def range_pop(domain: str = _DEFAULT) -> int:
        """End the innermost range of this thread; returns how many are left. Without one it is a warning, and -1."""
        ranges = _stack(domain)
        if not ranges:
            warnings.warn(f"mstx.range_pop: this thread has no open range in domain {domain!r}", stacklevel=2)
            return -1
        mstx.range_end(ranges.pop(), domain)
        return len(ranges)

    @staticmethod
    def mstx_range(message: str, stream: Any = None, domain: str = _DEFAULT) -> Callable[[_Function], _Function]:
        """A decorator: each call of the function is a range."""
        return annotate(message, stream, domain)

    @staticmethod
    def annotate(message: str = "", stream: Any = None, domain: str = _DEFAULT) -> annotate:
        """A range around a block, or as a decorator around each call, named by the function if there is no message."""
        return annotate(message, stream, domain)


class annotate:
    """What mstx.annotate() returns. Blocks may be nested."""

    def __init__(self, message: str = "", stream: Any = None, domain: str = _DEFAULT) -> None:
        self._message, self._stream, self._domain = message, stream, domain
        self._started: list[int] = []

    def __enter__(self) -> annotate:
        self._started.append(mstx.range_start(self._message, self._stream, self._domain))
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        mstx.range_end(self._started.pop(), self._domain)

    def __call__(self, function: _Function) -> _Function:
        message = self._message or function.__name__

        @functools.wraps(function)
        def marked(*args: Any, **kwargs: Any) -> Any:
            with annotate(message, self._stream, self._domain):
                return function(*args, **kwargs)

        return cast("_Function", marked)


def _stack(domain: str) -> list[int]:
    if not hasattr(_nested, "open"):
        _nested.open = {}
    ranges: list[int] = _nested.open.setdefault(domain, [])
    return ranges


def _checked(name: str, message: Any, stream: Any, domain: Any) -> int | None:
    """The handle of the stream; TypeError for what cannot be marked."""
    if not isinstance(message, str) or not isinstance(domain, str):
        raise TypeError(f"mstx.{name}: message and domain must be str")
    if stream is None:
        return None
    streams = sys.modules.get("mindtorch_v2._backends.npu.streams")
    if streams is None or not isinstance(stream, streams.Stream):
        raise TypeError(f"mstx.{name}: stream must be a torch.npu.Stream, not {type(stream).__name__}")
    handle: int = stream.handle
    return handle


def _scope(message: str, domain: str) -> record_function | None:
    return record_function(observer.mark_name(message, domain)) if observer.wants_marks(domain) else None


def _library() -> Any:
    """CANN's library of marks; None in a program that does not use the device."""
    if "mindtorch_v2._backends.npu.backend" not in sys.modules:
        return None
    return import_module("mindtorch_v2._backends.npu.mstx").marks()
