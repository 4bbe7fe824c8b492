"""torch.ao.quantization: the modules that models carry for it. Nothing is quantized here, so they pass tensors on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..._refused import fill

if TYPE_CHECKING:
    from .stubs import DeQuantStub as DeQuantStub
    from .stubs import QuantStub as QuantStub
    from .stubs import QuantWrapper as QuantWrapper

fill(sys.modules[__name__], "ao.quantization")
