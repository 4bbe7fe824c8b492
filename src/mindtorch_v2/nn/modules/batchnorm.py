"""Batch normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._functional.normalization import batch_norm
from ._norm_base import _LazyNormBase, _NormBase
from .module import Module

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "SyncBatchNorm",
]


class _BatchNorm(_NormBase):
    """Normalizes each channel over batch and space; in evaluation, by the running statistics."""

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        training, tracked = self.training, self.track_running_stats
        factor = 0.0 if self.momentum is None else self.momentum
        if training and tracked and self.num_batches_tracked is not None:
            aten.add_(self.num_batches_tracked, 1)
            if self.momentum is None:  # a plain average over all batches
                factor = 1.0 / float(self.num_batches_tracked)
        by_batch = training or (self.running_mean is None and self.running_var is None)
        kept = not training or tracked
        return batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            by_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in (2, 3):
            raise ValueError(f"expected 2D or 3D input (got {input.dim()}D input)")


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 4:
            raise ValueError(f"expected 4D input (got {input.dim()}D input)")


class BatchNorm3d(_BatchNorm):
    """Batch normalization of (N, C, D, H, W)."""

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() != 5:
            raise ValueError(f"expected 5D input (got {input.dim()}D input)")


class LazyBatchNorm1d(_LazyNormBase, _BatchNorm):
    """A BatchNorm1d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm1d

    _check_input_dim = BatchNorm1d._check_input_dim


class LazyBatchNorm2d(_LazyNormBase, _BatchNorm):
    """A BatchNorm2d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm2d

    _check_input_dim = BatchNorm2d._check_input_dim


class LazyBatchNorm3d(_LazyNormBase, _BatchNorm):
    """A BatchNorm3d that takes `num_features` from its first input."""

    cls_to_become = BatchNorm3d

    _check_input_dim = BatchNorm3d._check_input_dim


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over all processes of a group. With one process it is what BatchNorm is."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        self._check_non_zero_input_channels(input)
        group = self._group() if self.training else None
        if group is None or group.size() == 1:
            return super().forward(input)
        from ._sync_batch_norm import sync_batch_norm

        momentum = 0.0 if self.momentum is None else self.momentum
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / float(self.num_batches_tracked)
        return sync_batch_norm(input, self.weight, self.bias, self.running_mean, self.running_var, self.eps, momentum, group)

    def _group(self) -> Any:
        """The processes to normalize over; None for this one alone."""
        from ...distributed import group, is_initialized

        return self.process_group or (group.WORLD if is_initialized() else None)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """The module with every BatchNorm layer replaced by a SyncBatchNorm that has its parameters."""
        result = module
        if isinstance(module, _BatchNorm):
            converted = SyncBatchNorm(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                converted.weight = module.weight
                if module.bias is not None:
                    converted.bias = module.bias
            converted.running_mean = module.running_mean
            converted.running_var = module.running_var
            converted.num_batches_tracked = module.num_batches_tracked
            converted.training = module.training
            result = converted
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result
