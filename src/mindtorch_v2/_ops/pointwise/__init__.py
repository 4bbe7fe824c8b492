"""Element by element: arithmetic, comparison, bits, bounds, rounding and powers."""

from . import arithmetic, bitwise, clamping, comparison, fake_quantize, powers, rounding, scalar_forms
