"""torch._C._nn: the ops of layers as torch's compiled module offers them, and the reading of `Module.to`'s arguments."""

from __future__ import annotations

from typing import Any

from .._dispatch.registry import packets
from ..nn.modules._conversion import _parse_to

__all__ = ["_parse_to"]


def __getattr__(name: str) -> Any:
    packet = packets.get(name)
    if packet is None:
        raise AttributeError(f"module 'torch._C._nn' has no attribute '{name}'")
    return packet.function
