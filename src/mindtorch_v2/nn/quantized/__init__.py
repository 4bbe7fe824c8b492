"""torch.nn.quantized: arithmetic as modules, which models carry so that it could be quantized."""

from __future__ import annotations

from .functional_modules import FloatFunctional

__all__ = ["FloatFunctional"]
