"""Element by element: arithmetic, comparison, bits, bounds, rounding and powers."""

from . import (
    arithmetic,
    bitwise,
    clamping,
    comparison,
    complex_numbers,
    fake_quantize,
    powers,
    result_type,
    rounding,
    scalar_forms,
    several_operands,
)
