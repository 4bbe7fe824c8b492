"""What distributions share: parameters brought to one shape, logits and probabilities, properties computed once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _surface as _torch
from .._core import dtype as dt
from .._core.tensor import Tensor

torch: Any = _torch

__all__ = ["broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits"]


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one shape."""
    if not all(isinstance(v, Tensor | int | float) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    kind = dt.get_default_dtype() if like is None else like.dtype
    return tuple(torch.broadcast_tensors([v if isinstance(v, Tensor) else torch.tensor(v, dtype=kind) for v in values]))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Any:
    """Samples of N(0, 1), drawn as torch draws them, so that seeds give the same numbers."""
    return torch.empty(shape, dtype=dtype, device=device).normal_()


def clamp_probs(probs: Any) -> Any:
    """Probabilities away from 0 and 1, so that their logarithms are finite."""
    eps = dt.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from log odds, or from unnormalized log probabilities along the last dim."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, -1)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits of probabilities, which are kept a little away from 0 and 1."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


class lazy_property:
    """A property that is computed once and then is an attribute."""

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        self.__doc__ = wrapped.__doc__

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        value = self.wrapped(instance)
        instance.__dict__[self.wrapped.__name__] = value
        return value
