"""Adafactor: second moments of matrices kept as the product of a row and a column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._core.dtype import finfo
from .._core.tensor import Tensor
from ._common import by_dtype, evaluate, new_step_count, one_step, with_grad_mode
from .optimizer import Optimizer, Params

__all__ = ["Adafactor", "adafactor"]


class Adafactor(Optimizer):
    """Adaptive steps that need little memory."""

    __module__ = "mindtorch_v2.optim"

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not beta2_decay <= 0:
            raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
        if eps[0] is not None and not eps[0] >= 0:
            raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
        if not eps[1] >= 0:
            raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
        if not d >= 1:
            raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
        if not weight_decay >= 0:
            raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
        super().__init__(
            params,
            dict(lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach, maximize=maximize),
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group.setdefault("foreach", None)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        step, grad = new_step_count(), param.grad
        if grad.dim() < 2:
            return {"step": step, "variance": torch.zeros_like(grad)}
        rows, columns = list(grad.shape), list(grad.shape)
        rows[-1] = columns[-2] = 1
        return {"step": step, "row_var": grad.new_zeros(rows), "col_var": grad.new_zeros(columns)}

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            if any(p.is_complex() for p in group["params"] if p.grad is not None):
                raise RuntimeError("Adafactor does not support complex parameters")
            params, grads, states = self._collect(group, "Adafactor does not support sparse gradients")
            adafactor(
                params,
                grads,
                [s.get("row_var") for s in states],
                [s.get("col_var") for s in states],
                [s.get("variance") for s in states],
                [s["step"] for s in states],
                foreach=group["foreach"],
                d=group["d"],
                lr=group["lr"],
                beta2_decay=group["beta2_decay"],
                weight_decay=group["weight_decay"],
                eps1=group["eps"][0],
                eps2=group["eps"][1],
                maximize=group["maximize"],
            )
        return loss


def adafactor(
    params: list[Tensor],
    grads: list[Tensor],
    row_vars: list[Tensor | None],
    col_vars: list[Tensor | None],
    variances: list[Tensor | None],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state; a matrix has row_var and col_var, others variance."""
    if not params:
        return
    run = _foreach if foreach else _one_by_one
    run(
        params,
        grads,
        row_vars,
        col_vars,
        variances,
        state_steps,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps1=eps1,
        eps2=eps2,
        maximize=maximize,
    )


def _size(tensor: Any) -> float:
    """The root mean square of a tensor's elements."""
    return torch.linalg_vector_norm(tensor).item() / tensor.numel() ** 0.5


def _mean_square(grad: Any, dim: int) -> Any:
    return torch.linalg_vector_norm(grad, 2, (dim,), True).square_().div_(grad.size(dim))


def _one_by_one(
    params: list[Any],
    grads: list[Any],
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    steps: list[Any],
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    for i, param in enumerate(params):
        grad = -grads[i] if maximize else grads[i]
        steps[i] += 1
        step = steps[i].item()
        smallest = finfo(param.dtype).eps if eps1 is None else eps1
        weight = step**beta2_decay
        rate = max(eps2, _size(param)) * min(lr, 1 / step**0.5)
        if weight_decay != 0:
            param.mul_(1 - lr * weight_decay)
        if grad.dim() > 1:
            rows, columns = row_vars[i], col_vars[i]
            rows.lerp_(_mean_square(grad, -1), weight)
            columns.lerp_(_mean_square(grad, -2), weight)
            estimate = rows @ columns
            estimate.div_(rows.mean(dim=-2, keepdim=True).clamp_(min=smallest))
        else:
            variances[i].lerp_(grad * grad, weight)
            estimate = variances[i].clone()
        update = estimate.clamp_(min=smallest * smallest).rsqrt_()
        update.mul_(grad)
        param.add_(update, alpha=-rate / max(1.0, _size(update) / d))


def _foreach(
    params: list[Any],
    grads: list[Any],
    row_vars: list[Any],
    col_vars: list[Any],
    variances: list[Any],
    steps: list[Any],
    **options: Any,
) -> None:
    for is_matrix in (False, True):  # each kind in one go, vectors first
        chosen = [i for i, grad in enumerate(grads) if (grad.dim() > 1) == is_matrix]
        if not chosen:
            continue
        lists = [[each[i] for i in chosen] for each in (params, grads, row_vars, col_vars, variances, steps)]
        for group in by_dtype(*lists):
            _foreach_of_a_kind(is_matrix, *group, **options)


def _foreach_of_a_kind(
    is_matrix: bool,
    params: list[Any],
    grads: list[Any],
    rows: list[Any],
    columns: list[Any],
    variances: list[Any],
    steps: list[Any],
    *,
    d: float,
    lr: Any,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    smallest = finfo(params[0].dtype).eps if eps1 is None else eps1
    if maximize:
        grads = torch._foreach_neg(grads)
    torch._foreach_add_(steps, one_step(), alpha=1.0)
    counts = [step.item() for step in steps]
    weights = [count**beta2_decay for count in counts]
    rates = [max(eps2, _size(param)) * min(lr, 1 / count**0.5) for param, count in zip(params, counts, strict=True)]
    if weight_decay != 0:
        torch._foreach_mul_(params, 1 - lr * weight_decay)
    if is_matrix:
        for dim, kept in ((-1, rows), (-2, columns)):
            means = [torch.linalg_vector_norm(grad, 2, (dim,), True) for grad in grads]
            torch._foreach_mul_(means, means)
            torch._foreach_div_(means, [grad.size(dim) for grad in grads])
            torch._foreach_lerp_(kept, means, weights)
        estimates = [row @ column for row, column in zip(rows, columns, strict=True)]
        means = [row.mean(dim=-2, keepdim=True) for row in rows]
        torch._foreach_clamp_min_(means, smallest)
        torch._foreach_div_(estimates, means)
    else:
        torch._foreach_lerp_(variances, torch._foreach_mul(grads, grads), weights)
        estimates = [variance.clone() for variance in variances]
    torch._foreach_clamp_min_(estimates, smallest * smallest)
    torch._foreach_rsqrt_(estimates)
    torch._foreach_mul_(estimates, grads)
    torch._foreach_mul_(estimates, [-rate / max(1.0, _size(update) / d) for rate, update in zip(rates, estimates, strict=True)])
    torch._foreach_add_(params, estimates)
