"""torch.while_loop: a loop whose state is passed from round to round, run as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.tensor import Tensor
from .._dynamo.exc import UncapturedHigherOrderOpError
from ..utils._pytree import tree_flatten

__all__ = ["while_loop"]


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """The state after `body_fn` has run as long as `cond_fn` holds: each takes the state, a tuple of trees of tensors.

    `cond_fn` returns a bool or a tensor of one; `body_fn` returns a state of the same structure, shapes and dtypes.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, tuple | list):
        raise RuntimeError(
            "Expect carried_inputs to be a tuple of possibly nested dict/list/tuple that only consists of tensor or int "
            f"leaves, but got {carried_inputs}."
        )
    state = tuple(carried_inputs)
    leaves, structure = tree_flatten(state)
    while _holds(cond_fn(*state)):
        state = body_fn(*state)
        if not isinstance(state, tuple | list):
            raise UncapturedHigherOrderOpError(f"body_fn should return a tuple but got {type(state)}")
        state = tuple(state)
        following, again = tree_flatten(state)
        if again != structure:
            raise UncapturedHigherOrderOpError(
                "Expected body_fn_output and carried_inputs to have same number of outputs but got "
                f"lhs:{following} and rhs:{leaves}"
            )
        for i, (before, after) in enumerate(zip(leaves, following, strict=True)):
            if not isinstance(before, Tensor):
                continue
            for what in ("shape", "dtype"):
                wanted, found = getattr(before, what), getattr(after, what, None)
                if found != wanted:
                    raise UncapturedHigherOrderOpError(
                        "Expected body_fn_output and carried_inputs to have same metadata but found:\n"
                        f"pair[{i}] differ in '{what}: {found} vs {wanted}'"
                    )
    return state


def _holds(pred: Any) -> bool:
    if not isinstance(pred, bool) and not (isinstance(pred, Tensor) and pred.numel() == 1):
        raise UncapturedHigherOrderOpError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return bool(pred)
