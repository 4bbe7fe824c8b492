"""SparseAdam: Adam for sparse gradients, which touches only the rows that have one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from .. import _surface as torch
from .._core.tensor import Tensor
from ._common import value_of
from ._declarative import DeclarativeOptimizer
from ._options import check_betas, check_rate, zeros
from .optimizer import Params

__all__ = ["SparseAdam"]


def _check_eps(options: Mapping[str, Any]) -> None:
    if not options["eps"] > 0:
        raise ValueError(f"Invalid epsilon value: {options['eps']}")


def _step_count(param: Any, group: dict[str, Any]) -> int:
    return 0


class SparseAdam(DeclarativeOptimizer):
    """Moments and parameters change only where a gradient was given."""

    _checks = (check_rate, _check_eps, check_betas)
    _state: ClassVar = {"step": _step_count, "exp_avg": zeros, "exp_avg_sq": zeros}
    _counters = ()  # steps are a Python number

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        sparse_params = [
            [i, j] for i, group in enumerate(self.param_groups) for j, param in enumerate(group["params"]) if param.is_sparse
        ]
        if sparse_params:
            raise ValueError(f"Sparse params at indices {sparse_params}: SparseAdam requires dense parameter tensors")

    def _step_group(self, group: dict[str, Any]) -> None:
        """The step is counted by a Python int in the state, so the rule takes the state itself."""
        params, grads = self._with_grads(group)
        states = self._states(params, group)
        if not all(grad.is_sparse for grad in grads):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        for param, grad, state in zip(params, grads, states, strict=True):
            state["step"] += 1
            _update(param, -grad if group["maximize"] else grad, state, group)


def _update(param: Any, grad: Any, state: dict[str, Any], group: dict[str, Any]) -> None:
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
