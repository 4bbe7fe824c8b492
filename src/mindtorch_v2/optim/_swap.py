"""Stepping an optimizer on other parameters and other state for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .._core.tensor import Tensor
from .optimizer import Optimizer

__all__ = ["swap_in_optimizer_params_and_state"]


@contextmanager
def swap_in_optimizer_params_and_state(
    optimizer: Optimizer, swapin_parameters: dict[str, Tensor], swapin_optim_state: dict[str, Any]
) -> Iterator[None]:
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
    optimizer.param_groups = [{**group, "params": [params[number] for number in group["params"]]} for group in saved]
    optimizer.state = defaultdict(
        dict,
        {
            params.get(key, key): dict(value) if isinstance(value, dict) else value
            for key, value in swapin_optim_state["state"].items()
        },
    )
    try:
        yield
    finally:
        optimizer.param_groups, optimizer.state = groups, state
