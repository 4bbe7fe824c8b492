"""Gradients of convolutions with respect to their input and their weight."""

from __future__ import annotations

from typing import Any

from .._dispatch.registry import aten
from ._sizes import _pair, _single, _triple

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _input_gradient(
    expand: Any, input_size: Any, weight: Any, grad_output: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    # Of the input only the shape matters.
    input = aten.expand(aten.new_empty(grad_output, (1,)), tuple(input_size))
    return aten.convolution_backward(
        grad_output,
        input,
        weight,
        None,
        expand(stride),
        expand(padding),
        expand(dilation),
        False,
        expand(0),
        groups,
        (True, False, False),
    )[0]


def _weight_gradient(
    expand: Any, input: Any, weight_size: Any, grad_output: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    weight = aten.expand(aten.new_empty(grad_output, (1,)), tuple(weight_size))
    return aten.convolution_backward(
        grad_output,
        input,
        weight,
        None,
        expand(stride),
        expand(padding),
        expand(dilation),
        False,
        expand(0),
        groups,
        (False, True, False),
    )[1]


def conv1d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv1d with respect to its input."""
    return _input_gradient(_single, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv1d with respect to its weight."""
    return _weight_gradient(_single, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv2d with respect to its input."""
    return _input_gradient(_pair, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv2d with respect to its weight."""
    return _weight_gradient(_pair, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(
    input_size: Any, weight: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv3d with respect to its input."""
    return _input_gradient(_triple, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(
    input: Any, weight_size: Any, grad_output: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1
) -> Any:
    """The gradient of conv3d with respect to its weight."""
    return _weight_gradient(_triple, input, weight_size, grad_output, stride, padding, dilation, groups)
