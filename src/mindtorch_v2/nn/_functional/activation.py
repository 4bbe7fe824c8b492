"""Activations, softmax and dropout."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten

__all__ = [
    "alpha_dropout",
    "celu",
    "celu_",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "feature_alpha_dropout",
    "glu",
    "gumbel_softmax",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "mish",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return aten.relu_(input) if inplace else aten.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return aten.relu6_(input) if inplace else aten.relu6(input)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, `value` elsewhere."""
    return aten.threshold_(input, threshold, value) if inplace else aten.threshold(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x, times `negative_slope` where negative."""
    return aten.leaky_relu_(input, negative_slope) if inplace else aten.leaky_relu(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu whose slope is drawn from [lower, upper] while training, and their mean otherwise."""
    return (aten.rrelu_ if inplace else aten.rrelu)(input, lower, upper, training)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and alpha * (exp(x) - 1) where negative."""
    return aten.elu_(input, alpha) if inplace else aten.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """elu scaled so that activations keep mean 0 and variance 1."""
    return aten.selu_(input) if inplace else aten.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1))."""
    return aten.celu_(input, alpha) if inplace else aten.celu(input, alpha)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of `dim` times the sigmoid of the second."""
    if input._array.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return aten.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x held between two values."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return aten.hardtanh_(input, min_val, max_val) if inplace else aten.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """relu6(x + 3) / 6."""
    return aten.hardsigmoid_(input) if inplace else aten.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * relu6(x + 3) / 6."""
    return aten.hardswish_(input) if inplace else aten.hardswish(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x * sigmoid(x)."""
    return aten.silu_(input) if inplace else aten.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x * tanh(softplus(x))."""
    return aten.mish_(input) if inplace else aten.mish(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return aten.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return aten.tanh(input)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return aten.sub(input, aten.tanh(input))


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return aten.div(input, aten.add(aten.abs(input), 1))


# ---------------------------------------------------------------- in place


def relu_(input: Tensor) -> Tensor:
    """relu into its input."""
    return aten.relu_(input)


def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """threshold into its input."""
    return aten.threshold_(input, threshold, value)


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """leaky_relu into its input."""
    return aten.leaky_relu_(input, negative_slope)


def rrelu_(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False) -> Tensor:
    """rrelu into its input."""
    return aten.rrelu_(input, lower, upper, training)


def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """elu into its input."""
    return aten.elu_(input, alpha)


def selu_(input: Tensor) -> Tensor:
    """selu into its input."""
    return aten.selu_(input)


def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """celu into its input."""
    return aten.celu_(input, alpha)


def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """hardtanh into its input."""
    return aten.hardtanh_(input, min_val, max_val)


# ---------------------------------------------------------------- softmax


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dim that softmax takes when none is given."""
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """exp(x) / sum(exp(x)) along a dim."""
    if dim is None:
        dim = _get_softmax_dim("softmax", input._array.ndim, _stacklevel)
    return aten.softmax(input, dim) if dtype is None else aten.softmax(input, dim, dtype=dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """softmax of -x."""
    if dim is None:
        dim = _get_softmax_dim("softmin", input._array.ndim, _stacklevel)
    return softmax(aten.neg(input), dim, dtype=dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """log(softmax(x)), computed without overflow."""
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input._array.ndim, _stacklevel)
    return aten.log_softmax(input, dim) if dtype is None else aten.log_softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Any:
    """A sample from the Gumbel-softmax distribution; with `hard` one-hot, with the soft sample's gradient."""
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = aten.neg(aten.log(aten.exponential_(aten.empty_like(logits))))
    soft = aten.softmax(aten.div(aten.add(logits, noise), tau), dim)
    if not hard:
        return soft
    index = aten.max(soft, dim, keepdim=True)[1]
    one_hot = aten.scatter_(aten.zeros_like(logits), dim, index, 1.0)
    return aten.add(aten.sub(one_hot, aten.detach(soft)), soft)


# ---------------------------------------------------------------- dropout


def _check_probability(p: float) -> None:
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """While training, zero each element with probability `p` and scale the rest by 1 / (1 - p)."""
    _check_probability(p)
    return aten.dropout_(input, p, training) if inplace else aten.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance of selu activations."""
    _check_probability(p)
    return aten.alpha_dropout_(input, p, training) if inplace else aten.alpha_dropout(input, p, training)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, L) or (C, L)."""
    _check_probability(p)
    ndim = input._array.ndim
    if ndim not in (2, 3):
        raise RuntimeError(
            f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d "
            "exists to provide channel-wise dropout on inputs with 1 spatial dimension, a channel "
            "dimension, and an optional batch dimension (i.e. 2D or 3D inputs)."
        )
    return _channel_dropout(input, p, training, inplace, batched=ndim == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, H, W) or (N, C, L)."""
    _check_probability(p)
    ndim = input._array.ndim
    if ndim not in (3, 4):
        warnings.warn(
            f"dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout "
            "instead. Note that dropout2d exists to provide channel-wise dropout on inputs with 2 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 3D or 4D "
            "inputs).",
            stacklevel=2,
        )
    if ndim == 3:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior "
            "is desired - input is interpreted as shape (N, C, L), where C is the channel dim. This behavior "
            "will change in a future release to interpret the input as one without a batch dimension, i.e. "
            "shape (C, H, W). To maintain the 1D channel-wise dropout behavior, please switch to using "
            "dropout1d instead.",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, batched=True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
    """Dropout of whole channels of (N, C, D, H, W) or (C, D, H, W)."""
    _check_probability(p)
    ndim = input._array.ndim
    if ndim not in (4, 5):
        warnings.warn(
            f"dropout3d: Received a {ndim}-D input to dropout3d, which is deprecated and will result in an "
            "error in a future release. To retain the behavior and silence this warning, please use dropout "
            "instead. Note that dropout3d exists to provide channel-wise dropout on inputs with 3 spatial "
            "dimensions, a channel dimension, and an optional batch dimension (i.e. 4D or 5D "
            "inputs).",
            stacklevel=2,
        )
    return _channel_dropout(input, p, training, inplace, batched=ndim == 5 or ndim not in (4, 5))


def _channel_dropout(input: Any, p: float, training: bool, inplace: bool, *, batched: bool) -> Any:
    if not batched:
        input = aten.unsqueeze_(input, 0) if inplace else aten.unsqueeze(input, 0)
    result = aten.feature_dropout_(input, p, training) if inplace else aten.feature_dropout(input, p, training)
    if not batched:
        result = aten.squeeze_(result, 0) if inplace else aten.squeeze(result, 0)
    return result


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels."""
    _check_probability(p)
    return (aten.feature_alpha_dropout_ if inplace else aten.feature_alpha_dropout)(input, p, training)
