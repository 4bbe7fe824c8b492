"""Whether the calling thread's processor takes denormal numbers for zero: two bits of the control word of its vector unit.

glibc's `fegetenv` and `fesetenv` read and write that word on x86-64, as the last of the eight words of their environment.
Other machines and C libraries keep it elsewhere: there denormal numbers stay as they are.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from functools import cache
from typing import Any

_WORDS = 8  # of fenv_t: seven of the x87 unit, then MXCSR
_ZERO_RESULTS, _ZERO_OPERANDS = 0x8000, 0x0040
_AT_START = 0x1F80  # MXCSR as the processor resets it: all exceptions masked, round to nearest
_STATUS = 0x3F


@cache
def _library() -> Any:
    """The C library's functions of the floating-point environment, or None where they are not known to be these."""
    if not sys.platform.startswith("linux") or platform.machine() not in ("x86_64", "AMD64") or sys.maxsize < 1 << 32:
        return None
    if platform.libc_ver()[0] != "glibc":
        return None
    try:
        library = ctypes.CDLL("libm.so.6")
        words = (ctypes.c_uint32 * (2 * _WORDS))()  # more than is asked for, so that a longer structure does no harm
        known = library.fegetenv(words) == 0 and words[_WORDS - 1] & ~(_STATUS | _ZERO_RESULTS | _ZERO_OPERANDS) == _AT_START
    except (OSError, AttributeError):
        return None
    return library if known and not any(words[_WORDS:]) else None


def set_flushed(on: bool) -> bool:
    """Take denormal numbers for zero on the calling thread from now on, or no longer. False where that cannot be done."""
    library = _library()
    if library is None:
        return False
    words = (ctypes.c_uint32 * (2 * _WORDS))()
    if library.fegetenv(words):
        return False
    bits = _ZERO_RESULTS | _ZERO_OPERANDS
    words[_WORDS - 1] = words[_WORDS - 1] | bits if on else words[_WORDS - 1] & ~bits
    return bool(library.fesetenv(words) == 0)
