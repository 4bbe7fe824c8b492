"""torch._VF: ops by the names of torch's functions, past anything that is written around them in Python."""

from __future__ import annotations

from typing import Any

from ._dispatch.registry import packets


def __getattr__(name: str) -> Any:
    packet = packets.get(name)
    if packet is None:
        raise AttributeError(f"module 'torch._VF' has no attribute '{name}'")
    return packet.function
