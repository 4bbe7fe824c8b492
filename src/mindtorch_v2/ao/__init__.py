"""torch.ao: modules that mark where a model may be quantized; quantizing itself is not supported."""

from __future__ import annotations

from . import quantization

__all__ = ["quantization"]
