"""Greenlets (gevent) take turns on a thread in the middle of calls, so that calls and returns do not pair up any more.

Tracing of Python calls therefore ends at the first switch of a thread, and the recording says so. Ops and ranges are still told
apart.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def call_at_first_switch(function: Callable[[], None]) -> Callable[[], None]:
    """Have a function called when the calling thread first switches to another greenlet; returns what cancels that.

    Does nothing if the program has not imported greenlet. Another tool's function for switches is called along.
    """
    greenlet = sys.modules.get("greenlet")
    if greenlet is None:
        return lambda: None
    waiting = True

    def on_switch(event: str, args: Any) -> None:
        nonlocal waiting
        if waiting:
            waiting = False
            function()
        if before is not None:
            before(event, args)

    def cancel() -> None:
        nonlocal waiting
        waiting = False
        if greenlet.gettrace() is on_switch:  # else it stays, and does no more than call the one before it
            greenlet.settrace(before)

    before = greenlet.settrace(on_switch)
    return cancel
