"""Images as columns of windows, and channels as pixels: im2col, col2im, pixel_shuffle, channel_shuffle."""

from __future__ import annotations

import math

import numpy as np

from ...._core.layout import has_channels_last, with_channels_last
from ...._dispatch.facts import Batching, Layout
from ...._dispatch.registry import aten, op
from ..._support.common import like_first
from .._windows import columns, output_size, pad_spatial, scatter_columns

# ---------------------------------------------------------------- windows


_DOCS = {
    "channel_shuffle": """Mixes the channels of several groups.

    >>> torch.channel_shuffle(torch.arange(4).view(1, 4, 1, 1), 2).flatten()
    tensor([0, 2, 1, 3])
    """,
    "native_channel_shuffle": """Mixes the channels of several groups: what `channel_shuffle` calls.

    >>> torch.native_channel_shuffle(torch.arange(4.0).view(1, 4, 1, 1), 2).flatten()
    tensor([0., 2., 1., 3.])
    """,
}


def _check_sizes(name, kernel_size, dilation, padding, stride):
    for what, values, least in (
        ("kernel size", kernel_size, 1),
        ("dilation", dilation, 1),
        ("padding", padding, 0),
        ("stride", stride, 1),
    ):
        if len(values) != 2:
            raise RuntimeError(f"{name}: It is expected {what} equals to 2, but got size {len(values)}")
        if min(values) < least:
            short = {"kernel size": "kernel", "padding": "pad"}.get(what, what)
            raise RuntimeError(
                f"{what} should be {'greater than zero' if least else 'non-negative'}, but got "
                f"{short}_height: {values[0]} {short}_width: {values[1]}"
            )


def _im2col_sizes(shape, kernel_size, dilation, padding, stride):
    """(batch, channels, rows and columns of windows) of an image (C, H, W) or a batch of them."""
    _check_sizes("im2col", kernel_size, dilation, padding, stride)
    if len(shape) not in (3, 4) or 0 in shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    out = output_size(shape[-2:], tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
    if min(out) < 1:
        raise RuntimeError(
            f"Given input with spatial size {tuple(shape[-2:])}, kernel_size={tuple(kernel_size)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, calculated shape of the array of "
            f"sliding blocks as {out}, but its components must be at least one."
        )
    return (shape[0] if len(shape) == 4 else 1), shape[-3], out


def _im2col_shape(self, kernel_size, dilation, padding, stride):
    shape = self._array.shape
    batch, channels, out = _im2col_sizes(shape, kernel_size, dilation, padding, stride)
    columns = (channels * math.prod(kernel_size), math.prod(out))
    return ((batch, *columns) if len(shape) == 4 else columns), self._array.dtype


@op(
    "im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    shape=_im2col_shape,
    samples=lambda make: [(make(1, 2, 4, 4), (2, 2), (1, 1), (1, 1), (1, 2))],
    batching=Batching.SPATIAL_2D,
)
def im2col(self, kernel_size, dilation, padding, stride):
    """Images as columns of windows.

    >>> F.unfold(torch.arange(4.0).view(1, 1, 2, 2), (2, 2))
    tensor([[[0.],
             [1.],
             [2.],
             [3.]]])
    """
    batch, channels, out = _im2col_sizes(self.shape, kernel_size, dilation, padding, stride)
    image = self.reshape(batch, channels, *self.shape[-2:])
    padded = pad_spatial(image, tuple(padding))
    windows = columns(padded, tuple(kernel_size), out, tuple(stride), tuple(dilation))
    windows = windows if windows.base is None else np.array(windows)
    return windows if self.ndim == 4 else windows[0]


im2col.vjp(
    self=lambda g, self_shape, kernel_size, dilation, padding, stride: aten.col2im(
        g, tuple(self_shape[-2:]), kernel_size, dilation, padding, stride
    )
)


def _col2im_sizes(shape, output_size_, kernel_size, dilation, padding, stride):
    _check_sizes("col2im", kernel_size, dilation, padding, stride)
    if len(shape) not in (2, 3) or 0 in shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    area = math.prod(kernel_size)
    if shape[-2] % area:
        raise RuntimeError(
            "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but "
            f"got input.size(1)={shape[-2]} and kernel_size={tuple(kernel_size)}."
        )
    out = output_size(tuple(output_size_), tuple(kernel_size), tuple(stride), tuple(padding), tuple(dilation))
    if min(out) < 1:
        raise RuntimeError(
            f"Given output_size={tuple(output_size_)}, kernel_size={tuple(kernel_size)}, dilation={tuple(dilation)}, "
            f"padding={tuple(padding)}, stride={tuple(stride)}, calculated shape of the array of sliding blocks as "
            f"{tuple(out)}, which is too small (non-positive)"
        )
    if math.prod(out) != shape[-1]:
        raise RuntimeError(
            f"Given output_size={tuple(output_size_)}, kernel_size={tuple(kernel_size)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, stride={tuple(stride)}, expected "
            "size of input's dimension 2 to match the calculated number of sliding blocks "
            f"{out[0]} * {out[1]} = {math.prod(out)}, but got input.size(2)={shape[-1]}."
        )
    return (shape[0] if len(shape) == 3 else 1), shape[-2] // area, out


def _col2im_shape(self, output_size, kernel_size, dilation, padding, stride):
    shape = self._array.shape
    batch, channels, _ = _col2im_sizes(shape, output_size, kernel_size, dilation, padding, stride)
    image = (channels, *output_size)
    return ((batch, *image) if len(shape) == 3 else image), self._array.dtype


@op(
    "col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] stride) -> Tensor",
    shape=_col2im_shape,
    samples=lambda make: [(make(1, 8, 9), (4, 4), (2, 2), (1, 1), (0, 0), (1, 1))],
)
def col2im(self, output_size, kernel_size, dilation, padding, stride):
    """Adds columns of windows up to an image: the transpose of `im2col`.

    >>> F.fold(torch.ones(1, 4, 1), (2, 2), (2, 2))
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """
    batch, channels, out = _col2im_sizes(self.shape, output_size, kernel_size, dilation, padding, stride)
    image = scatter_columns(
        self.reshape(batch, *self.shape[-2:]),
        (batch, channels, *output_size),
        tuple(kernel_size),
        out,
        tuple(stride),
        tuple(padding),
        tuple(dilation),
    )
    return image if self.ndim == 3 else image[0]


col2im.vjp(self=lambda g, kernel_size, dilation, padding, stride: aten.im2col(g, kernel_size, dilation, padding, stride))

# ---------------------------------------------------------------- channels and pixels


def _like_images(result, images):
    """The channels of images next to each other, where they were so before."""
    return with_channels_last(result) if images.ndim == 4 and has_channels_last(images) else result


def _shuffled_shape(shape, factor):
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_shuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"pixel_shuffle expects a positive upscale_factor, but got {factor}")
    *lead, channels, height, width = shape
    if channels % (factor * factor):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of "
            f"upscale_factor, but input.size(-3)={channels} is not divisible by {factor * factor}"
        )
    return (*lead, channels // (factor * factor), height * factor, width * factor)


@op(
    "pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
    shape=lambda self, upscale_factor: (_shuffled_shape(self._array.shape, upscale_factor), self._array.dtype),
    samples=lambda make: [(make(1, 4, 2, 3), 2)],
    out=False,
)
def pixel_shuffle(self, upscale_factor):
    """Channels as pixels: an image `upscale_factor` times as large.

    >>> F.pixel_shuffle(torch.arange(4).view(1, 4, 1, 1), 2)
    tensor([[[[0, 1],
              [2, 3]]]])
    """
    shape = _shuffled_shape(self.shape, upscale_factor)
    r, (height, width) = upscale_factor, self.shape[-2:]
    split = self.reshape(math.prod(shape[:-3]), shape[-3], r, r, height, width)
    return _like_images(split.transpose(0, 1, 4, 2, 5, 3).reshape(shape), self)


pixel_shuffle.vjp(self=lambda g, upscale_factor: aten.pixel_unshuffle(g, upscale_factor))


def _unshuffled_shape(shape, factor):
    if len(shape) < 3:
        raise RuntimeError(
            f"pixel_unshuffle expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"pixel_unshuffle expects a positive downscale_factor, but got {factor}")
    *lead, channels, height, width = shape
    for name, dim, n in (("height", -2, height), ("width", -1, width)):
        if n % factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({dim})={n} is not divisible by {factor}"
            )
    return (*lead, channels * factor * factor, height // factor, width // factor)


@op(
    "pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor",
    shape=lambda self, downscale_factor: (_unshuffled_shape(self._array.shape, downscale_factor), self._array.dtype),
    samples=lambda make: [(make(1, 1, 4, 6), 2)],
    out=False,
)
def pixel_unshuffle(self, downscale_factor):
    """Pixels as channels: the inverse of `pixel_shuffle`.

    >>> F.pixel_unshuffle(torch.arange(4).view(1, 1, 2, 2), 2).flatten()
    tensor([0, 1, 2, 3])
    """
    shape = _unshuffled_shape(self.shape, downscale_factor)
    r = downscale_factor
    split = self.reshape(math.prod(shape[:-3]), self.shape[-3], shape[-2], r, shape[-1], r)
    return _like_images(split.transpose(0, 1, 3, 5, 2, 4).reshape(shape), self)


pixel_unshuffle.vjp(self=lambda g, downscale_factor: aten.pixel_shuffle(g, downscale_factor))


def _channel_shuffled(self, groups):
    if self.ndim < 3:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(self.shape)}")
    channels = self.shape[1]
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if channels % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups.")
    split = self.reshape(self.shape[0], groups, channels // groups, *self.shape[2:])
    return _like_images(split.swapaxes(1, 2).copy("C").reshape(self.shape), self)


for _name in ("channel_shuffle", "native_channel_shuffle"):
    _shuffle = op(
        f"{_name}(Tensor self, int groups) -> Tensor",
        _channel_shuffled,
        layout=Layout.NOTED,
        shape=like_first,
        samples=lambda make: [(make(1, 4, 2, 2), 2)],
        doc=_DOCS[_name],
        out=False,
    )
    _shuffle.vjp(self=lambda g, self_shape, groups: aten.channel_shuffle(g, self_shape[1] // groups))
