"""torch._dynamo: the switches of the compiler that scripts set. `torch.compile` runs code as it is, whatever they say."""

from __future__ import annotations

from types import SimpleNamespace

from ..compiler import allow_in_graph, disable, is_compiling, reset

__all__ = ["allow_in_graph", "config", "disable", "is_compiling", "reset"]

config = SimpleNamespace(
    cache_size_limit=8,
    capture_scalar_outputs=False,
    dynamic_shapes=True,
    recompile_limit=8,
    suppress_errors=False,
    verbose=False,
)
