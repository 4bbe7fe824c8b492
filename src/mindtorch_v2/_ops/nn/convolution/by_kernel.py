"""Convolutions under the names of torch's kernels, each with the checks of its own."""

from __future__ import annotations

from ...._dispatch.facts import Surface
from ...._dispatch.registry import aten, composite

_DOCS = {
    "thnn_conv2d": """Convolution over two dims, by windows as columns.

    >>> torch._C._nn.thnn_conv2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), 2)
    tensor([[[[4., 4.],
              [4., 4.]]]])
    """,
    "slow_conv3d": """Convolution over three dims, by windows as columns.

    >>> torch._C._nn.slow_conv3d(torch.ones(1, 1, 2, 2, 2), torch.ones(1, 1, 2, 2, 2), 2)
    tensor([[[[[8.]]]]])
    """,
    "slow_conv_dilated2d": """Convolution over two dims whose windows have gaps.

    >>> torch._C._nn.slow_conv_dilated2d(torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2), 2, dilation=2)
    tensor([[[[4.]]]])
    """,
    "slow_conv_dilated3d": """Convolution over three dims whose windows have gaps.

    >>> torch._C._nn.slow_conv_dilated3d(torch.ones(1, 1, 3, 3, 3), torch.ones(1, 1, 2, 2, 2), 2, dilation=2)
    tensor([[[[[8.]]]]])
    """,
    "slow_conv_transpose2d": """The transpose of a convolution over two dims.

    >>> torch._C._nn.slow_conv_transpose2d(torch.ones(1, 1, 1, 1), torch.ones(1, 1, 2, 2), 2)
    tensor([[[[1., 1.],
              [1., 1.]]]])
    """,
    "slow_conv_transpose3d": """The transpose of a convolution over three dims.

    >>> torch._C._nn.slow_conv_transpose3d(torch.ones(1, 1, 1, 1, 1), torch.ones(1, 1, 1, 1, 2), (1, 1, 2))
    tensor([[[[[1., 1.]]]]])
    """,
}


def _check_lengths(dims: int, message: str, **settings) -> None:
    for name, values in settings.items():
        if len(values) != dims:
            raise RuntimeError(message.format(name=name, dims=dims, length=len(values)))


def _check_weight(weight, kernel_size) -> None:
    shape = list(weight.shape)
    dims = len(kernel_size)
    if len(shape) != dims + 2 or 0 in shape:
        raise RuntimeError(f"non-empty 2D or {dims + 2}D weight tensor expected, but got: {shape}")
    if shape[2:] != list(kernel_size):
        raise RuntimeError(f"weight[2:] shape {shape[2:]} must be equal to kernel_size {list(kernel_size)}")


_EXPECTED = "It is expected {name} equals to {dims}, but got size {length}"


def _declare(name: str, dims: int, message: str, *more: str) -> None:
    """A convolution with kernel_size, stride and padding, and `more` of output_padding and dilation, for so many dims."""
    defaults = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}
    names = ("stride", "padding", *more)
    settings = ", ".join(f"int[{dims}] {n}=[{', '.join([str(defaults[n])] * dims)}]" for n in names)
    transposed = "output_padding" in more
    channels = (2, 3) if transposed else (3, 2)

    @composite(
        f"{name}(Tensor self, Tensor weight, int[{dims}] kernel_size, Tensor? bias=None, {settings}) -> Tensor",
        samples=lambda make: [(make(1, 2, *(4,) * dims), make(*channels, *(2,) * dims), (2,) * dims, make(3))],
        surface=Surface.NONE,
        doc=_DOCS[name],
    )
    def convolve(self, weight, kernel_size, bias, *values):
        given = dict(zip(names, values, strict=True))
        _check_lengths(dims, message, kernel_size=kernel_size, **given)
        _check_weight(weight, kernel_size)
        dilation, output_padding = given.get("dilation", (1,) * dims), given.get("output_padding", (0,) * dims)
        return aten.convolution(self, weight, bias, given["stride"], given["padding"], dilation, transposed, output_padding, 1)


_declare("thnn_conv2d", 2, "2D {name} expected")
_declare("slow_conv3d", 3, _EXPECTED)
for _dims in (2, 3):
    _declare(f"slow_conv_dilated{_dims}d", _dims, "{name} length should be {dims}, but got {length}", "dilation")
    _declare(f"slow_conv_transpose{_dims}d", _dims, _EXPECTED, "output_padding", "dilation")
