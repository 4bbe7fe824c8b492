"""How the program wrote a call that failed: methods and functions are one object here, but their messages differ."""

from __future__ import annotations

import sys
from opcode import opname
from types import FrameType

from .facts import Surface
from .registry import Packet

_OURS = __name__.partition(".")[0]


def only_a_method(packet: Packet) -> bool:
    """Whether an op is called on a tensor, and is no function beside."""
    return packet.name.endswith("_") or any(Surface.FUNCTION not in spec.surface for spec in packet)


def is_method_call(name: str, count: int) -> bool:
    """Whether an op that got `count` arguments was called as a method, so that the first of them stands before the dot.

    The caller's bytecode says how many arguments are written in the call. Where that cannot be told, as with `*args`, or where
    the call is not the program's own, the op counts as a function.
    """
    inner: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _OURS:
        inner, frame = frame, frame.f_back
    if frame is None or inner is None or inner.f_code.co_name not in (name, "call", "entry"):
        return False
    code, place = frame.f_code.co_code, frame.f_lasti
    while place > 0 and opname[code[place]] == "CACHE":  # what follows a call instruction belongs to it
        place -= 2
    return place >= 0 and opname[code[place]] in ("CALL", "CALL_KW") and code[place + 1] == count - 1
