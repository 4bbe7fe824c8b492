"""torch._custom_ops: older names of `torch.library`."""

from __future__ import annotations

from typing import NoReturn

from .library import custom_op

__all__ = ["custom_op", "get_ctx"]


def get_ctx() -> NoReturn:
    """Sizes that are not known before an op has run, for shape rules: sizes are plain numbers here."""
    raise NotImplementedError("torch.library.get_ctx: shapes that depend on data have no rule without data")
