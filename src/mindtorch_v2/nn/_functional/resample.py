"""Resizing images and sampling them on a grid."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d

__all__ = [
    "GRID_SAMPLE_INTERPOLATION_MODES",
    "GRID_SAMPLE_PADDING_MODES",
    "affine_grid",
    "grid_sample",
    "interpolate",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]

_NEAREST = {3: "upsample_nearest1d", 4: "upsample_nearest2d", 5: "upsample_nearest3d"}
_EXACT = {3: "_upsample_nearest_exact1d", 4: "_upsample_nearest_exact2d", 5: "_upsample_nearest_exact3d"}
_AREA = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}
# mode: (number of dims it is for, op)
_LINEAR = {
    "linear": (3, "upsample_linear1d"),
    "bilinear": (4, "upsample_bilinear2d"),
    "trilinear": (5, "upsample_trilinear3d"),
    "bicubic": (4, "upsample_bicubic2d"),
}
_ANTIALIASED = {
    "bilinear": "_upsample_bilinear2d_aa",
    "bicubic": "_upsample_bicubic2d_aa",
    "lanczos": "_upsample_lanczos2d_aa",
}
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _is_integer(x: Any) -> bool:
    """Whether a value is an integer, or a tensor of integers."""
    return isinstance(x, int) or (isinstance(x, Tensor) and not x.is_floating_point())


def _wanted_size(input: Any, size: Any, scale_factor: Any, recompute: bool | None) -> tuple[Any, Any]:
    """(output size or None, scale factors or None) as the ops take them."""
    dim = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        if isinstance(size, list | tuple):
            if len(size) != dim:
                raise ValueError(
                    "Input and output must have the same number of spatial dimensions, but got input with "
                    f"spatial dimensions of {list(input.shape[2:])} and output size of {size}. Please "
                    "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, "
                    "...,oK) format."
                )
            if not all(map(_is_integer, size)):
                raise TypeError(
                    "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                    f"with types {[type(x) for x in size]}"
                )
            return list(size), None
        return [size] * dim, None
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if isinstance(scale_factor, list | tuple):
        if len(scale_factor) != dim:
            raise ValueError(
                "Input and scale_factor must have the same number of spatial dimensions, but got input "
                f"with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
                f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "scale_factor in (s1, s2, ...,sK) format."
            )
        factors = list(scale_factor)
    else:
        factors = [scale_factor] * dim
    if recompute:
        return [int(input.size(i + 2) * factors[i]) for i in range(dim)], None
    return None, factors


def interpolate(
    input: Any,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Any:
    """Resize to a size or by a factor."""
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    dims = input.dim()
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    output_size, factors = _wanted_size(input, size, scale_factor, recompute_scale_factor)
    if mode == "area" and output_size is None:
        output_size = [int(input.size(i + 2) * factors[i]) for i in range(dims - 2)]
        factors = None
    if antialias and not (mode in _ANTIALIASED and dims == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode in ("nearest", "nearest-exact") and dims in _NEAREST:
        return getattr(aten, (_NEAREST if mode == "nearest" else _EXACT)[dims])(input, output_size, factors)
    if mode == "area" and dims in _AREA:
        return _AREA[dims](input, output_size)
    if mode == "lanczos" and dims == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
        return aten._upsample_lanczos2d_aa(input, output_size, align_corners, factors)
    if mode in _LINEAR and _LINEAR[mode][0] == dims:
        op = _ANTIALIASED[mode] if antialias else _LINEAR[mode][1]
        return getattr(aten, op)(input, output_size, align_corners, factors)
    if mode in _LINEAR and dims in (3, 4, 5):
        raise NotImplementedError(f"Got {dims}D input, but {mode} mode needs {_LINEAR[mode][0]}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {dims}D) for the modes: {_MODES} (got {mode})"
    )


def upsample(
    input: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None
) -> Any:
    """interpolate under an old name."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate(mode="nearest") under an old name."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Any, size: Any = None, scale_factor: Any = None) -> Any:
    """interpolate(mode="bilinear", align_corners=True) under an old name."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    """Values of `input` at the places that `grid` gives, in [-1, 1]."""
    if mode not in GRID_SAMPLE_INTERPOLATION_MODES:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in GRID_SAMPLE_PADDING_MODES:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', "
            f"but got: '{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
            "Please specify align_corners=True if the old behavior is desired. See the documentation of "
            "grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    return aten.grid_sampler(
        input, grid, GRID_SAMPLE_INTERPOLATION_MODES[mode], GRID_SAMPLE_PADDING_MODES[padding_mode], align_corners
    )


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid of an affine map, for grid_sample."""
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. "
            "Please specify align_corners=True if the old behavior is desired. See the documentation of "
            "grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    wanted = {4: (2, 3), 5: (3, 4)}.get(len(size))
    if wanted is None:
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != wanted:
        kind = "2D" if len(size) == 4 else "3D"
        raise ValueError(
            f"Expected a batch of {kind} affine matrices of shape Nx{wanted[0]}x{wanted[1]} for size {size}. Got {theta.shape}."
        )
    if align_corners and min(size[2:]) == 1:
        warnings.warn(
            "Since version 1.3.0, affine_grid behavior has changed for unit-size grids when "
            "align_corners=True. See the documentation of affine_grid for details.",
            stacklevel=2,
        )
    elif min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return aten.affine_grid_generator(theta, size, align_corners)
