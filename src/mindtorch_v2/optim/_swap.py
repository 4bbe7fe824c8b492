"""Stepping an optimizer on other parameters and other state for a while."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

from .._core.restoring import Actions, restoring
from .._core.tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@restoring
def swap_in_optimizer_params_and_state(
    undo: Actions, optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> None:
    """Inside the block, the optimizer has these parameters (in its own order) and this state, laid out as state_dict().

    What the block changes in place in the tensors it was given stays changed; the optimizer itself comes back.
    """
    groups, state = optimizer.param_groups, optimizer.state
    given = list(swapin_parameters.values())
    count = sum(len(group["params"]) for group in groups)
    if len(given) != count:
        raise ValueError(f"expected {count} parameters, one for each of the optimizer's, but got {len(given)}")
    saved = swapin_optim_state["param_groups"]
    if [len(group["params"]) for group in saved] != [len(group["params"]) for group in groups]:
        raise ValueError("swapin_optim_state has other parameter groups than the optimizer")
    numbers = [number for group in saved for number in group["params"]]
    params = dict(zip(numbers, given, strict=True))
    undo.append(partial(setattr, optimizer, "param_groups", groups))
    undo.append(partial(setattr, optimizer, "state", state))
    optimizer.param_groups = [{**group, "params": [params[number] for number in group["params"]]} for group in saved]
    optimizer.state = defaultdict(
        dict,
        {
            params.get(key, key): dict(value) if isinstance(value, dict) else value
            for key, value in swapin_optim_state["state"].items()
        },
    )
