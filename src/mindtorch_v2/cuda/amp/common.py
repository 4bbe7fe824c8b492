"""What the modules of torch.cuda.amp ask first."""

from __future__ import annotations

__all__ = ["amp_definitely_not_available"]


def amp_definitely_not_available() -> bool:
    """Whether there is no CUDA device: always."""
    return True
