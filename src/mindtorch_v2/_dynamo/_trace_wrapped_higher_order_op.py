"""torch._dynamo._trace_wrapped_higher_order_op: a mode that mask functions of attention run under."""

from __future__ import annotations

from contextlib import nullcontext

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(nullcontext[None]):
    """Makes a subscript with a tensor an index op, for `vmap`: it is one anyway, so nothing changes inside the block."""
