"""RMSprop: steps divided by a running root mean square of the gradients."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, not_negative, zero_step_count, zeros
from .optimizer import Params

__all__ = ["RMSprop", "rmsprop"]


class RMSprop(DeclarativeOptimizer):
    """`param -= lr * grad / rms(gradients)`; centered, the mean is taken out of the mean square."""

    _checks = (check_rate, not_negative("eps", "momentum", "weight_decay", "alpha"))
    _later_options: ClassVar = {
        "momentum": 0,
        "foreach": None,
        "centered": False,
        "maximize": False,
        "differentiable": False,
        "capturable": False,
    }
    _state: ClassVar = {"step": zero_step_count, "square_avg": zeros, "momentum_buffer": zeros, "grad_avg": zeros}
    _state_conditions: ClassVar = {
        "momentum_buffer": lambda group: group["momentum"] > 0,
        "grad_avg": lambda group: group["centered"],
    }
    _rule_state = ("square_avg", "grad_avg", "momentum_buffer", "step")
    _refuses_sparse = "RMSprop does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        squares: list[Any],
        means: list[Any],
        buffers: list[Any],
        steps: list[Any],
    ) -> None:
        for i, param in enumerate(params):
            grad = -grads[i] if h.maximize else grads[i]
            square = squares[i]
            steps[i] += 1
            if h.weight_decay != 0:
                grad = grad.add(param, alpha=h.weight_decay)
            is_complex = param.is_complex()
            if is_complex:
                param, grad, square = (torch.view_as_real(t) for t in (param, grad, square))
            square.mul_(h.alpha).addcmul_(grad, grad, value=1 - h.alpha)
            if h.centered:
                mean = torch.view_as_real(means[i]) if is_complex else means[i]
                mean.lerp_(grad, 1 - h.alpha)
                deviation = square.addcmul(mean, mean, value=-1).sqrt_()
            else:
                deviation = square.sqrt()
            deviation = deviation.add(h.eps) if h.differentiable else deviation.add_(h.eps)
            if h.momentum > 0:
                buffer = torch.view_as_real(buffers[i]) if is_complex else buffers[i]
                buffer.mul_(h.momentum).addcdiv_(grad, deviation)
                param.add_(buffer, alpha=value_of(-h.lr))
            else:
                param.addcdiv_(grad, deviation, value=value_of(-h.lr))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        squares: list[Any],
        means: list[Any],
        buffers: list[Any],
        steps: list[Any],
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, squares, means, buffers)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_mul_(squares, h.alpha)
        torch._foreach_addcmul_(squares, grads, grads, value=1 - h.alpha)
        if h.centered:
            torch._foreach_lerp_(means, grads, 1 - h.alpha)
            deviations = torch._foreach_addcmul(squares, means, means, value=-1)
            torch._foreach_sqrt_(deviations)
        else:
            deviations = torch._foreach_sqrt(squares)
        torch._foreach_add_(deviations, h.eps)
        if h.momentum > 0:
            torch._foreach_mul_(buffers, h.momentum)
            torch._foreach_addcdiv_(buffers, grads, deviations)
            torch._foreach_add_(params, buffers, alpha=value_of(-h.lr))
        else:
            torch._foreach_addcdiv_(params, grads, deviations, value=value_of(-h.lr))


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
    )
    RMSprop._update(options, params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps)
