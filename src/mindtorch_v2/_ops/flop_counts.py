"""FLOPs of families of ops at once, where a formula of its own would say the same for each: so many per element.

An operation or function of one number counts one. Comparing, choosing, moving and drawing at random count nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

from .._dispatch import registry

_PER_ELEMENT = {
    1: (
        "acos acosh angle asin asinh atan atan2 atanh cosh cumprod cumsum deg2rad digamma erf erfc erfinv "
        "floor_divide fmod frac gcd i0 igamma igammac lcm ldexp lgamma mean nansum polygamma prod rad2deg "
        "remainder special_i0e special_i1 special_i1e special_zeta sum sinh tanh _adaptive_avg_pool2d "
        "_adaptive_avg_pool3d avg_pool2d avg_pool3d index_add scatter_add trace leaky_relu _prelu_kernel"
    ),
    2: (
        "addcdiv addcmul addr dist linalg_vector_norm logcumsumexp lerp norm sinc xlogy special_entr "
        "special_xlog1py hardsigmoid leaky_relu_backward tanh_backward sigmoid_backward threshold_backward vdot "
        "elu celu nll_loss_forward"
    ),
    3: (
        "sigmoid softplus logsumexp mse_loss smooth_l1_loss huber_loss logaddexp logaddexp2 log_sigmoid_forward "
        "hardswish mse_loss_backward smooth_l1_loss_backward huber_loss_backward glu elu_backward logit"
    ),
    4: (
        "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data silu std std_mean var var_mean "
        "binary_cross_entropy binary_cross_entropy_backward soft_margin_loss linalg_cross"
    ),
    5: ("mish silu_backward glu_backward upsample_linear1d"),
    8: ("gelu native_layer_norm native_group_norm native_batch_norm"),
    14: ("gelu_backward native_layer_norm_backward native_group_norm_backward native_batch_norm_backward mish_backward"),
}
Formula = Callable[..., int]


def _per_element(count: int) -> Formula:
    return lambda first, *rest: int(count * prod(first))


def _convolution_backward(grad: Any, input: Any, weight: Any, *rest: Any) -> int:
    """The gradients of input and weight take as much as the forward each."""
    return int(4 * prod(grad) * prod(weight[1:]))


def _attention(query: Any, key: Any, value: Any, *rest: Any) -> int:
    """Scores and their product with the values, and the softmax in between."""
    scores = prod(query[:-1]) * key[-2]
    return int(scores * (2 * query[-1] + 2 * value[-1] + 4))


def _attention_backward(grad: Any, query: Any, key: Any, value: Any, *rest: Any) -> int:
    """The scores once more, and four products of their size."""
    return 5 * _attention(query, key, value) // 2


def _matrix_times_vector(self: Any, matrix: Any, *rest: Any) -> int:
    return int(2 * prod(matrix))


def _batches_of_products(self: Any, first: Any, second: Any, *rest: Any) -> int:
    return int(2 * prod(first) * second[-1])


FORMULAS: dict[str, Formula] = {
    name: _per_element(count) for count, names in _PER_ELEMENT.items() for name in names.split()
} | {
    "convolution_backward": _convolution_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "addmv": _matrix_times_vector,
    "addbmm": _batches_of_products,
}


def declare() -> None:
    """Give the ops named above their count, unless they declare one; a form with "_" at the end counts like the other."""
    for name, packet in registry.packets.items():
        plain = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        formula = FORMULAS.get(name) or FORMULAS.get(plain)
        for spec in packet:
            if spec.flops is None:
                spec.flops = formula
