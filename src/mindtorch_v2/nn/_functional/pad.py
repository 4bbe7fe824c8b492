"""Padding, and windows of an image as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._sizes import _pair

__all__ = ["fold", "pad", "unfold"]


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Add to both ends of the last dims: `pad` is (left, right, top, bottom, ...), the last dim first."""
    return aten.pad(input, pad, mode, value)


def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Sliding windows of an image, each as one column."""
    return aten.im2col(input, _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))


def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """The image whose windows are given as columns; where windows overlap, their values are added up."""
    return aten.col2im(input, _pair(output_size), _pair(kernel_size), _pair(dilation), _pair(padding), _pair(stride))
