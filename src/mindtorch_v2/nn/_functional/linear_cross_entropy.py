"""Cross entropy of a linear map."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .loss import cross_entropy

__all__ = ["linear_cross_entropy"]


def _check(input: Any, linear_weight: Any, linear_bias: Any) -> None:
    size, places = tuple(input.shape), tuple(linear_weight.shape)
    if len(size) not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {len(size)}")
    if len(places) < 2:
        raise RuntimeError(f"expected linear_weight with dimensionality at least 2, got {len(places)}")
    if size[-1] != places[-1]:
        raise RuntimeError(
            f"expected equal input and linear_weight last dimensions (in_features), got {size[-1]} and "
            f"{places[-1]}, respectively"
        )
    if linear_bias is not None and tuple(linear_bias.shape) != places[:-1]:
        raise RuntimeError(f"expected linear_bias shape {places[:-1]}, got {tuple(linear_bias.shape)}")
    if len(places) > 2 and len(size) == 1:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {places} requires batched input, "
            f"(N, {size[-1]}), got unbatched input with shape {size}"
        )


def linear_cross_entropy(
    input: Any,
    linear_weight: Any,
    target: Any,
    *,
    linear_bias: Any = None,
    weight: Any = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    A weight of shape (C, d1, ..., in_features) gives logits (N, C, d1, ...).
    """
    _check(input, linear_weight, linear_bias)
    if ignore_index is not None and tuple(target.shape) == (*input.shape[:-1], *linear_weight.shape[:-1]):
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    if options is not None:
        warnings.warn("linear_cross_entropy: the loss is computed in one piece, whatever `options` say", stacklevel=2)
    places = tuple(linear_weight.shape[:-1])
    flat = linear_weight if len(places) == 1 else aten.reshape(linear_weight, (-1, linear_weight.shape[-1]))
    bias = linear_bias if linear_bias is None or linear_bias.dim() == 1 else aten.reshape(linear_bias, (-1,))
    logits = aten.linear(input, flat, bias)
    if len(places) > 1:
        logits = aten.view(logits, (*input.shape[:-1], *places))
    return cross_entropy(
        logits,
        target,
        weight=weight,
        reduction=reduction,
        ignore_index=-100 if ignore_index is None else ignore_index,
        label_smoothing=label_smoothing,
    )
