"""The C library's allocator, told to keep the memory that one step frees for the next one.

By default glibc gives arrays of more than 128 KB back to the system at once, and the next array of that size costs a
page fault for every 4 KB: up to half of the time of element-wise work. Importing this module raises both limits,
unless the environment sets them.
"""

from __future__ import annotations

import ctypes
import os

# From here on an array gets pages of its own; the largest value glibc accepts.
_MMAP_THRESHOLD = 32 << 20
# So much may stay unused at the end of the heap.
_TRIM_THRESHOLD = 64 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Raise the limits; False where the C library has none or the user chose them."""
    chosen = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
    if any(name in os.environ for name in chosen) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD))


keep_freed_memory()
