"""torch.backends.cpu: what the processor can do."""

from __future__ import annotations

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Which vector instructions torch's own kernels are compiled for: "DEFAULT", since there are none."""
    return "DEFAULT"
