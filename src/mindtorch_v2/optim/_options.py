"""Checks of the optimizers' options, with torch's messages, and the entries that a parameter's state starts with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .. import _surface as torch
from .._core.dtype import dtype as DType
from .._core.dtype import float32, float64, get_default_dtype
from .._core.tensor import Tensor
from .._ops.creation.from_data import tensor

# ---------------------------------------------------------------- checks


def check_rate(options: Mapping[str, Any]) -> None:
    """ValueError for a learning rate that is negative, or a tensor of more than one element."""
    check_one_element_rate(options)
    if not options["lr"] >= 0:
        raise ValueError(f"Invalid learning rate: {options['lr']}")


def check_one_element_rate(options: Mapping[str, Any]) -> None:
    """ValueError for a learning rate that is a tensor of more than one element."""
    if isinstance(options["lr"], Tensor) and options["lr"].numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_betas(options: Mapping[str, Any]) -> None:
    """ValueError for a decay rate outside of [0, 1)."""
    for index, beta in enumerate(options["betas"]):
        if not 0 <= beta < 1:
            raise ValueError(f"Invalid beta parameter at index {index}: {beta}")


def not_negative(*names: str) -> Callable[[Mapping[str, Any]], None]:
    """A check that raises ValueError for the first of these options that is below zero."""

    def check(options: Mapping[str, Any]) -> None:
        for name in names:
            if not options[name] >= 0:
                raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {options[name]}")

    return check


def check_fused(options: Mapping[str, Any]) -> None:
    """RuntimeError for options that exclude a fused step."""
    if options.get("fused"):
        if options["differentiable"]:
            raise RuntimeError("`fused` does not support `differentiable`")
        if options["foreach"]:
            raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def check_capturable(capturable: bool) -> None:
    """A step that is captured in a device graph needs a device that has them."""
    if capturable:
        raise AssertionError(
            "If capturable=True, params and state_steps must be on supported devices: "
            "['cuda', 'xpu', 'hpu', 'privateuseone', 'xla']."
        )


# ---------------------------------------------------------------- state


def step_dtype(is_fused: bool = False) -> DType:
    """The dtype in which steps are counted."""
    if is_fused:
        return float32
    return float64 if get_default_dtype() is float64 else float32


def step_count(param: Any, group: dict[str, Any]) -> Tensor:
    """A step counter made as torch.tensor(0.0): 0-d, on the CPU."""
    return tensor(0.0, dtype=step_dtype())


def zero_step_count(param: Any, group: dict[str, Any]) -> Tensor:
    """A step counter made as torch.zeros(()), which a profile shows as other ops."""
    return torch.zeros((), dtype=step_dtype())


def zeros(param: Any, group: dict[str, Any]) -> Tensor:
    """Zeros of the parameter's shape, dtype and memory format."""
    return torch.zeros_like(param)


def filled_like(prototype: Any, value: float) -> Tensor:
    """A tensor like the prototype; of a complex one, real and imaginary parts have the value, as a rule sees both as reals."""
    return torch.full_like(prototype, complex(value, value) if prototype.is_complex() else value)
