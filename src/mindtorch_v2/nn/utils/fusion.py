"""Folding a BatchNorm in evaluation mode into the layer before it."""

from __future__ import annotations

import copy
from typing import Any

from ..._dispatch.registry import aten
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _check_eval(layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does what it and the BatchNorm after it did."""
    _check_eval(conv, bn)
    fused = copy.deepcopy(conv)
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_conv_bn_weights(
    conv_w: Any, conv_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any, transpose: bool = False
) -> tuple[Any, Any]:
    """The weight and bias of the fused convolution."""
    shape = [1, -1] if transpose else [-1, 1]
    shape += [1] * (len(conv_w.shape) - 2)
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, shape)


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a Linear that does what it and the BatchNorm after it did."""
    _check_eval(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    fused = copy.deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Any, linear_b: Any, bn_rm: Any, bn_rv: Any, bn_eps: float, bn_w: Any, bn_b: Any
) -> tuple[Any, Any]:
    """The weight and bias of the fused Linear."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, [-1, 1])


def _fused(
    weight: Any, bias: Any, mean: Any, var: Any, eps: float, scale: Any, shift: Any, shape: list[int]
) -> tuple[Any, Any]:
    trained = weight.requires_grad, weight.requires_grad if bias is None else bias.requires_grad
    dtypes = weight.dtype, weight.dtype if bias is None else bias.dtype
    bias = aten.zeros_like(mean) if bias is None else bias
    scale = aten.ones_like(mean) if scale is None else scale
    shift = aten.zeros_like(mean) if shift is None else shift
    factor = scale * aten.rsqrt(var + eps)
    fused_weight = (weight * factor.reshape(shape)).to(dtype=dtypes[0])
    fused_bias = ((bias - mean) * factor + shift).to(dtype=dtypes[1])
    return Parameter(fused_weight, trained[0]), Parameter(fused_bias, trained[1])
