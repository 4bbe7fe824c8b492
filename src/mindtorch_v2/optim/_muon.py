"""Muon: momentum whose matrix is made orthogonal before it is applied."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_one_element_rate
from .optimizer import Params

__all__ = ["Muon", "muon"]

_COEFFICIENTS = (3.4445, -4.775, 2.0315)


def _original(rows: int, columns: int) -> float:
    return math.sqrt(max(1, rows / columns))


def _match_rms_adamw(rows: int, columns: int) -> float:
    return 0.2 * math.sqrt(max(rows, columns))


# How the learning rate depends on the matrix's shape.
_ADJUSTMENTS = {None: _original, "original": _original, "match_rms_adamw": _match_rms_adamw}


def _check_not_negative(options: Mapping[str, Any]) -> None:
    for text, name in (("Learning rate", "lr"), ("momentum", "momentum"), ("weight decay", "weight_decay")):
        if not options[name] >= 0:
            raise ValueError(f"{text} should be >= 0 but is: {options[name]}")


def _check_adjustment(options: Mapping[str, Any]) -> None:
    if options["adjust_lr_fn"] not in _ADJUSTMENTS:
        raise ValueError(f"Adjust learning rate function {options['adjust_lr_fn']} is not supported")


def _initial_momentum(param: Any, group: dict[str, Any]) -> Tensor:
    return torch.zeros_like(param.grad)


class Muon(DeclarativeOptimizer):
    """For the 2-d parameters of hidden layers; others belong to another optimizer."""

    __module__ = "mindtorch_v2.optim"

    _checks = (check_one_element_rate, _check_not_negative, _check_adjustment)
    _state: ClassVar = {"momentum_buffer": _initial_momentum}
    _rule_state = ("momentum_buffer",)
    _refuses_complex = "Muon does not support complex parameters"
    _refuses_sparse = "Muon does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = _COEFFICIENTS,
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}")

    @staticmethod
    def _single_tensor(h: Hyperparameters, params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
        for param, grad, buffer in zip(params, grads, buffers, strict=True):
            buffer.lerp_(grad, 1 - h.momentum)
            update = grad.lerp(buffer, h.momentum) if h.nesterov else buffer
            update = _orthogonal(update, h.ns_coefficients, h.ns_steps, h.eps)
            rate = h.lr * _ADJUSTMENTS[h.adjust_lr_fn](*param.shape)
            param.mul_(1 - h.lr * h.weight_decay)
            param.add_(update, alpha=-rate)


def muon(
    params: list[Tensor],
    grads: list[Tensor],
    muon_momentum_bufs: list[Tensor],
    *,
    lr: float,
    weight_decay: float,
    momentum: float,
    nesterov: bool,
    ns_coefficients: tuple[float, float, float],
    ns_steps: int,
    eps: float,
    adjust_lr_fn: str | None,
) -> None:
    """One step on lists of parameters, gradients and their momentum."""
    options = Hyperparameters(
        lr=lr,
        weight_decay=weight_decay,
        momentum=momentum,
        nesterov=nesterov,
        ns_coefficients=ns_coefficients,
        ns_steps=ns_steps,
        eps=eps,
        adjust_lr_fn=adjust_lr_fn,
    )
    Muon._update(options, params, grads, muon_momentum_bufs)


def _orthogonal(matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """The nearest orthogonal matrix, roughly: Newton-Schulz iterations in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    result = matrix.bfloat16()
    is_tall = matrix.size(0) > matrix.size(1)
    if is_tall:
        result = result.T
    result.div_(torch.linalg_vector_norm(result).clamp(min=eps))
    for _ in range(steps):
        gram = result @ result.T
        gram = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        result = torch.addmm(result, gram, result, beta=a)
    return result.T if is_tall else result
