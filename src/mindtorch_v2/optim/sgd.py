"""Stochastic gradient descent, with momentum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import by_dtype, value_of, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_rate, not_negative
from .optimizer import Params

__all__ = ["SGD", "sgd"]


def _check_nesterov(options: Mapping[str, Any]) -> None:
    if options["nesterov"] and (options["momentum"] <= 0 or options["dampening"] != 0):
        raise ValueError("Nesterov momentum requires a momentum and zero dampening")


class SGD(DeclarativeOptimizer):
    """`param -= lr * grad`, where the gradient may be smoothed by momentum and joined by weight decay."""

    _checks = (check_rate, not_negative("momentum", "weight_decay"), _check_nesterov)
    _later_options: ClassVar = {
        "nesterov": False,
        "maximize": False,
        "differentiable": False,
        "foreach": None,
        "fused": False,
    }

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float | Tensor = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _step_group(self, group: dict[str, Any]) -> None:
        """Without momentum a parameter has no state at all; with it, the buffer is made from the first gradient."""
        params, grads = self._with_grads(group)
        options = self._hyperparameters(group, params, grads)
        if group["momentum"] == 0:
            self._update(options, params, grads, [])
            return
        buffers = [self.state[param].get("momentum_buffer") for param in params]
        self._update(options, params, grads, buffers)
        for param, buffer in zip(params, buffers, strict=True):
            self.state[param]["momentum_buffer"] = buffer

    @classmethod
    def _update(cls, options: Hyperparameters, params: list[Any], grads: list[Any], *state_lists: list[Any]) -> None:
        """As the base does it, but momentum buffers that a rule makes reach the caller's list."""
        (buffers,) = state_lists
        if not params:
            return
        if options.fused:
            cls._update_fused(options, params, grads, buffers)
        elif options.foreach and not options.has_sparse_grad:
            for params_, grads_, buffers_, places in by_dtype(params, grads, buffers, list(range(len(params)))):
                cls._multi_tensor(options, params_, grads_, buffers_)
                if options.momentum != 0:
                    for place, buffer in zip(places, buffers_, strict=True):
                        buffers[place] = buffer
        else:
            cls._single_tensor(options, params, grads, buffers)

    @classmethod
    def _update_fused(cls, options: Hyperparameters, params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
        if options.has_sparse_grad:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")
        options.is_first_step = options.momentum != 0 and all(buffer is None for buffer in buffers)
        if options.is_first_step:
            buffers[:] = [torch.empty_like(grad) for grad in grads]
        for tensors in by_dtype(params, grads, buffers):
            cls._fused(options, *tensors)

    @staticmethod
    def _single_tensor(h: Hyperparameters, params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
        lr, momentum, dampening, weight_decay = h.lr, h.momentum, h.dampening, h.weight_decay
        rate_is_tensor, decay_is_tensor = isinstance(lr, Tensor), isinstance(weight_decay, Tensor)
        for i, param in enumerate(params):
            grad = -grads[i] if h.maximize else grads[i]
            if not decay_is_tensor and weight_decay == 0:
                pass
            elif decay_is_tensor and weight_decay.requires_grad:
                grad = grad.addcmul_(param.clone(), weight_decay)
            else:
                grad = grad.add(param, alpha=value_of(weight_decay))
            if momentum != 0:
                buffer = buffers[i]
                if buffer is None:
                    buffer = buffers[i] = grad.detach().clone()
                else:
                    buffer.mul_(momentum).add_(grad, alpha=1 - dampening)
                grad = grad.add(buffer, alpha=momentum) if h.nesterov else buffer
            if rate_is_tensor and lr.requires_grad:
                param.addcmul_(grad, lr, value=-1)
            else:
                param.add_(grad, alpha=value_of(-lr) if rate_is_tensor else -lr)

    @staticmethod
    def _multi_tensor(h: Hyperparameters, params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
        if h.maximize:
            grads = torch._foreach_neg(grads)
        grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        if h.momentum != 0:
            if all(buffer is not None for buffer in buffers):
                torch._foreach_mul_(buffers, h.momentum)
                torch._foreach_add_(buffers, grads, alpha=1 - h.dampening)
            else:
                for i, buffer in enumerate(buffers):
                    if buffer is None:
                        buffers[i] = grads[i].detach().clone()
                    else:
                        buffer.mul_(h.momentum).add_(grads[i], alpha=1 - h.dampening)
            if h.nesterov:
                torch._foreach_add_(grads, buffers, alpha=h.momentum)
            else:
                grads = buffers
        torch._foreach_add_(params, grads, alpha=value_of(-h.lr))

    @staticmethod
    def _fused(h: Hyperparameters, params: list[Any], grads: list[Any], buffers: list[Any]) -> None:
        torch._fused_sgd_(
            params,
            grads,
            [] if h.momentum == 0 else buffers,
            weight_decay=h.weight_decay,
            momentum=h.momentum,
            lr=h.lr,
            dampening=h.dampening,
            nesterov=h.nesterov,
            maximize=h.maximize,
            is_first_step=h.is_first_step,
            grad_scale=h.grad_scale,
            found_inf=h.found_inf,
        )


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
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """One step on lists of parameters and gradients; missing momentum buffers are put into their list."""
    options = Hyperparameters(
        has_sparse_grad=has_sparse_grad,
        foreach=foreach,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        weight_decay=weight_decay,
        momentum=momentum,
        lr=lr,
        dampening=dampening,
        nesterov=nesterov,
        maximize=maximize,
    )
    SGD._update(options, params, d_p_list, momentum_buffer_list)
