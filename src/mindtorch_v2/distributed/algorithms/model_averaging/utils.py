"""Means of parameters over processes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...._autograd.grad_mode import no_grad
from ...._core.tensor import Tensor
from ...._surface import cat
from ..._collectives import all_reduce
from ..._groups import group_or_default, is_member

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterator[Tensor], process_group: Any) -> None:
    """Make parameters their mean over a group, as one message."""
    if not is_member(process_group):
        return
    group, every = group_or_default(process_group), list(params)
    with no_grad():
        flat = cat([each.detach().reshape(-1) for each in every]).div_(group.size())
        all_reduce(flat, group=group)
        at = 0
        for each in every:
            each.copy_(flat[at : at + each.numel()].reshape(each.shape))
            at += each.numel()


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """Those of parameters, or of groups of an optimizer, that have a gradient."""
    found = []
    for each in params:
        if isinstance(each, Tensor):
            found.append(each)
        elif isinstance(each, dict):
            found += each["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Make parameters, or those of an optimizer's groups, their mean over a group if they have a gradient."""
    average_parameters(iter(get_params_to_average(params)), process_group)
