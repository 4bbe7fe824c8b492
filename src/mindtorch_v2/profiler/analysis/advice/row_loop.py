"""A Python loop takes a tensor apart row by row."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding
from ._evidence import share
from ._loops import loops


def rule(store: EventStore) -> list[Finding]:
    """Fires where a line picks a part of a tensor and works on it, at least eight times a pass; needs stacks."""
    return [
        Finding(
            "row_loop",
            f"A loop takes a tensor apart, {loop.calls:.0f} times a step",
            "Each round pays for its calls, however small the part is. The same ops on the whole tensor, with a dimension for "
            "what the loop runs over, do it in one call. If a round needs the result of the one before, do what does not "
            "before the loop.",
            tuple(f"{name}: {count:,} calls{f' on {shapes}' if shapes else ''}" for name, count, shapes in loop.names(store)),
            loop.line,
            loop.gain_ns,
            share(loop.gain_ns, store),
        )
        for loop in loops(store)
        if loop.picks and not loop.reads
    ]
