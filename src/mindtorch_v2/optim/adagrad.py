"""Adagrad: steps that shrink with the sum of all squared gradients."""

from __future__ import annotations

from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, filled_like, not_negative, step_count
from .optimizer import Params

__all__ = ["Adagrad", "adagrad"]


def _initial_sum(param: Any, group: dict[str, Any]) -> Tensor:
    return filled_like(param, group["initial_accumulator_value"])


class Adagrad(DeclarativeOptimizer):
    """`param -= lr * grad / sqrt(sum of squared gradients)`."""

    _checks = (check_rate, not_negative("lr_decay", "weight_decay", "initial_accumulator_value", "eps"))
    _later_options: ClassVar = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    _state: ClassVar = {"step": step_count, "sum": _initial_sum}
    _rule_state = ("sum", "step")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)
        # Processes may share the sums, so they are there before the first step.
        for group in self.param_groups:
            self._states(group["params"], group)

    def share_memory(self) -> None:
        """Move the state to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    @staticmethod
    def _single_tensor(h: Hyperparameters, params: list[Any], grads: list[Any], sums: list[Any], steps: list[Any]) -> None:
        for param, grad, total, step_t in zip(params, grads, sums, steps, strict=True):
            step_t += 1
            step = step_t.item()
            grad = -grad if h.maximize else grad
            if h.weight_decay != 0:
                if grad.is_sparse:
                    raise RuntimeError("weight_decay option is not compatible with sparse gradients")
                grad = grad.add(param, alpha=h.weight_decay)
            rate = h.lr / (1 + (step - 1) * h.lr_decay)
            if grad.is_sparse:
                _sparse_update(param, grad.coalesce(), total, rate, h.eps)
                continue
            if param.is_complex():
                param, grad, total = (torch.view_as_real(t) for t in (param, grad, total))
            total.addcmul_(grad, grad, value=1)
            deviation = total.sqrt()
            deviation = deviation + h.eps if h.differentiable else deviation.add_(h.eps)
            param.addcdiv_(grad, deviation, value=value_of(-rate))

    @staticmethod
    def _multi_tensor(h: Hyperparameters, params: list[Any], grads: list[Any], sums: list[Any], steps: list[Any]) -> None:
        if h.has_complex:
            view_as_real(params, grads, sums)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        rates = [-h.lr / (1 + (step.item() - 1) * h.lr_decay) for step in steps]
        torch._foreach_addcmul_(sums, grads, grads, value=1)
        deviations = torch._foreach_sqrt(sums)
        torch._foreach_add_(deviations, h.eps)
        if h.weight_decay != 0 or h.maximize:
            torch._foreach_mul_(grads, rates)
        else:
            grads = torch._foreach_mul(grads, rates)
        torch._foreach_addcdiv_(params, grads, deviations)

    @staticmethod
    def _fused(h: Hyperparameters, params: list[Any], grads: list[Any], sums: list[Any], steps: list[Any]) -> None:
        if h.has_sparse_grad or h.has_complex:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        torch._foreach_add_(steps, 1)
        torch._fused_adagrad_(
            params,
            grads,
            sums,
            steps,
            lr=h.lr,
            lr_decay=h.lr_decay,
            weight_decay=h.weight_decay,
            eps=h.eps,
            maximize=h.maximize,
            grad_scale=h.grad_scale,
            found_inf=h.found_inf,
        )
        if h.found_inf is not None:
            torch._foreach_sub_(steps, [h.found_inf] * len(steps))


def _sparse_update(param: Any, grad: Any, total: Any, rate: Any, eps: float) -> None:
    """A step on those rows only that have a gradient."""
    indices, values = grad._indices(), grad._values()

    def like_grad(data: Any) -> Any:
        return torch.sparse_coo_tensor(indices, data, grad.shape)

    total.add_(like_grad(values.pow(2)))
    deviation = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(like_grad(values / deviation), alpha=value_of(-rate))


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_sparse_grad=has_sparse_grad,
        foreach=foreach,
        differentiable=differentiable,
        has_complex=has_complex,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
    )
    Adagrad._update(options, params, grads, state_sums, state_steps)
