"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import by_dtype, check_fused, check_not_negative, check_rate, evaluate, value_of, with_decay, with_grad_mode
from .optimizer import Optimizer, Params

__all__ = ["SGD", "sgd"]


class SGD(Optimizer):
    """`param -= lr * grad`, where the gradient may be smoothed by momentum and joined by weight decay."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_rate(lr)
        check_not_negative(momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(
            params,
            dict(
                lr=lr,
                momentum=momentum,
                dampening=dampening,
                weight_decay=weight_decay,
                nesterov=nesterov,
                maximize=maximize,
                foreach=foreach,
                differentiable=differentiable,
                fused=fused,
            ),
        )
        check_fused(fused, foreach, differentiable)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name in ("nesterov", "maximize", "differentiable"):
                group.setdefault(name, False)
            group.setdefault("foreach", None)
            group.setdefault("fused", False)

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            grads = [p.grad for p in params]
            keeps = group["momentum"] != 0
            buffers = [self.state[p].get("momentum_buffer") for p in params] if keeps else []
            sgd(
                params,
                grads,
                buffers,
                has_sparse_grad=any(g.is_sparse for g in grads),
                foreach=group["foreach"],
                fused=group["fused"],
                grad_scale=getattr(self, "grad_scale", None),
                found_inf=getattr(self, "found_inf", None),
                weight_decay=group["weight_decay"],
                momentum=group["momentum"],
                lr=group["lr"],
                dampening=group["dampening"],
                nesterov=group["nesterov"],
                maximize=group["maximize"],
            )
            if keeps:
                for param, buffer in zip(params, buffers, strict=True):
                    self.state[param]["momentum_buffer"] = buffer
        return loss


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step on lists of parameters and gradients; missing momentum buffers are put into their list."""
    if not params:
        return
    options = dict(
        weight_decay=weight_decay, momentum=momentum, lr=lr, dampening=dampening, nesterov=nesterov, maximize=maximize
    )
    if fused:
        if has_sparse_grad:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        _fused(params, d_p_list, momentum_buffer_list, grad_scale, found_inf, **options)
    elif foreach and not has_sparse_grad:
        _foreach(params, d_p_list, momentum_buffer_list, **options)
    else:
        _one_by_one(params, d_p_list, momentum_buffer_list, **options)


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    *,
    weight_decay: Any,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        if not isinstance(weight_decay, Tensor) and weight_decay == 0:
            pass
        elif isinstance(weight_decay, Tensor) and weight_decay.requires_grad:
            grad = grad.addcmul_(param.clone(), weight_decay)
        else:
            grad = grad.add(param, alpha=value_of(weight_decay))
        if momentum != 0:
            buffer = buffers[i]
            if buffer is None:
                buffer = buffers[i] = grad.detach().clone()
            else:
                buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
            grad = grad.add(buffer, alpha=momentum) if nesterov else buffer
        if isinstance(lr, Tensor) and lr.requires_grad:
            param.addcmul_(grad, lr, value=-1)
        else:
            param.add_(grad, alpha=value_of(-lr))


def _foreach(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    places = list(range(len(params)))
    for params_, grads_, buffers_, indices in by_dtype(params, grads, buffers, places):
        if maximize:
            grads_ = torch._foreach_neg(grads_)
        grads_ = with_decay(grads_, params_, weight_decay, own=maximize)
        if momentum != 0:
            if all(b is not None for b in buffers_):
                torch._foreach_mul_(buffers_, momentum)
                torch._foreach_add_(buffers_, grads_, alpha=1 - dampening)
            else:
                for i, buffer in enumerate(buffers_):
                    if buffer is None:
                        buffers_[i] = buffers[indices[i]] = grads_[i].detach().clone()
                    else:
                        buffer.mul_(momentum).add_(grads_[i], alpha=1 - dampening)
            if nesterov:
                torch._foreach_add_(grads_, buffers_, alpha=momentum)
            else:
                grads_ = buffers_
        torch._foreach_add_(params_, grads_, alpha=value_of(-lr))


def _fused(
    params: list[Any],
    grads: list[Any],
    buffers: list[Any],
    grad_scale: Tensor | None,
    found_inf: Tensor | None,
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    first = momentum != 0 and all(b is None for b in buffers)
    if first:
        buffers[:] = [torch.empty_like(g) for g in grads]
    for params_, grads_, buffers_ in by_dtype(params, grads, buffers):
        torch._fused_sgd_(
            params_,
            grads_,
            [] if momentum == 0 else buffers_,
            weight_decay=weight_decay,
            momentum=momentum,
            lr=lr,
            dampening=dampening,
            nesterov=nesterov,
            maximize=maximize,
            is_first_step=first,
            grad_scale=grad_scale,
            found_inf=found_inf,
        )
