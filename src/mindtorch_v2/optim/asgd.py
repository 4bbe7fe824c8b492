"""ASGD: stochastic gradient descent that also averages the parameters it has passed."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from .._ops.creation.from_data import as_tensor
from ._common import one_step, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, not_negative, step_dtype, zeros
from .optimizer import Params

__all__ = ["ASGD", "asgd"]


def _step_count(param: Any, group: dict[str, Any]) -> Tensor:
    return torch.zeros((), dtype=step_dtype(), device=param.device)


def _initial_rate(param: Any, group: dict[str, Any]) -> Any:
    return as_tensor(group["lr"], device=param.device, dtype=step_dtype()).clone().detach()


def _initial_weight(param: Any, group: dict[str, Any]) -> Tensor:
    return torch.ones((), dtype=step_dtype(), device=param.device)


class ASGD(DeclarativeOptimizer):
    """Averaged stochastic gradient descent; the average is the state `ax`."""

    _checks = (check_rate, not_negative("weight_decay"))
    _later_options: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    _state: ClassVar = {"step": _step_count, "eta": _initial_rate, "mu": _initial_weight, "ax": zeros}
    _counters = ("step", "eta", "mu")
    _rule_state = ("ax", "mu", "eta", "step")
    _reads_rate = True
    _refuses_sparse = "ASGD does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    @classmethod
    def _update(cls, options: Hyperparameters, params: list[Any], grads: list[Any], *state_lists: list[Any]) -> None:
        options.foreach = options.foreach and not options.differentiable
        super()._update(options, params, grads, *state_lists)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        averages: list[Any],
        mus: list[Any],
        etas: list[Any],
        steps: list[Any],
    ) -> None:
        for param, grad, average, mu, eta, step_t in zip(params, grads, averages, mus, etas, steps, strict=True):
            grad = -grad if h.maximize else grad
            if param.is_complex():
                param, grad, average = (torch.view_as_real(t) for t in (param, grad, average))
            step_t += 1
            if h.weight_decay != 0:
                grad = grad.add(param, alpha=h.weight_decay)
            rate = eta.item()
            param.mul_(1 - h.lambd * rate)
            param.add_(grad, alpha=-rate)
            if mu.item() != 1:
                average.add_(param.sub(average).mul_(mu))
            else:
                average.copy_(param)
            step = step_t.item()
            eta.copy_(as_tensor(h.lr / (1 + h.lambd * h.lr * step) ** h.alpha))
            mu.copy_(as_tensor(1 / max(1, step - h.t0)))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        averages: list[Any],
        mus: list[Any],
        etas: list[Any],
        steps: list[Any],
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, averages)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        # The pull towards zero, of strength lambd, joins the gradient.
        if h.weight_decay != 0:
            grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
            torch._foreach_add_(grads, params, alpha=h.lambd)
        else:
            grads = torch._foreach_add(grads, params, alpha=h.lambd)
        torch._foreach_addcmul_(params, grads, etas, value=-1)
        torch._foreach_addcmul_(averages, torch._foreach_sub(params, averages), mus)
        rates = [as_tensor(h.lr / (1 + h.lambd * h.lr * step) ** h.alpha, device=step.device) for step in steps]
        weights = [as_tensor(1 / max(1, step.item() - h.t0), device=step.device) for step in steps]
        torch._foreach_copy_(etas, rates)
        torch._foreach_copy_(mus, weights)


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        foreach=foreach,
        maximize=maximize,
        differentiable=differentiable,
        capturable=capturable,
        has_complex=has_complex,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
    )
    ASGD._update(options, params, grads, axs, mus, etas, state_steps)
