"""torch.ao.quantization: the modules that models carry for it. Nothing is quantized here, so they pass tensors on."""

from __future__ import annotations

from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = ["DeQuantStub", "QuantStub", "QuantWrapper"]
