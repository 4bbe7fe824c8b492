"""torch.onnx.symbolic_helper: libraries decorate their rules for the export, which is not supported, when they are imported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Say how a rule's arguments are converted; the rule keeps it in `_arg_descriptors`, and is otherwise as it was."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return function

    return decorate
