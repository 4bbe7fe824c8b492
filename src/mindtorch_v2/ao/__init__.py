"""torch.ao: modules that mark where a model may be quantized; quantizing itself is not supported."""

from __future__ import annotations

from .._lazy_imports import lazy_exports as _lazy_exports
from . import quantization

__all__ = ["quantization"]

__getattr__, __dir__ = _lazy_exports(__name__, ("nn", "ns", "pruning"))
