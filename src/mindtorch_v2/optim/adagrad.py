"""Adagrad: steps that shrink with the sum of all squared gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import (
    by_dtype,
    check_fused,
    check_not_negative,
    check_rate,
    evaluate,
    new_step_count,
    one_step,
    value_of,
    view_as_real,
    with_decay,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["Adagrad", "adagrad"]


class Adagrad(Optimizer):
    """`param -= lr * grad / sqrt(sum of squared gradients)`."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
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
        check_rate(lr)
        check_not_negative(
            lr_decay=lr_decay, weight_decay=weight_decay, initial_accumulator_value=initial_accumulator_value, eps=eps
        )
        super().__init__(
            params,
            dict(
                lr=lr,
                lr_decay=lr_decay,
                eps=eps,
                weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value,
                foreach=foreach,
                maximize=maximize,
                differentiable=differentiable,
                fused=fused,
            ),
        )
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self._new_state(param, group))

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)
            group.setdefault("maximize", False)
            group.setdefault("differentiable", False)
            group.setdefault("fused", None)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        return {"step": new_step_count(), "sum": torch.full_like(param, complex(start, start) if param.is_complex() else start)}

    def share_memory(self) -> None:
        """Move the state to memory that processes share."""
        for state in self.state.values():
            state["sum"].share_memory_()

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group)
            adagrad(
                params,
                grads,
                [s["sum"] for s in states],
                [s["step"] for s in states],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                has_sparse_grad=any(g.is_sparse for g in grads),
                foreach=group["foreach"],
                differentiable=group["differentiable"],
                has_complex=any(p.is_complex() for p in params),
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                lr_decay=group["lr_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
            )
        return loss


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
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not params:
        return
    options: dict[str, Any] = dict(lr=lr, weight_decay=weight_decay, lr_decay=lr_decay, eps=eps, maximize=maximize)
    if fused:
        if has_sparse_grad or has_complex:
            raise RuntimeError("`fused` does not support sparse grad or complex param")
        _fused(params, grads, state_sums, state_steps, grad_scale, found_inf, **options)
    elif foreach and not has_sparse_grad:
        _foreach(params, grads, state_sums, state_steps, has_complex, **options)
    else:
        _one_by_one(params, grads, state_sums, state_steps, differentiable, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    sums: list[Any],
    steps: list[Any],
    differentiable: bool,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    for param, grad, total, step_t in zip(params, grads, sums, steps, strict=True):
        step_t += 1
        step = step_t.item()
        grad = -grad if maximize else grad
        if weight_decay != 0:
            if grad.is_sparse:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            grad = grad.add(param, alpha=weight_decay)
        rate = lr / (1 + (step - 1) * lr_decay)
        if grad.is_sparse:
            _sparse_step(param, grad.coalesce(), total, rate, eps)
            continue
        if param.is_complex():
            param, grad, total = (t.view_as_real() for t in (param, grad, total))
        total.addcmul_(grad, grad, value=1)
        deviation = total.sqrt()
        deviation = deviation + eps if differentiable else deviation.add_(eps)
        param.addcdiv_(grad, deviation, value=value_of(-rate))


def _sparse_step(param: Any, grad: Any, total: Any, rate: Any, eps: float) -> None:
    """A step on those rows only that have a gradient."""
    indices, values = grad._indices(), grad._values()

    def like_grad(data: Any) -> Any:
        return torch.sparse_coo_tensor(indices, data, grad.shape)

    total.add_(like_grad(values.pow(2)))
    deviation = total.sparse_mask(grad)._values().sqrt_().add_(eps)
    param.add_(like_grad(values / deviation), alpha=value_of(-rate))


def _foreach(
    params: list[Any],
    grads: list[Any],
    sums: list[Any],
    steps: list[Any],
    has_complex: bool,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    for params_, grads_, sums_, steps_ in by_dtype(params, grads, sums, steps):
        if has_complex:
            view_as_real(params_, grads_, sums_)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        rates = [-lr / (1 + (step.item() - 1) * lr_decay) for step in steps_]
        torch._foreach_addcmul_(sums_, grads_, grads_, value=1)
        deviations = torch._foreach_sqrt(sums_)
        torch._foreach_add_(deviations, eps)
        if weight_decay != 0 or maximize:
            torch._foreach_mul_(grads_, rates)
        else:
            grads_ = torch._foreach_mul(grads_, rates)
        torch._foreach_addcdiv_(params_, grads_, deviations)


def _fused(
    params: list[Any],
    grads: list[Any],
    sums: list[Any],
    steps: list[Any],
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    lr: Any,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    for params_, grads_, sums_, steps_ in by_dtype(params, grads, sums, steps):
        torch._foreach_add_(steps_, 1)
        torch._fused_adagrad_(
            params_,
            grads_,
            sums_,
            steps_,
            lr=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            eps=eps,
            maximize=maximize,
            grad_scale=grad_scale,
            found_inf=found_inf,
        )
        if found_inf is not None:
            torch._foreach_sub_(steps_, [found_inf] * len(steps_))
