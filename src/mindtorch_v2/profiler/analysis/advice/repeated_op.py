"""A line calls the same op on the same shapes again and again."""

from __future__ import annotations

from ...store.store import EventStore
from ..findings import Finding
from ._evidence import share
from ._loops import loops


def rule(store: EventStore) -> list[Finding]:
    """Fires where a line calls an op on the same shapes eight times a pass, at a cost beside the work; needs stacks."""
    return [
        Finding(
            "repeated_op",
            f"One line calls {loop.names(store)[0][0]} {loop.calls:.0f} times a step on the same shapes",
            "Unless each call needs the result of the one before, do them as one: stack the inputs and call the op once, with "
            "a dimension more (matmul and bmm take batches).",
            tuple(f"{name}: {count:,} calls{f' on {shapes}' if shapes else ''}" for name, count, shapes in loop.names(store)),
            loop.line,
            loop.gain_ns,
            share(loop.gain_ns, store),
        )
        for loop in loops(store)
        if not loop.picks and not loop.reads
    ]
