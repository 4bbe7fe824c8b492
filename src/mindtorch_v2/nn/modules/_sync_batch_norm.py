"""Batch normalization whose mean and variance are those of all processes' batches together."""

from __future__ import annotations

from typing import Any

from ... import _surface as torch
from ..._autograd.function import Function
from ..._core.tensor import Tensor


def _total(tensor: Tensor, group: Any) -> Tensor:
    from ...distributed import all_reduce

    all_reduce(tensor, group=group)
    return tensor


class _Normalize(Function):
    """(x - mean) / sqrt(var + eps): sums over all processes forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, running_mean: Any, running_var: Any, eps: float, momentum: float, group: Any) -> Tensor:
        dims = [dim for dim in range(x.dim()) if dim != 1]
        shape = [1, -1, *[1] * (x.dim() - 2)]
        count = x.numel() // x.shape[1]
        # Mean and squares about it, process by process, so that large means lose nothing; combined by their counts.
        mean = x.mean(dims)
        squares = ((x - mean.view(shape)) ** 2).sum(dims)
        sums = _total(torch.cat([mean * count, torch.full((1,), float(count), dtype=x.dtype)]), group)
        whole = sums[-1]
        mean_of_all = sums[:-1] / whole
        squares = _total(squares + count * (mean - mean_of_all) ** 2, group)
        variance = squares / whole
        if running_mean is not None:
            running_mean.mul_(1 - momentum).add_(mean_of_all, alpha=momentum)
            running_var.mul_(1 - momentum).add_(squares / (whole - 1), alpha=momentum)
        inverse = (variance + eps).rsqrt()
        normal = (x - mean_of_all.view(shape)) * inverse.view(shape)
        ctx.save_for_backward(normal, inverse, whole)
        ctx.group, ctx.dims, ctx.shape = group, dims, shape
        return normal

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        normal, inverse, whole = ctx.saved_tensors
        sums = torch.cat([gradient.sum(ctx.dims), (gradient * normal).sum(ctx.dims)])
        mean, along = (_total(sums, ctx.group) / whole).chunk(2)
        result = (gradient - mean.view(ctx.shape) - normal * along.view(ctx.shape)) * inverse.view(ctx.shape)
        return result, None, None, None, None, None


def sync_batch_norm(
    x: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, eps: float, momentum: float, group: Any
) -> Tensor:
    """Normalize over the batches of all processes, then scale and shift."""
    normal: Tensor = _Normalize.apply(x, running_mean, running_var, eps, momentum, group)
    shape = [1, -1, *[1] * (x.dim() - 2)]
    if weight is not None:
        normal = normal * weight.view(shape)
    return normal if bias is None else normal + bias.view(shape)
