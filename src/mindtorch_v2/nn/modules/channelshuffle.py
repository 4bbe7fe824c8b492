"""Mixing groups of channels."""

from __future__ import annotations

from typing import ClassVar

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .module import Module

__all__ = ["ChannelShuffle"]


class ChannelShuffle(Module):
    """Takes channels of all groups in turn."""

    __constants__: ClassVar[list[str]] = ["groups"]

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return aten.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
