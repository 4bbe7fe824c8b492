"""torch.nn.quantized: arithmetic as modules, which models carry so that it could be quantized."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..._refused import fill

if TYPE_CHECKING:
    from .functional_modules import FloatFunctional as FloatFunctional

fill(sys.modules[__name__], "ao.nn.quantized")
