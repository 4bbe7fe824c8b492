"""Cross entropy of a linear map."""

from __future__ import annotations

import warnings
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .loss import cross_entropy

__all__ = ["linear_cross_entropy"]


def linear_cross_entropy(input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
                         reduction: str = "mean", ignore_index: int | None = None, label_smoothing: float = 0.0,
                         options: Any = None) -> Tensor:
    """cross_entropy(linear(input, linear_weight, linear_bias), target).

    A weight of shape (C, d1, ..., in_features) gives logits (N, C, d1, ...).
    """
    if options is not None:
        warnings.warn("linear_cross_entropy: the loss is computed in one piece, whatever `options` say", stacklevel=2)
    places = tuple(linear_weight.shape[:-1])
    flat = linear_weight if len(places) == 1 else aten.reshape(linear_weight, (-1, linear_weight.shape[-1]))
    bias = linear_bias if linear_bias is None or linear_bias.dim() == 1 else aten.reshape(linear_bias, (-1,))
    logits = aten.linear(input, flat, bias)
    if len(places) > 1:
        logits = aten.view(logits, (*input.shape[:-1], *places))
    return cross_entropy(logits, target, weight=weight, reduction=reduction,
                         ignore_index=-100 if ignore_index is None else ignore_index, label_smoothing=label_smoothing)
