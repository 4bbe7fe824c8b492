"""torch.utils._triton: whether kernels can be written in Triton, which they cannot."""

from __future__ import annotations

__all__ = ["has_triton", "has_triton_package"]


def has_triton_package() -> bool:
    """Whether Triton can be used from here, which runs no kernels of its: never."""
    return False


has_triton = has_triton_package
