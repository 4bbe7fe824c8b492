"""Sets up glibc's allocator so that memory which one training step frees is reused by the next one.

By default glibc returns arrays of more than 128 KB to the system at once, and the next array of that size costs a page fault
for every 4 KB: up to half of the time of element-wise work. Importing this module raises both limits, unless the environment
sets them.
"""

from __future__ import annotations

import ctypes
import os

# Arrays of this size and more get pages of their own; the largest value that glibc accepts.
_MMAP_THRESHOLD = 32 << 20
# At most so much unused memory stays at the end of the heap.
_TRIM_THRESHOLD = 64 << 20
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Raise both limits; False where the C library has none, or the environment sets them."""
    variables = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_")
    if any(name in os.environ for name in variables) or "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", ""):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD) and mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD))


keep_freed_memory()
