"""Reductions of losses by name, and the older pair of flags that meant the same."""

from __future__ import annotations

import warnings

_NUMBERS = {"none": 0, "mean": 1, "sum": 2}


def get_enum(reduction: str) -> int:
    """The number that ops take for a reduction."""
    if reduction in _NUMBERS:
        return _NUMBERS[reduction]
    if reduction == "elementwise_mean":
        warnings.warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.", stacklevel=2)
        return 1
    raise ValueError(f"{reduction} is not a valid value for reduction")


def legacy_get_string(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> str:
    """The reduction that `size_average` and `reduce` stand for."""
    size_average = True if size_average is None else size_average
    reduce = True if reduce is None else reduce
    reduction = "none" if not reduce else "mean" if size_average else "sum"
    if emit_warning:
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=4
        )
    return reduction


def legacy_get_enum(size_average: bool | None, reduce: bool | None, emit_warning: bool = True) -> int:
    """The number of the reduction that `size_average` and `reduce` stand for."""
    return get_enum(legacy_get_string(size_average, reduce, emit_warning))


def chosen(reduction: str, size_average: bool | None, reduce: bool | None) -> int:
    """The number of the reduction that a loss function was asked for."""
    if size_average is not None or reduce is not None:
        reduction = legacy_get_string(size_average, reduce)
    return _NUMBERS[reduction] if reduction in _NUMBERS else get_enum(reduction)
