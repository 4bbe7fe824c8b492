"""Rprop: steps that look at the sign of the gradient only, and grow while it stays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, filled_like, zero_step_count, zeros
from .optimizer import Params

__all__ = ["Rprop", "rprop"]


def _check_etas(options: Mapping[str, Any]) -> None:
    etas = options["etas"]
    if not 0.0 < etas[0] < 1.0 < etas[1]:
        raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")


def _initial_step_size(param: Any, group: dict[str, Any]) -> Tensor:
    return filled_like(param.grad, value_of(group["lr"]))


def _to_factors(sign: Any, h: Hyperparameters) -> None:
    """Turn signs into what the step sizes are multiplied by."""
    sign[sign.gt(0)] = h.etaplus
    sign[sign.lt(0)] = h.etaminus
    sign[sign.eq(0)] = 1


class Rprop(DeclarativeOptimizer):
    """Resilient backpropagation: each element has a step size of its own."""

    _checks = (check_rate, _check_etas)
    _later_options: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _state: ClassVar = {"step": zero_step_count, "prev": zeros, "step_size": _initial_step_size}
    _rule_state = ("prev", "step_size", "step")
    _unpacked: ClassVar = {"etas": ("etaminus", "etaplus"), "step_sizes": ("step_size_min", "step_size_max")}
    _refuses_sparse = "Rprop does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], prevs: list[Any], step_sizes: list[Any], steps: list[Any]
    ) -> None:
        for param, grad, previous, size, step in zip(params, grads, prevs, step_sizes, steps, strict=True):
            grad = -grad if h.maximize else grad
            step += 1
            if param.is_complex():
                param, grad, previous, size = (torch.view_as_real(t) for t in (param, grad, previous, size))
            sign = grad.mul(previous.clone() if h.differentiable else previous).sign()
            _to_factors(sign, h)
            size.mul_(sign).clamp_(h.step_size_min, h.step_size_max)
            # Where the sign has changed, the step was too far: wait once before going back.
            grad = grad.clone()
            grad[sign.eq(h.etaminus)] = 0
            param.addcmul_(grad.sign(), size, value=-1)
            previous.copy_(grad)

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters, params: list[Any], grads: list[Any], prevs: list[Any], step_sizes: list[Any], steps: list[Any]
    ) -> None:
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        if h.has_complex:
            view_as_real(params, grads, prevs, step_sizes)
        signs = torch._foreach_mul(grads, prevs)
        if h.maximize:
            torch._foreach_neg_(signs)
        # From here on the gradients live where the previous ones did; the caller's stay as they are.
        torch._foreach_copy_(prevs, grads)
        if h.maximize:
            torch._foreach_neg_(prevs)
        torch._foreach_sign_(signs)
        for sign in signs:
            _to_factors(sign, h)
        torch._foreach_mul_(step_sizes, signs)
        for size in step_sizes:
            size.clamp_(h.step_size_min, h.step_size_max)
        for sign, grad in zip(signs, prevs, strict=True):
            grad.copy_(torch.where(sign.eq(h.etaminus), 0, grad))
        torch._foreach_addcmul_(params, [grad.sign() for grad in prevs], step_sizes, value=-1)


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        foreach=foreach,
        capturable=capturable,
        maximize=maximize,
        differentiable=differentiable,
        has_complex=has_complex,
        step_size_min=step_size_min,
        step_size_max=step_size_max,
        etaminus=etaminus,
        etaplus=etaplus,
    )
    Rprop._update(options, params, grads, prevs, step_sizes, state_steps)
