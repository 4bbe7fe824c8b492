"""SparseAdam: Adam for sparse gradients, which touches only the rows that have one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as torch
from .._autograd.grad_mode import no_grad
from ._common import check_betas, check_rate, evaluate, value_of
from .optimizer import Optimizer, Params

__all__ = ["SparseAdam"]


class SparseAdam(Optimizer):
    """Moments and parameters change only where a gradient was given."""

    def __init__(
        self,
        params: Params,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        check_rate(lr)
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        found = [
            [i, j] for i, group in enumerate(self.param_groups) for j, param in enumerate(group["params"]) if param.is_sparse
        ]
        if found:
            raise ValueError(f"Sparse params at indices {found}: SparseAdam requires dense parameter tensors")

    def _new_state(self, param: Any, group: dict[str, Any]) -> dict[str, Any]:
        return {"step": 0, "exp_avg": torch.zeros_like(param), "exp_avg_sq": torch.zeros_like(param)}

    @no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = evaluate(closure)
        for group in self.param_groups:
            params, grads, states = self._collect(group)
            if not all(grad.is_sparse for grad in grads):
                raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
            for param, grad, state in zip(params, grads, states, strict=True):
                state["step"] += 1
                _step(param, -grad if group["maximize"] else grad, state, group)
        return loss


def _step(param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
    grad = grad.coalesce()
    indices, values = grad._indices(), grad._values()
    if values.numel() == 0:
        return
    beta1, beta2 = group["betas"]

    def like_grad(data: Any) -> Any:
        return torch.sparse_coo_tensor(indices, data, grad.shape)

    # b * old + (1 - b) * new = old + (1 - b) * (new - old): only the change is needed, and only where a gradient is.
    old_mean = state["exp_avg"].sparse_mask(grad)._values()
    mean = values.sub(old_mean).mul_(1 - beta1)
    state["exp_avg"].add_(like_grad(mean))
    old_square = state["exp_avg_sq"].sparse_mask(grad)._values()
    square = values.pow(2).sub_(old_square).mul_(1 - beta2)
    state["exp_avg_sq"].add_(like_grad(square))
    numerator = mean.add_(old_mean)
    denominator = square.add_(old_square).sqrt_().add_(group["eps"])
    step = state["step"]
    rate = value_of(group["lr"]) * (1 - beta2**step) ** 0.5 / (1 - beta1**step)
    param.add_(like_grad(-rate * numerator.div_(denominator)))
