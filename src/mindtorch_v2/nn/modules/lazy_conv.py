"""Convolutions that take `in_channels` from their first input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..parameter import UninitializedParameter
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .lazy import LazyModuleMixin

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["LazyConv1d", "LazyConv2d", "LazyConv3d", "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d"]


class _LazyConvXdMixin(LazyModuleMixin):
    """Comes before a convolution class."""

    _spatial_dims: int

    def _become_lazy(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        """Forget the empty parameters that the convolution was made with."""
        me: Any = self
        me.weight = UninitializedParameter(device=device, dtype=dtype)
        me.out_channels = out_channels
        if bias:
            me.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        me: Any = self
        if not self.has_uninitialized_params() and me.in_channels != 0:
            super().reset_parameters()  # type: ignore[misc]

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take the number of channels from the first input."""
        me: Any = self
        if self.has_uninitialized_params():
            me.in_channels = self._get_in_channels(input)
            if me.in_channels % me.groups != 0:
                raise ValueError("in_channels must be divisible by groups")
            channels = (
                (me.in_channels, me.out_channels // me.groups)
                if me.transposed
                else (me.out_channels, me.in_channels // me.groups)
            )
            me.weight.materialize((*channels, *me.kernel_size))
            if me.bias is not None:
                me.bias.materialize((me.out_channels,))
            me.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        batched = self._get_num_spatial_dims() + 2
        if input.dim() not in (batched - 1, batched):
            raise RuntimeError(
                f"Expected {batched - 1}D (unbatched) or {batched}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        return input.shape[1] if input.dim() == batched else input.shape[0]

    def _get_num_spatial_dims(self) -> int:
        return self._spatial_dims


def _lazy_convolution(kind: type, spatial_dims: int) -> type:
    class Lazy(_LazyConvXdMixin, kind):  # type: ignore[valid-type]
        cls_to_become = kind
        _spatial_dims = spatial_dims

        def __init__(
            self,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            dilation: Any = 1,
            groups: int = 1,
            bias: bool = True,
            padding_mode: str = "zeros",
            device: Device = None,
            dtype: DType | None = None,
        ) -> None:
            super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
            self._become_lazy(out_channels, bias, device, dtype)

    return _named(Lazy, kind)


def _lazy_transposed_convolution(kind: type, spatial_dims: int) -> type:
    class Lazy(_LazyConvXdMixin, kind):  # type: ignore[valid-type]
        cls_to_become = kind
        _spatial_dims = spatial_dims

        def __init__(
            self,
            out_channels: int,
            kernel_size: Any,
            stride: Any = 1,
            padding: Any = 0,
            output_padding: Any = 0,
            groups: int = 1,
            bias: bool = True,
            dilation: Any = 1,
            padding_mode: str = "zeros",
            device: Device = None,
            dtype: DType | None = None,
        ) -> None:
            super().__init__(
                0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
            )
            self._become_lazy(out_channels, bias, device, dtype)

    return _named(Lazy, kind)


def _named(lazy: type, kind: type) -> type:
    lazy.__name__ = lazy.__qualname__ = f"Lazy{kind.__name__}"
    lazy.__doc__ = f"A {kind.__name__} that takes `in_channels` from its first input."
    return lazy


LazyConv1d = _lazy_convolution(Conv1d, 1)
LazyConv2d = _lazy_convolution(Conv2d, 2)
LazyConv3d = _lazy_convolution(Conv3d, 3)
LazyConvTranspose1d = _lazy_transposed_convolution(ConvTranspose1d, 1)
LazyConvTranspose2d = _lazy_transposed_convolution(ConvTranspose2d, 2)
LazyConvTranspose3d = _lazy_transposed_convolution(ConvTranspose3d, 3)
