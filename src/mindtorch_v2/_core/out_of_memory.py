"""The one place where memory that is not there becomes the exception that torch raises."""

from __future__ import annotations

import math


def no_memory(nbytes: int) -> RuntimeError:
    """For memory that the system does not give."""
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        f"allocate {nbytes} bytes. Error code 12 (Cannot allocate memory)"
    )


def out_of_memory(error: MemoryError) -> RuntimeError:
    """What torch raises where NumPy, or Python itself, gets no memory."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:
        return RuntimeError("std::bad_alloc")
    return no_memory(math.prod(shape) * dtype.itemsize)
