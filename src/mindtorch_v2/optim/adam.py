"""Adam, and with decoupled weight decay AdamW."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import one_step, value_of, view_as_real, with_decay
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_betas, check_rate, not_negative, step_count, step_dtype, zeros
from .optimizer import Params

__all__ = ["Adam", "adam"]


def _check_tensor_rate(options: Mapping[str, Any]) -> None:
    if isinstance(options["lr"], Tensor) and options["foreach"] and not options["capturable"]:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")


def _check_tensor_betas(options: Mapping[str, Any]) -> None:
    betas = options["betas"]
    are_tensors = [isinstance(beta, Tensor) for beta in betas]
    if any(are_tensors) and not all(are_tensors):
        raise ValueError("betas must be either both floats or both Tensors")
    if all(are_tensors):
        for index, beta in enumerate(betas):
            if not options["capturable"] and options["foreach"]:
                raise ValueError(f"betas[{index}] as a Tensor is not supported for capturable=False and foreach=True")
            if beta.numel() != 1:
                raise ValueError(f"Tensor betas[{index}] must be 1-element")


def _step_count(param: Any, group: dict[str, Any]) -> Tensor:
    """A counter on the parameter's device where the step runs there as one kernel."""
    if group["capturable"] or group["fused"]:
        return torch.zeros((), dtype=step_dtype(is_fused=bool(group["fused"])), device=param.device)
    return step_count(param, group)


class Adam(DeclarativeOptimizer):
    """Steps of the size `lr`, divided by a running root mean square of the gradients."""

    _checks = (
        _check_tensor_rate,
        check_rate,
        not_negative("eps"),
        check_betas,
        not_negative("weight_decay"),
        _check_tensor_betas,
    )
    _later_options: ClassVar = {
        "amsgrad": False,
        "maximize": False,
        "capturable": False,
        "differentiable": False,
        "decoupled_weight_decay": False,
        "foreach": None,
        "fused": None,
    }
    _state: ClassVar = {"step": _step_count, "exp_avg": zeros, "exp_avg_sq": zeros, "max_exp_avg_sq": zeros}
    _state_conditions: ClassVar = {"max_exp_avg_sq": lambda group: group["amsgrad"]}
    _rule_state = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")
    _unpacked: ClassVar = {"betas": ("beta1", "beta2")}
    _refuses_sparse = "Adam does not support sparse gradients, please consider SparseAdam instead"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
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
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _states(self, params: list[Any], group: dict[str, Any]) -> list[dict[str, Any]]:
        states = super()._states(params, group)
        if group["differentiable"] and any(state["step"].requires_grad for state in states):
            raise RuntimeError("`requires_grad` is not supported for `step` in differentiable mode")
        return states

    @classmethod
    def _update(cls, options: Hyperparameters, params: list[Any], grads: list[Any], *state_lists: list[Any]) -> None:
        if not all(isinstance(step, Tensor) for step in state_lists[-1]):
            raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
        super()._update(options, params, grads, *state_lists)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        exp_avgs: list[Any],
        exp_avg_sqs: list[Any],
        max_exp_avg_sqs: list[Any],
        steps: list[Any],
    ) -> None:
        lr, beta1, beta2 = h.lr, h.beta1, h.beta2
        for i, param in enumerate(params):
            grad = -grads[i] if h.maximize else grads[i]
            mean, square, step_t = exp_avgs[i], exp_avg_sqs[i], steps[i]
            step_t += 1
            if h.weight_decay != 0:
                if h.decoupled_weight_decay:
                    param.mul_(1 - lr * h.weight_decay)
                else:
                    grad = grad.add(param, alpha=h.weight_decay)
            largest = max_exp_avg_sqs[i] if h.amsgrad else None
            if param.is_complex():
                grad, mean, square, param = (torch.view_as_real(t) for t in (grad, mean, square, param))
                largest = None if largest is None else torch.view_as_real(largest)
            mean.lerp_(grad, 1 - beta1)
            square.mul_(beta2).addcmul_(grad, grad, value=value_of(1 - beta2))
            if h.differentiable:
                _differentiable_update(h, param, mean.clone(), square.clone(), largest, step_t)
                continue
            step = step_t.item()
            step_size = lr / (1 - beta1**step)
            root = (1 - beta2**step) ** 0.5
            if largest is not None:
                square = torch.maximum(largest, square, out=largest)
            param.addcdiv_(mean, (square.sqrt() / root).add_(h.eps), value=value_of(-step_size))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        means: list[Any],
        squares: list[Any],
        largest: list[Any],
        steps: list[Any],
    ) -> None:
        if h.has_complex:
            view_as_real(params, grads, means, squares, largest)
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        if h.decoupled_weight_decay and h.weight_decay != 0:
            torch._foreach_mul_(params, 1 - h.lr * h.weight_decay)
        else:
            grads = with_decay(grads, params, h.weight_decay, own=h.maximize)
        torch._foreach_lerp_(means, grads, 1 - h.beta1)
        torch._foreach_mul_(squares, h.beta2)
        torch._foreach_addcmul_(squares, grads, grads, 1 - h.beta2)
        sizes = [-h.lr / (1 - h.beta1 ** step.item()) for step in steps]
        roots = [(1 - h.beta2 ** step.item()) ** 0.5 for step in steps]
        if h.amsgrad:
            torch._foreach_maximum_(largest, squares)
            squares = largest
        denominators = torch._foreach_sqrt(squares)
        torch._foreach_div_(denominators, roots)
        torch._foreach_add_(denominators, h.eps)
        torch._foreach_addcdiv_(params, means, denominators, sizes)

    @staticmethod
    def _fused(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        means: list[Any],
        squares: list[Any],
        largest: list[Any],
        steps: list[Any],
    ) -> None:
        torch._foreach_add_(steps, 1)
        run = torch._fused_adamw_ if h.decoupled_weight_decay else torch._fused_adam_
        run(
            params,
            grads,
            means,
            squares,
            largest,
            steps,
            lr=h.lr,
            beta1=value_of(h.beta1),
            beta2=value_of(h.beta2),
            weight_decay=h.weight_decay,
            eps=h.eps,
            amsgrad=h.amsgrad,
            maximize=h.maximize,
            grad_scale=h.grad_scale,
            found_inf=h.found_inf,
        )
        if h.found_inf is not None:
            torch._foreach_sub_(steps, [h.found_inf] * len(steps))


def _differentiable_update(h: Hyperparameters, param: Any, mean: Any, square: Any, largest: Any, step: Any) -> None:
    """The end of a step with every number a tensor, so that gradients reach the learning rate and the betas."""
    if largest is not None:
        largest.copy_(torch.maximum(largest.clone(), square))
        square = largest.clone()
    size = -(h.lr / (1 - h.beta1**step))
    root = (1 - h.beta2**step).sqrt()
    param.addcdiv_(mean, (square.sqrt() / (root * size)).add_(h.eps / size))


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
    beta1: float | Tensor,
    beta2: float | Tensor,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state."""
    options = Hyperparameters(
        foreach=foreach,
        capturable=capturable,
        differentiable=differentiable,
        fused=fused,
        grad_scale=grad_scale,
        found_inf=found_inf,
        has_complex=has_complex,
        decoupled_weight_decay=decoupled_weight_decay,
        amsgrad=amsgrad,
        beta1=beta1,
        beta2=beta2,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        maximize=maximize,
    )
    Adam._update(options, params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps)
