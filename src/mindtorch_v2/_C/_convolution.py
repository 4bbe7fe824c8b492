"""Which of torch's kernels a convolution stands for."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from .._core.tensor import Tensor


class _ConvBackend(IntEnum):
    """The ways in which torch computes a convolution. Those of vendors' libraries are here for their names only."""

    CudaDepthwise2d = 0
    CudaDepthwise3d = 1
    Cudnn = 2
    CudnnTranspose = 3
    Empty = 4
    Miopen = 5
    MiopenDepthwise = 6
    MiopenTranspose = 7
    Mkldnn = 8
    MkldnnEmpty = 10
    NnpackSpatial = 11
    Overrideable = 12
    Slow2d = 13
    Slow3d = 14
    SlowDilated2d = 15
    SlowDilated3d = 16
    SlowTranspose2d = 17
    SlowTranspose3d = 18
    Winograd3x3Depthwise = 19
    Xnnpack2d = 20
    Mps = 21
    MpsTranspose = 22

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


def _select_conv_backend(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    bias_sizes: Sequence[int] | None = None,
) -> _ConvBackend:
    """The kernel by which a torch without vendors' libraries computes a convolution: windows as columns, and products."""
    if 0 in input.shape[:2]:
        return _ConvBackend.Empty
    if input.numel() == 0:
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(input.shape)}")
    # A sequence is an image of height 1.
    dims = max(input.dim() - 2, 2)
    kind = "Transpose" if transposed else "Dilated" if any(d != 1 for d in dilation) else ""
    return _ConvBackend[f"Slow{kind}{dims}d"]
