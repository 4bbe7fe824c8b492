"""The most memory that a process had."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_mb() -> float:
    """Of this process since its program began, in MiB. Linux's ru_maxrss begins at what the process that started it had."""
    if sys.platform == "linux":
        line = next(line for line in Path("/proc/self/status").read_bytes().splitlines() if line.startswith(b"VmHWM:"))
        return int(line.split()[1]) / 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20 if sys.platform == "darwin" else 1 << 10)
