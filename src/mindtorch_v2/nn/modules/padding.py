"""Padding layers."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._core.tensor import Tensor
from .._functional.pad import pad
from .._sizes import _ntuple
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """Adds to both ends of the last dims; one number, or one per end, the last dim first."""

    __constants__: ClassVar[list[str]] = ["padding"]

    padding: tuple[int, ...]
    _spatial_dims: int
    _mode: str

    def __init__(self, padding: Any) -> None:
        super().__init__()
        self.padding = _ntuple(2 * self._spatial_dims)(padding)

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPadNd(_Pad):
    __constants__: ClassVar[list[str]] = ["padding", "value"]

    value: float
    _mode = "constant"

    def __init__(self, padding: Any, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return pad(input, self.padding, self._mode, self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds one value to the ends of L."""

    _spatial_dims = 1


class ConstantPad2d(_ConstantPadNd):
    """Adds one value around H and W."""

    _spatial_dims = 2


class ConstantPad3d(_ConstantPadNd):
    """Adds one value around D, H and W."""

    _spatial_dims = 3


class ZeroPad1d(ConstantPad1d):
    """Adds zeros to the ends of L."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad2d(ConstantPad2d):
    """Adds zeros around H and W."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad3d(ConstantPad3d):
    """Adds zeros around D, H and W."""

    def __init__(self, padding: Any) -> None:
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class _ReflectionPadNd(_Pad):
    _mode = "reflect"


class ReflectionPad1d(_ReflectionPadNd):
    """Adds the mirror image of L at its ends."""

    _spatial_dims = 1


class ReflectionPad2d(_ReflectionPadNd):
    """Adds the mirror image around H and W."""

    _spatial_dims = 2


class ReflectionPad3d(_ReflectionPadNd):
    """Adds the mirror image around D, H and W."""

    _spatial_dims = 3


class _ReplicationPadNd(_Pad):
    _mode = "replicate"


class ReplicationPad1d(_ReplicationPadNd):
    """Repeats the first and the last value of L."""

    _spatial_dims = 1


class ReplicationPad2d(_ReplicationPadNd):
    """Repeats the border around H and W."""

    _spatial_dims = 2


class ReplicationPad3d(_ReplicationPadNd):
    """Repeats the border around D, H and W."""

    _spatial_dims = 3


class _CircularPadNd(_Pad):
    _mode = "circular"

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._spatial_dims + 1
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Goes on from the other end of L."""

    _spatial_dims = 1


class CircularPad2d(_CircularPadNd):
    """Goes on from the other side of H and W."""

    _spatial_dims = 2


class CircularPad3d(_CircularPadNd):
    """Goes on from the other side of D, H and W."""

    _spatial_dims = 3
