"""Adam, and with decoupled weight decay AdamW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import (
    by_dtype,
    check_betas,
    check_capturable,
    check_fused,
    check_not_negative,
    check_rate,
    evaluate,
    new_step_count,
    one_step,
    step_dtype,
    value_of,
    view_as_real,
    with_decay,
    with_grad_mode,
)
from .optimizer import Optimizer, Params

__all__ = ["Adam", "adam"]


class Adam(Optimizer):
    """Steps of the size `lr`, divided by a running root mean square of the gradients."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_rate(lr, foreach, capturable)
        check_not_negative(eps=eps)
        check_betas(betas)
        check_not_negative(weight_decay=weight_decay)
        _check_tensor_betas(betas, foreach, capturable)
        super().__init__(
            params,
            dict(
                lr=lr,
                betas=betas,
                eps=eps,
                weight_decay=weight_decay,
                amsgrad=amsgrad,
                maximize=maximize,
                foreach=foreach,
                capturable=capturable,
                differentiable=differentiable,
                fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("amsgrad", "maximize", "capturable", "differentiable", "decoupled_weight_decay"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", None)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        counted = group["capturable"] or group["fused"]
        state: dict[str, Any] = {
            "step": torch.zeros((), dtype=step_dtype(is_fused=bool(group["fused"])), device=param.device)
            if counted
            else new_step_count(),
            "exp_avg": torch.zeros_like(param),
            "exp_avg_sq": torch.zeros_like(param),
        }
        if group["amsgrad"]:
            state["max_exp_avg_sq"] = torch.zeros_like(param)
        return state

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(
                group, "Adam does not support sparse gradients, please consider SparseAdam instead"
            )
            if group["differentiable"] and any(state["step"].requires_grad for state in states):
                raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
            beta1, beta2 = group["betas"]
            adam(
                params,
                grads,
                [s["exp_avg"] for s in states],
                [s["exp_avg_sq"] for s in states],
                [s["max_exp_avg_sq"] for s in states] if group["amsgrad"] else [],
                [s["step"] for s in states],
                foreach=group["foreach"],
                capturable=group["capturable"],
                differentiable=group["differentiable"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                has_complex=any(p.is_complex() for p in params),
                decoupled_weight_decay=group["decoupled_weight_decay"],
                amsgrad=group["amsgrad"],
                beta1=beta1,
                beta2=beta2,
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
            )
        return loss


def _check_tensor_betas(betas: Any, foreach: bool | None, capturable: bool) -> None:
    given = [isinstance(beta, Tensor) for beta in betas]
    if any(given) and not all(given):
        raise ValueError("betas must be either both floats or both Tensors")
    if all(given):
        for index, beta in enumerate(betas):
            if not capturable and foreach:
                raise ValueError(f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")


def adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    max_exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_complex: bool = False,
    decoupled_weight_decay: bool = False,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    if not all(isinstance(step, Tensor) for step in state_steps):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    if not params:
        return
    lists = (params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
    options: dict[str, Any] = dict(
        amsgrad=amsgrad, beta1=beta1, beta2=beta2, lr=lr, weight_decay=weight_decay, eps=eps, maximize=maximize
    )
    if fused:
        _fused(*lists, grad_scale, found_inf, decoupled_weight_decay, **options)
        return
    check_capturable(capturable)
    if foreach:
        _foreach(*lists, has_complex, decoupled_weight_decay, **options)
    else:
        _one_by_one(*lists, differentiable, decoupled_weight_decay, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[Any],
    differentiable: bool,
    decoupled: bool,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        mean, square, step_t = exp_avgs[i], exp_avg_sqs[i], steps[i]
        step_t += 1
        if weight_decay != 0:
            if decoupled:
                param.mul_(1 - lr * weight_decay)
            else:
                grad = grad.add(param, alpha=weight_decay)
        largest = max_exp_avg_sqs[i] if amsgrad else None
        if param.is_complex():
            grad, mean, square, param = (t.view_as_real() for t in (grad, mean, square, param))
            largest = None if largest is None else largest.view_as_real()
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=value_of(1 - beta2))
        if differentiable:
            _differentiable_update(param, mean.clone(), square.clone(), largest, step_t, beta1, beta2, lr, eps)
            continue
        step = step_t.item()
        step_size = lr / (1 - beta1**step)
        root = (1 - beta2**step) ** 0.5
        if largest is not None:
            square = torch.maximum(largest, square, out=largest)
        param.addcdiv_(mean, (square.sqrt() / root).add_(eps), value=value_of(-step_size))


def _differentiable_update(
    param: Any, mean: Any, square: Any, largest: Any, step: Any, beta1: Any, beta2: Any, lr: Any, eps: float
) -> None:
    """The end of a step with every number a tensor, so that gradients reach the learning rate and the betas."""
    if largest is not None:
        largest.copy_(torch.maximum(largest.clone(), square))
        square = largest.clone()
    size = -(lr / (1 - beta1**step))
    root = (1 - beta2**step).sqrt()
    param.addcdiv_(mean, (square.sqrt() / (root * size)).add_(eps / size))


def _foreach(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[Any],
    has_complex: bool,
    decoupled: bool,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    for group in by_dtype(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps):
        params_, grads_, means, squares, largest, steps_ = group
        if has_complex:
            view_as_real(params_, grads_, means, squares, largest)
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        torch._foreach_add_(steps_, one_step(), alpha=1.0)
        if decoupled and weight_decay != 0:
            torch._foreach_mul_(params_, 1 - lr * weight_decay)
        else:
            grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        torch._foreach_lerp_(means, grads_, 1 - beta1)
        torch._foreach_mul_(squares, beta2)
        torch._foreach_addcmul_(squares, grads_, grads_, 1 - beta2)
        sizes = [-lr / (1 - beta1 ** step.item()) for step in steps_]
        roots = [(1 - beta2 ** step.item()) ** 0.5 for step in steps_]
        if amsgrad:
            torch._foreach_maximum_(largest, squares)
            squares = largest
        denominators = torch._foreach_sqrt(squares)
        torch._foreach_div_(denominators, roots)
        torch._foreach_add_(denominators, eps)
        torch._foreach_addcdiv_(params_, means, denominators, sizes)


def _fused(
    params: list[Any],
    grads: list[Any],
    exp_avgs: list[Any],
    exp_avg_sqs: list[Any],
    max_exp_avg_sqs: list[Any],
    steps: list[Any],
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    decoupled: bool,
    *,
    amsgrad: bool,
    beta1: Any,
    beta2: Any,
    lr: Any,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    run = torch._fused_adamw_ if decoupled else torch._fused_adam_
    for group in by_dtype(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, steps):
        params_, grads_, means, squares, largest, steps_ = group
        torch._foreach_add_(steps_, 1)
        run(
            params_,
            grads_,
            means,
            squares,
            largest,
            steps_,
            lr=lr,
            beta1=value_of(beta1),
            beta2=value_of(beta2),
            weight_decay=weight_decay,
            eps=eps,
            amsgrad=amsgrad,
            maximize=maximize,
            grad_scale=grad_scale,
            found_inf=found_inf,
        )
        if found_inf is not None:
            torch._foreach_sub_(steps_, [found_inf] * len(steps_))
