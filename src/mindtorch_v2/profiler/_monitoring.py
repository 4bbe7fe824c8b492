"""Listens to a thread's Python calls through sys.monitoring, for Python 3.12 and later.

The events of this runtime's own code are switched off one by one as they come up, so that they cost nothing after the
first time. Only the entries of ops stay on: they tell which line an op was called from, and that whatever happens until
they return is this runtime's own business.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from threading import get_ident
from types import BuiltinFunctionType, CodeType, FrameType, MethodDescriptorType, ModuleType
from typing import Any

from ._insides import belongs

_monitoring: Any = getattr(sys, "monitoring", None)
_TOOL_NAME = os.path.basename(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_BUILTINS = (BuiltinFunctionType, MethodDescriptorType)


class Listener:
    """Fills a stream (see _stacks) from the calls of the thread that prepares it."""

    def __init__(
        self,
        objects: list[Any],
        times: list[int],
        places: list[int],
        clock: Callable[[], int],
        lost: Callable[[FrameType | None], None],
    ) -> None:
        """`lost` is part of what every listener takes; this one misses nothing."""
        del lost
        self._stream = _Stream(objects, times, places, clock)
        self._thread = 0

    def prepare(self) -> Callable[[], None]:
        """Make ready to listen to the calling thread. What is returned begins it and is no Python function."""
        self._thread = get_ident()
        _hub.ready()
        streams, thread, stream = _hub.streams, self._thread, self._stream
        return _Later(streams, thread, stream)

    def stop(self) -> None:
        """Listen no more."""
        _hub.streams.pop(self._thread, None)
        _hub.rest()

    @staticmethod
    def after_row(extend: Any) -> Any:
        """An op's row needs no attention."""
        return extend

    after_detail = after_row
