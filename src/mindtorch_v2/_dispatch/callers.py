"""How the program wrote a call that failed: methods and functions are one object here, but their messages differ."""

from __future__ import annotations

from .._core.cpython import arguments_written, call_into
from .facts import Surface
from .registry import Packet

_PACKAGE = __name__.partition(".")[0]


def only_a_method(packet: Packet) -> bool:
    """Whether torch has an op only as a method of tensors."""
    return packet.name.endswith("_") or any(spec.surface is Surface.METHOD for spec in packet)


def is_method_call(name: str, count: int) -> bool:
    """Whether an op that got `count` arguments was called as a method, so that the first of them stands before the dot.

    The caller's bytecode says how many arguments are written in the call. Where it does not, as with `*args`, or where the
    program did not call the op itself, the op counts as a function.
    """
    call = call_into(_PACKAGE)
    if call is None:
        return False
    caller, called = call
    return called.f_code.co_name in (name, "call", "entry") and arguments_written(caller) == count - 1
