"""torch.return_types: the kinds of tuples that ops with several named results return."""

from __future__ import annotations

from typing import Any

from ._dispatch.dispatcher import result_type_of
from ._dispatch.registry import packets


def __getattr__(name: str) -> Any:
    packet = packets.get(name)
    for spec in packet or ():
        if len(spec.schema.returns) > 1 and all(spec.schema.return_names):
            return result_type_of(spec)
    raise AttributeError(f"module 'torch.return_types' has no attribute '{name}'")
