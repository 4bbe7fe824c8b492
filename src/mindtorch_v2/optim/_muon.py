"""Muon: momentum whose matrix is made orthogonal before it is applied."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import evaluate, with_grad_mode
from .optimizer import Optimizer, Params

__all__ = ["Muon", "muon"]

_COEFFICIENTS = (3.4445, -4.775, 2.0315)


def _original(rows: int, columns: int) -> float:
    return math.sqrt(max(1, rows / columns))


def _match_rms_adamw(rows: int, columns: int) -> float:
    return 0.2 * math.sqrt(max(rows, columns))


# How the learning rate depends on the matrix's shape.
_ADJUSTMENTS = {None: _original, "original": _original, "match_rms_adamw": _match_rms_adamw}


class Muon(Optimizer):
    """For the 2-d parameters of hidden layers; others belong to another optimizer."""

    __module__ = "mindtorch_v2.optim"

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
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            dict(
                lr=lr,
                weight_decay=weight_decay,
                momentum=momentum,
                nesterov=nesterov,
                ns_coefficients=ns_coefficients,
                eps=eps,
                ns_steps=ns_steps,
                adjust_lr_fn=adjust_lr_fn,
            ),
        )
        for group in self.param_groups:
            for param in group["params"]:
                if param.ndim != 2:
                    raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}")

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"momentum_buffer": torch.zeros_like(param.grad)}

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            if any(p.is_complex() for p in group["params"] if p.grad is not None):
                raise RuntimeError("Muon does not support complex parameters")
            params, grads, states = self._collect(group, "Muon does not support sparse gradients")
            muon(
                params,
                grads,
                [s["momentum_buffer"] for s in states],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                nesterov=group["nesterov"],
                ns_coefficients=group["ns_coefficients"],
                ns_steps=group["ns_steps"],
                eps=group["eps"],
                adjust_lr_fn=group["adjust_lr_fn"],
            )
        return loss


def muon(
    params: list[Any],
    grads: list[Any],
    muon_momentum_bufs: list[Any],
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
    for param, grad, buffer in zip(params, grads, muon_momentum_bufs, strict=True):
        buffer.lerp_(grad, 1 - momentum)
        update = grad.lerp(buffer, momentum) if nesterov else buffer
        update = _orthogonal(update, ns_coefficients, ns_steps, eps)
        rate = lr * _ADJUSTMENTS[adjust_lr_fn](*param.shape)
        param.mul_(1 - lr * weight_decay)
        param.add_(update, alpha=-rate)


def _orthogonal(matrix: Any, coefficients: tuple[float, float, float], steps: int, eps: float) -> Any:
    """The nearest orthogonal matrix, roughly: Newton-Schulz iterations in bfloat16."""
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    made = matrix.bfloat16()
    is_tall = matrix.size(0) > matrix.size(1)
    if is_tall:
        made = made.T
    made.div_(torch.linalg_vector_norm(made).clamp(min=eps))
    for _ in range(steps):
        gram = made @ made.T
        gram = torch.addmm(gram, gram, gram, beta=b, alpha=c)
        made = torch.addmm(made, gram, made, beta=a)
    return made.T if is_tall else made
