"""torch.functional: functions of the package that are more than one op, under the name of their old home."""

from __future__ import annotations

from . import _surface

_NAMES = (
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "cdist",
    "chain_matmul",
    "einsum",
    "istft",
    "lu",
    "meshgrid",
    "norm",
    "pca_lowrank",
    "split",
    "stft",
    "svd_lowrank",
    "tensordot",
    "unique",
    "unique_consecutive",
    "unravel_index",
)

_functions = _surface.functions()
globals().update({name: _functions[name] for name in _NAMES})
__all__ = list(_NAMES)
