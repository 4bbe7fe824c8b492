"""Adafactor: second moments of matrices kept as the product of a row and a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.dtype import finfo
from .._core.tensor import Tensor
from ._common import by_dtype, one_step
from ._declarative import DeclarativeOptimizer, Hyperparameters
from ._options import check_one_element_rate, step_count
from .optimizer import Params

__all__ = ["Adafactor", "adafactor"]


def _check_ranges(options: Mapping[str, Any]) -> None:
    if not options["lr"] >= 0:
        raise ValueError(f"Learning rate should be >= 0 but is: {options['lr']}")
    if not options["beta2_decay"] <= 0:
        raise ValueError(f"beta2_decay should be <= 0 but is: {options['beta2_decay']}")
    eps = options["eps"]
    if eps[0] is not None and not eps[0] >= 0:
        raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
    if not eps[1] >= 0:
        raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
    if not options["d"] >= 1:
        raise ValueError(f"Clipping threshold d should be >= 1 but is: {options['d']}")
    if not options["weight_decay"] >= 0:
        raise ValueError(f"weight_decay should be >= 0 but is: {options['weight_decay']}")


def _size(tensor: Any) -> float:
    """The root mean square of a tensor's elements."""
    return torch.linalg_vector_norm(tensor).item() / tensor.numel() ** 0.5


def _mean_square(grad: Any, dim: int) -> Any:
    return torch.linalg_vector_norm(grad, 2, (dim,), True).square_().div_(grad.size(dim))


class Adafactor(DeclarativeOptimizer):
    """Adaptive steps that need little memory."""

    __module__ = "mindtorch_v2.optim"

    _checks = (check_one_element_rate, _check_ranges)
    _later_options: ClassVar = {"foreach": None}
    _rule_state = ("row_var", "col_var", "variance", "step")
    _unpacked: ClassVar = {"eps": ("eps1", "eps2")}
    _refuses_complex = "Adafactor does not support complex parameters"
    _refuses_sparse = "Adafactor does not support sparse gradients"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        step, grad = step_count(param, group), param.grad
        if grad.dim() < 2:
            return {"step": step, "variance": torch.zeros_like(grad)}
        rows, columns = list(grad.shape), list(grad.shape)
        rows[-1] = columns[-2] = 1
        return {"step": step, "row_var": grad.new_zeros(rows), "col_var": grad.new_zeros(columns)}

    def _state_lists(self, states: list[dict[str, Any]], group: dict[str, Any]) -> list[list[Any]]:
        """With None where a matrix has no variance, or another tensor no row_var and col_var."""
        return [[state.get(name) for state in states] for name in self._rule_state]

    @classmethod
    def _update(cls, options: Hyperparameters, params: list[Any], grads: list[Any], *state_lists: list[Any]) -> None:
        if not options.foreach:
            super()._update(options, params, grads, *state_lists)
            return
        lists = (params, grads, *state_lists)
        for is_matrix in (False, True):  # the foreach rule takes tensors of one kind, vectors first
            chosen = [i for i, grad in enumerate(grads) if (grad.dim() > 1) == is_matrix]
            if chosen:
                for tensors in by_dtype(*[[each[i] for i in chosen] for each in lists]):
                    cls._multi_tensor(options, is_matrix, *tensors)

    @staticmethod
    def _single_tensor(
        h: Hyperparameters,
        params: list[Any],
        grads: list[Any],
        row_vars: list[Any],
        col_vars: list[Any],
        variances: list[Any],
        steps: list[Any],
    ) -> None:
        for i, param in enumerate(params):
            grad = -grads[i] if h.maximize else grads[i]
            steps[i] += 1
            step = steps[i].item()
            smallest = finfo(param.dtype).eps if h.eps1 is None else h.eps1
            weight = step**h.beta2_decay
            rate = max(h.eps2, _size(param)) * min(h.lr, 1 / step**0.5)
            if h.weight_decay != 0:
                param.mul_(1 - h.lr * h.weight_decay)
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
            param.add_(update, alpha=-rate / max(1.0, _size(update) / h.d))

    @staticmethod
    def _multi_tensor(
        h: Hyperparameters,
        is_matrix: bool,
        params: list[Any],
        grads: list[Any],
        rows: list[Any],
        columns: list[Any],
        variances: list[Any],
        steps: list[Any],
    ) -> None:
        smallest = finfo(params[0].dtype).eps if h.eps1 is None else h.eps1
        if h.maximize:
            grads = torch._foreach_neg(grads)
        torch._foreach_add_(steps, one_step(), alpha=1.0)
        counts = [step.item() for step in steps]
        weights = [count**h.beta2_decay for count in counts]
        rates = [max(h.eps2, _size(param)) * min(h.lr, 1 / count**0.5) for param, count in zip(params, counts, strict=True)]
        if h.weight_decay != 0:
            torch._foreach_mul_(params, 1 - h.lr * h.weight_decay)
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
        torch._foreach_mul_(
            estimates, [-rate / max(1.0, _size(update) / h.d) for rate, update in zip(rates, estimates, strict=True)]
        )
        torch._foreach_add_(params, estimates)


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
    lr: float | Tensor,
    beta2_decay: float,
    weight_decay: float,
    eps1: float | None,
    eps2: float,
    maximize: bool,
) -> None:
    """One step on lists of parameters, gradients and their state; a matrix has row_var and col_var, others variance."""
    options = Hyperparameters(
        foreach=foreach,
        d=d,
        lr=lr,
        beta2_decay=beta2_decay,
        weight_decay=weight_decay,
        eps1=eps1,
        eps2=eps2,
        maximize=maximize,
    )
    Adafactor._update(options, params, grads, row_vars, col_vars, variances, state_steps)
