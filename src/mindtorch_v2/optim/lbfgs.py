"""LBFGS: quasi-Newton steps from the last few changes of parameters and gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .. import _surface as torch
from .._autograd.grad_mode import enable_grad, no_grad
from .._core.tensor import Tensor
from ._common import value_of
from ._line_search import strong_wolfe
from ._options import check_rate
from .optimizer import Optimizer, Params

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Needs a closure that computes the loss again, as one step evaluates it several times.

    All parameters share one state, so there is one parameter group. `line_search_fn` is None or "strong_wolfe".
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        if max_eval is None:
            max_eval = max_iter * 5 // 4
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        check_rate(defaults)
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    # ------------------------------------------------------------------ all parameters as one vector

    def _flat_grad(self) -> Any:
        views = []
        for param in self._params:
            if param.grad is None:
                view = param.new_zeros(param.numel())
            elif param.grad.is_sparse:
                view = param.grad.to_dense().view(-1)
            else:
                view = param.grad.reshape(-1)
            views.append(torch.view_as_real(view).view(-1) if view.is_complex() else view)
        return torch.cat(views, 0)

    def _move(self, rate: Any, direction: Any) -> None:
        offset = 0
        for each in self._params:
            param = torch.view_as_real(each) if each.is_complex() else each
            count = param.numel()
            param.add_(direction[offset : offset + count].view_as(param), alpha=rate)
            offset += count

    def _values(self) -> list[Any]:
        return [param.clone() for param in self._params]

    def _restore(self, values: list[Any]) -> None:
        for param, value in zip(self._params, values, strict=True):
            param.copy_(value)

    def _evaluate_at(self, closure: Callable[[], Any], start: list[Any], direction: Any, rate: float) -> Any:
        """Loss and gradient a way along the direction; the parameters come back."""
        self._move(rate, direction)
        loss = float(closure())
        grad = self._flat_grad()
        self._restore(start)
        return loss, grad

    # ------------------------------------------------------------------ a step

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Several iterations, each along a new direction; returns the loss before the first."""
        evaluate = enable_grad()(closure)
        group = self.param_groups[0]
        lr = value_of(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = evaluate()
        loss = float(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._flat_grad()
        if grad.abs().max() <= group["tolerance_grad"]:
            return first_loss

        memory = _Memory(state, group["history_size"])
        iterations = 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            direction = memory.direction(grad, first=state["n_iter"] == 1)
            memory.remember(grad, loss)
            # The first direction is the gradient itself, whose length says nothing about how far to go.
            length = float(grad.abs().sum()) if state["n_iter"] == 1 else 0.0
            rate = min(1.0, 1.0 / length) * lr if length else lr
            slope = grad.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            spent = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start = self._values()
                look = partial(self._evaluate_at, evaluate, start, direction)
                loss, grad, rate, spent = strong_wolfe(look, rate, direction, loss, grad, slope)
                self._move(rate, direction)
                is_optimal = grad.abs().max() <= group["tolerance_grad"]
            else:
                self._move(rate, direction)
                is_optimal = False
                if iterations != group["max_iter"]:
                    # After the last iteration the gradient is not used.
                    loss = float(evaluate())
                    grad = self._flat_grad()
                    is_optimal = grad.abs().max() <= group["tolerance_grad"]
                    spent = 1
            evaluations += spent
            state["func_evals"] += spent
            memory.moved(rate, direction)
            if iterations == group["max_iter"] or evaluations >= group["max_eval"] or is_optimal:
                break
            if direction.mul(rate).abs().max() <= group["tolerance_change"]:
                break
            if abs(loss - memory.previous_loss) < group["tolerance_change"]:
                break
        memory.save(state)
        return first_loss


class _Memory:
    """The last changes of gradient and parameters, which stand for the curvature."""

    def __init__(self, state: dict[str, Any], size: int) -> None:
        self.size = size
        self.last_direction: Any = state.get("d")
        self.last_rate: Any = state.get("t")
        self.changes: list[Any] = state.get("old_dirs", [])  # of the gradient
        self.steps: list[Any] = state.get("old_stps", [])  # of the parameters
        self.weights: list[Any] = state.get("ro", [])
        self.diagonal = state.get("H_diag")
        self.previous_grad: Any = state.get("prev_flat_grad")
        self.previous_loss: Any = state.get("prev_loss")

    def direction(self, grad: Any, first: bool) -> Any:
        """Where to go from here: minus the gradient times the approximate inverse of the Hessian."""
        if first:
            self.changes, self.steps, self.weights, self.diagonal = [], [], [], 1
            return grad.neg()
        change = grad.sub(self.previous_grad)
        step = self.last_direction.mul(self.last_rate)
        curvature = change.dot(step)
        if curvature > 1e-10:
            if len(self.changes) == self.size:
                for kept in (self.changes, self.steps, self.weights):
                    kept.pop(0)
            self.changes.append(change)
            self.steps.append(step)
            self.weights.append(1.0 / curvature)
            self.diagonal = curvature / change.dot(change)
        shares: list[Any] = [None] * len(self.changes)
        result = grad.neg()
        for i in reversed(range(len(self.changes))):
            shares[i] = self.steps[i].dot(result) * self.weights[i]
            result.add_(self.changes[i], alpha=-shares[i].item())
        result = result.mul(self.diagonal)
        for i, change in enumerate(self.changes):
            share = change.dot(result) * self.weights[i]
            result.add_(self.steps[i], alpha=(shares[i] - share).item())
        return result

    def remember(self, grad: Any, loss: float) -> None:
        """The gradient and the loss before a move."""
        if self.previous_grad is None:
            self.previous_grad = grad.clone()
        else:
            self.previous_grad.copy_(grad)
        self.previous_loss = loss

    def moved(self, rate: float, direction: Any) -> None:
        self.last_rate, self.last_direction = rate, direction

    def save(self, state: dict[str, Any]) -> None:
        state.update(
            d=self.last_direction,
            t=self.last_rate,
            old_dirs=self.changes,
            old_stps=self.steps,
            ro=self.weights,
            H_diag=self.diagonal,
            prev_flat_grad=self.previous_grad,
            prev_loss=self.previous_loss,
        )
