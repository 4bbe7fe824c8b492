"""Instance normalization."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._functional.normalization import instance_norm
from ._norm_base import _LazyNormBase, _NormBase

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = [
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
]


class _InstanceNorm(_NormBase):
    """Normalizes each channel of each sample over space."""

    # The number of dims of one sample: channels and space.
    _sample_dims: int

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Device = None,
        dtype: DType | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def _check_input_dim(self, input: Tensor) -> None:
        low = self._sample_dims
        if input.dim() not in (low, low + 1):
            raise ValueError(f"expected {low}D or {low + 1}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self) -> int:
        return self._sample_dims

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        feature_dim = input.dim() - self._get_no_batch_dim()
        if input.size(feature_dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={feature_dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(feature_dim)}."
                )
            warnings.warn(
                f"input's size at dim={feature_dim} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because "
                "affine=False",
                stacklevel=2,
            )
        if input.dim() == self._get_no_batch_dim():
            return aten.squeeze(self._apply_instance_norm(aten.unsqueeze(input, 0)), 0)
        return self._apply_instance_norm(input)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: Any,
        unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            # Statistics were once kept by default; old files hold them.
            unexpected = [name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if unexpected:
                klass = type(self).__name__
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {' and '.join(map(repr, unexpected))} for {klass} with "
                    "track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected "
                    f"because {klass} does not track running stats by default since 0.4.0. Please remove these keys "
                    "from state_dict. If the running stats are actually needed, instead set track_running_stats=True "
                    f"in {klass} to enable them. See the documentation of {klass} for details."
                )
                for name in unexpected:
                    state_dict.pop(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalization of (N, C, L) or (C, L)."""

    _sample_dims = 2


class InstanceNorm2d(_InstanceNorm):
    """Instance normalization of (N, C, H, W) or (C, H, W)."""

    _sample_dims = 3


class InstanceNorm3d(_InstanceNorm):
    """Instance normalization of (N, C, D, H, W) or (C, D, H, W)."""

    _sample_dims = 4


class LazyInstanceNorm1d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm1d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm1d
    _sample_dims = 2


class LazyInstanceNorm2d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm2d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm2d
    _sample_dims = 3


class LazyInstanceNorm3d(_LazyNormBase, _InstanceNorm):
    """An InstanceNorm3d that takes `num_features` from its first input."""

    cls_to_become = InstanceNorm3d
    _sample_dims = 4
