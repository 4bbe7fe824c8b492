"""torch.cuda: never available here, and it says so."""

from __future__ import annotations

from typing import Any

from ._absent_device import absent

globals().update(absent("CUDA"))

has_half = False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether CUDA devices compute in bfloat16: there are none."""
    return False


class _NeedsCuda:
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class Stream(_NeedsCuda):
    """A stream of a CUDA device."""


class Event(_NeedsCuda):
    """An event of a CUDA device."""


class CUDAGraph(_NeedsCuda):
    """A captured graph of a CUDA device."""
