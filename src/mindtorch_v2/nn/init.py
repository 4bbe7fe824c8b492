"""Ways to fill a parameter: constants, distributions scaled by fan, and structured matrices. All work in place."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

from .._autograd.grad_mode import no_grad
from .._dispatch.registry import aten

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "sparse_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]

_LINEAR = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "sigmoid")
_GAINS = {**dict.fromkeys(_LINEAR, 1), "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}


def calculate_gain(nonlinearity: str, param: Any = None) -> float:
    """How much the weights before a nonlinearity are scaled up, so that variance is kept."""
    gain = _GAINS.get(nonlinearity)
    if gain is not None:
        return gain
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        if isinstance(slope, bool) or not isinstance(slope, int | float):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor: Any, a: float = 0.0, b: float = 1.0, generator: Any = None) -> Any:
    """Values from U(a, b)."""
    with no_grad():
        return aten.uniform_(tensor, a, b, generator=generator)


def normal_(tensor: Any, mean: float = 0.0, std: float = 1.0, generator: Any = None) -> Any:
    """Values from N(mean, std^2)."""
    with no_grad():
        return aten.normal_(tensor, mean, std, generator=generator)


def trunc_normal_(
    tensor: Any, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0, generator: Any = None
) -> Any:
    """Values from N(mean, std^2) that lie within [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )
    low, high = ((1.0 + math.erf((bound - mean) / std / math.sqrt(2.0))) / 2.0 for bound in (a, b))
    with no_grad():
        # Drawn again where a value lies outside. Where most of the normal does, values within are drawn evenly instead
        # and kept as often as the normal is dense there.
        draw = _draw_normal if high - low > 0.3 else _draw_by_density
        return draw(tensor, mean, std, a, b, generator)


# More than enough, but where the bounds reach so far into a tail that next to nothing that is drawn between them is kept.
_MOST_ROUNDS = 10_000


def _never(mean: float, std: float, a: float, b: float) -> RuntimeError:
    return RuntimeError(f"trunc_normal_: no number of mean {mean} and std {std} was found in [{a}, {b}]")


def _draw_normal(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    low, high = (aten.item(aten.new_full(tensor, (), bound)) for bound in (a, b))  # as the dtype can hold them
    aten.normal_(tensor, mean, std, generator=generator)
    for _ in range(_MOST_ROUNDS):
        outside = aten.bitwise_or(aten.lt(tensor, low), aten.gt(tensor, high))
        if not bool(aten.any(outside)):
            return tensor
        again = aten.normal_(aten.empty_like(tensor), mean, std, generator=generator)
        aten.copy_(tensor, aten.where(outside, again, tensor))
    raise _never(mean, std, a, b)


def _draw_by_density(tensor: Any, mean: float, std: float, a: float, b: float, generator: Any) -> Any:
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    aten.uniform_(tensor, a, b, generator=generator)
    drawn, open_places = tensor, None
    for _ in range(_MOST_ROUNDS):
        density = aten.sub(aten.mul(aten.pow(aten.div(aten.sub(drawn, mean), std), 2), -0.5), peak)
        refused = aten.gt(aten.log(aten.uniform_(aten.empty_like(tensor), generator=generator)), density)
        open_places = refused if open_places is None else aten.bitwise_and(open_places, refused)
        if not bool(aten.any(open_places)):
            return tensor
        drawn = aten.uniform_(aten.empty_like(tensor), a, b, generator=generator)
        aten.copy_(tensor, aten.where(open_places, drawn, tensor))
    raise _never(mean, std, a, b)


def constant_(tensor: Any, val: float) -> Any:
    """Fill with the value `val`."""
    with no_grad():
        return aten.fill_(tensor, val)


def ones_(tensor: Any) -> Any:
    """Fill with the value 1."""
    return constant_(tensor, 1.0)


def zeros_(tensor: Any) -> Any:
    """Fill with the value 0."""
    with no_grad():
        return aten.zero_(tensor)


def eye_(tensor: Any) -> Any:
    """Fill a matrix with the identity, also where it is not square."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        return aten.copy_(tensor, aten.eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))


def dirac_(tensor: Any, groups: int = 1) -> Any:
    """The convolution that hands as many channels through as it can."""
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    middle = tuple(size // 2 for size in sizes[2:])
    with no_grad():
        aten.zero_(tensor)
        for group in range(groups):
            for channel in range(min(per_group, sizes[1])):
                tensor[(group * per_group + channel, channel, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Any) -> tuple[int, int]:
    """How many values meet in one output, and how many outputs one value goes to."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(tensor.shape[2:])
    return tensor.size(1) * field, tensor.size(0) * field


def _calculate_correct_fan(tensor: Any, mode: str) -> int:
    mode = mode.lower()
    valid_modes = ["fan_in", "fan_out"]
    if mode not in valid_modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid_modes}")
    return _calculate_fan_in_and_fan_out(tensor)[valid_modes.index(mode)]


def xavier_uniform_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """U(-a, a) with a = gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Any, gain: float = 1.0, generator: Any = None) -> Any:
    """N(0, std^2) with std = gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming_std(tensor: Any, a: float, mode: str, nonlinearity: str) -> float:
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def _is_empty(tensor: Any) -> bool:
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return True
    return False


def kaiming_uniform_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """U(-bound, bound) with bound = gain * sqrt(3 / fan)."""
    if _is_empty(tensor):
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Any, a: float = 0, mode: str = "fan_in", nonlinearity: str = "leaky_relu", generator: Any = None
) -> Any:
    """N(0, std^2) with std = gain / sqrt(fan)."""
    if _is_empty(tensor):
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def orthogonal_(tensor: Any, gain: float = 1, generator: Any = None) -> Any:
    """A matrix with orthogonal rows or columns, whichever are fewer; dims after the first count as columns."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with no_grad():
        flat = aten.normal_(aten.new_empty(tensor, (rows, cols)), 0, 1, generator=generator)
        if rows < cols:
            aten.t_(flat)
        q, r = aten.linalg_qr(flat)
        # With the signs of R's diagonal the result is uniform over orthogonal matrices.
        q *= aten.sign(aten.diag(r, 0))
        if rows < cols:
            aten.t_(q)
        aten.copy_(aten.view_as(tensor, q), q)
        aten.mul_(tensor, gain)
    return tensor


def sparse_(tensor: Any, sparsity: float, std: float = 0.01, generator: Any = None) -> Any:
    """N(0, std^2), with a fraction of every column set to zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        aten.normal_(tensor, 0, std, generator=generator)
        for column in range(cols):
            tensor[aten.randperm(rows)[:zeros], column] = 0
    return tensor


def _old_name(function: Callable[..., Any]) -> Callable[..., Any]:
    """The name without underscore, which torch once had."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    call.__name__ = old
    return call


uniform = _old_name(uniform_)
normal = _old_name(normal_)
constant = _old_name(constant_)
eye = _old_name(eye_)
dirac = _old_name(dirac_)
xavier_uniform = _old_name(xavier_uniform_)
xavier_normal = _old_name(xavier_normal_)
kaiming_uniform = _old_name(kaiming_uniform_)
kaiming_normal = _old_name(kaiming_normal_)
orthogonal = _old_name(orthogonal_)
sparse = _old_name(sparse_)


# What these are made of in torch, and libraries call.
_no_grad_uniform_, _no_grad_normal_, _no_grad_trunc_normal_ = uniform_, normal_, trunc_normal_
_no_grad_fill_, _no_grad_zero_ = constant_, zeros_
