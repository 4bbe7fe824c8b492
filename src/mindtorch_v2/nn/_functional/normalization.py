"""Normalization over batches, layers, groups and vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .pad import pad
from .pooling import avg_pool2d, avg_pool3d

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "normalize", "rms_norm"]

# Passed where torch passes torch.backends.cudnn.enabled; kernels on the CPU do not look at it.
_CUDNN = True


def _verify_batch_size(size: Sequence[int]) -> None:
    """With a single value per channel there is nothing to normalize."""
    count = size[0]
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {size}")


def _verify_spatial_size(size: Sequence[int]) -> None:
    count = 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {size}")


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel over batch and space; while training, update the running statistics."""
    if training:
        _verify_batch_size(input.size())
    return aten.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, _CUDNN)


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalize each channel of each sample over space."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return aten.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, _CUDNN)


def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize over the last dims."""
    return aten.layer_norm(input, normalized_shape, weight, bias, eps, _CUDNN)


def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dims."""
    return aten.rms_norm(input, normalized_shape, weight, eps)


def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalize each group of channels over itself and space."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _verify_batch_size([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return aten.group_norm(input, num_groups, weight, bias, eps, _CUDNN)


def local_response_norm(input: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """Divide by the energy of the neighboring channels."""
    dim = input.dim()
    if dim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {dim} dimensions)")
    if input.numel() == 0:
        return input
    energy = aten.mul(input, input)
    before, after = size // 2, (size - 1) // 2
    if dim == 3:
        padded = pad(aten.unsqueeze(energy, 1), (0, 0, before, after))
        energy = aten.squeeze(avg_pool2d(padded, (size, 1), stride=1), 1)
    else:
        sizes = input.size()
        energy = aten.view(energy, (sizes[0], 1, sizes[1], sizes[2], -1))
        padded = pad(energy, (0, 0, 0, 0, before, after))
        energy = aten.view(aten.squeeze(avg_pool3d(padded, (size, 1, 1), stride=1), 1), sizes)
    return aten.div(input, aten.pow(aten.add(aten.mul(energy, alpha), k), beta))


def normalize(input: Any, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Any:
    """Scale vectors along `dim` to length 1."""
    dims = (dim,) if isinstance(dim, int) else dim
    length = aten.linalg_vector_norm(input, p, dims, True)
    if out is None:
        return aten.div(input, aten.expand_as(aten.clamp_min(length, eps), input))
    return aten.div(input, aten.expand_as(aten.clamp_min_(length, eps), input), out=out)
