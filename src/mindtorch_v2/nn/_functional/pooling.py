"""Pooling."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._sizes import _list_with_default, _pair, _single, _triple

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
]

# ---------------------------------------------------------------- maximum


def max_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, L) or (C, L); with `return_indices` also where it was."""
    op = aten.max_pool1d_with_indices if return_indices else aten.max_pool1d
    return op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, H, W) or (C, H, W); with `return_indices` also where it was."""
    op = aten.max_pool2d_with_indices if return_indices else aten.max_pool2d
    return op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest value of each window of (N, C, D, H, W) or (C, D, H, W); with `return_indices` also where it was."""
    op = aten.max_pool3d_with_indices if return_indices else aten.max_pool3d
    return op(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return max_pool1d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return max_pool2d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    return max_pool3d(input, kernel_size, stride, padding, dilation, ceil_mode, True)


def _unpool_output_size(input: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> list[int]:
    """The size before pooling: the one asked for if it is possible, else the smallest."""
    spatial = input.size()[-len(kernel_size) :]
    default = [(spatial[d] - 1) * stride[d] + kernel_size[d] - 2 * padding[d] for d in range(len(kernel_size))]
    if output_size is None:
        return default
    sizes = list(output_size)
    if len(sizes) == len(kernel_size) + 2:
        sizes = sizes[2:]
    if len(sizes) != len(kernel_size):
        raise ValueError(
            f"output_size should be a sequence containing {len(kernel_size)} or {len(kernel_size) + 2} "
            f"elements, but it has a length of '{len(sizes)}'"
        )
    for d, size in enumerate(sizes):
        low, high = default[d] - stride[d], default[d] + stride[d]
        if not low < size < high:
            raise ValueError(f'invalid output_size "{output_size}" (dim {d} must be between {low} and {high})')
    return sizes


def max_unpool1d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Values back at the places that max_pool1d took them from, zeros elsewhere."""
    kernel = _single(kernel_size)
    step = kernel if stride is None else _single(stride)
    sizes = _unpool_output_size(input, kernel, step, _single(padding), output_size)
    sizes = [*sizes, 1]
    return aten.squeeze(aten.max_unpool2d(aten.unsqueeze(input, -1), aten.unsqueeze(indices, -1), sizes), -1)


def max_unpool2d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Values back at the places that max_pool2d took them from, zeros elsewhere."""
    kernel = _pair(kernel_size)
    step = kernel if stride is None else _pair(stride)
    return aten.max_unpool2d(input, indices, _unpool_output_size(input, kernel, step, _pair(padding), output_size))


def max_unpool3d(
    input: Any, indices: Any, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
) -> Any:
    """Values back at the places that max_pool3d took them from, zeros elsewhere."""
    kernel = _triple(kernel_size)
    step = kernel if stride is None else _triple(stride)
    sizes = _unpool_output_size(input, kernel, step, _triple(padding), output_size)
    return aten.max_unpool3d(input, indices, sizes, step, _triple(padding))


def _fractional(
    input: Any, kernel_size: Any, output_size: Any, output_ratio: Any, samples: Any, name: str, expand: Any, op: Any
) -> Any:
    """Values and indices of max pooling over windows whose places are drawn at random."""
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    dims = len(expand(0))
    if output_size is None:
        ratio = expand(output_ratio)
        if len(ratio) != dims:
            raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(input.size(d - dims) * ratio[d]) for d in range(dims)]
    if samples is None:
        batch = 1 if input.dim() == dims + 1 else input.size(0)
        samples = aten.rand((batch, input.size(-dims - 1), dims), dtype=input.dtype, device=input.device)
    return op(input, expand(kernel_size), expand(output_size), samples)


def fractional_max_pool2d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows drawn at random, to the size asked for."""
    pooled_and_indices = _fractional(
        input,
        kernel_size,
        output_size,
        output_ratio,
        _random_samples,
        "fractional_max_pool2d",
        _pair,
        aten.fractional_max_pool2d,
    )
    return pooled_and_indices if return_indices else pooled_and_indices[0]


def fractional_max_pool3d(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    """Max pooling over windows drawn at random, to the size asked for."""
    pooled_and_indices = _fractional(
        input,
        kernel_size,
        output_size,
        output_ratio,
        _random_samples,
        "fractional_max_pool3d",
        _triple,
        aten.fractional_max_pool3d,
    )
    return pooled_and_indices if return_indices else pooled_and_indices[0]


def fractional_max_pool2d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    return fractional_max_pool2d(input, kernel_size, output_size, output_ratio, True, _random_samples)


def fractional_max_pool3d_with_indices(
    input: Any,
    kernel_size: Any,
    output_size: Any = None,
    output_ratio: Any = None,
    return_indices: bool = False,
    _random_samples: Any = None,
) -> Any:
    return fractional_max_pool3d(input, kernel_size, output_size, output_ratio, True, _random_samples)


# ---------------------------------------------------------------- average


def avg_pool1d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of (N, C, L) or (C, L)."""
    return aten.avg_pool1d(input, kernel_size, () if stride is None else stride, padding, ceil_mode, count_include_pad)


def avg_pool2d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window of (N, C, H, W) or (C, H, W)."""
    return aten.avg_pool2d(
        input, kernel_size, () if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


def avg_pool3d(
    input: Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W)."""
    return aten.avg_pool3d(
        input, kernel_size, () if stride is None else stride, padding, ceil_mode, count_include_pad, divisor_override, out=out
    )


def _power_pool(input: Any, norm_type: float, stride: Any, average: Any, count: int) -> Any:
    """(sum of x^p over each window)^(1/p), from the mean of x^p."""
    averaged = average(aten.pow(input, norm_type))
    signed = aten.mul(aten.sign(averaged), aten.relu(aten.abs(averaged)))
    return aten.pow(aten.mul(signed, count), 1.0 / norm_type)


def lp_pool1d(input: Any, norm_type: float, kernel_size: int, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of each window of (N, C, L) or (C, L)."""
    return _power_pool(input, norm_type, stride, lambda x: avg_pool1d(x, kernel_size, stride, 0, ceil_mode), kernel_size)


def lp_pool2d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of each window of (N, C, H, W) or (C, H, W)."""
    height, width = _pair(kernel_size)
    return _power_pool(input, norm_type, stride, lambda x: avg_pool2d(x, kernel_size, stride, 0, ceil_mode), height * width)


def lp_pool3d(input: Any, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Any:
    """The p-norm of each window of (N, C, D, H, W) or (C, D, H, W)."""
    depth, height, width = _triple(kernel_size)
    return _power_pool(
        input, norm_type, stride, lambda x: avg_pool3d(x, kernel_size, stride, 0, ceil_mode), depth * height * width
    )


# ---------------------------------------------------------------- to a given size


def _sizes(output_size: Any, input: Any, dims: int, words: str) -> Any:
    """One number for all dims, or one for each of them, with None replaced by the input's own size."""
    made = _list_with_default(output_size, input.size())
    if not isinstance(made, int) and len(made) != dims:
        raise RuntimeError(f"{words} must be {dims}")
    return made


def adaptive_avg_pool1d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over as many equal parts of L as asked for."""
    return aten.adaptive_avg_pool1d(input, output_size)


def adaptive_avg_pool2d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over a grid of parts; None keeps a dim's own size."""
    return aten.adaptive_avg_pool2d(input, _sizes(output_size, input, 2, "adaptive_avg_pool2d: output_size"))


def adaptive_avg_pool3d(input: Tensor, output_size: Any) -> Tensor:
    """The mean over a grid of parts; None keeps a dim's own size."""
    return aten.adaptive_avg_pool3d(input, _sizes(output_size, input, 3, "adaptive_avg_pool3d: output_size"))


def adaptive_max_pool1d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over as many equal parts of L as asked for."""
    made = aten.adaptive_max_pool1d(input, output_size)
    return made if return_indices else made[0]


def adaptive_max_pool2d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over a grid of parts; None keeps a dim's own size."""
    sizes = _sizes(output_size, input, 2, "adaptive_max_pool2d(): internal error: output_size.size()")
    made = aten.adaptive_max_pool2d(input, sizes)
    return made if return_indices else made[0]


def adaptive_max_pool3d(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The maximum over a grid of parts; None keeps a dim's own size."""
    sizes = _sizes(output_size, input, 3, "adaptive_max_pool3d(): internal error: output_size.size()")
    made = aten.adaptive_max_pool3d(input, sizes)
    return made if return_indices else made[0]


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool1d(input, output_size, True)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool2d(input, output_size, True)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    return adaptive_max_pool3d(input, output_size, True)
