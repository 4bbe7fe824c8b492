"""Predicates of a tensor (`is_conj`, `is_signed` ...) as functions and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.inference import is_inference
from .._core.keys import CONJUGATED, NEGATED
from .._core.tensor import Tensor
from .._dispatch.errors import type_name


def _predicate(name: str, test: Callable[[Tensor], bool]) -> Callable[[Any], bool]:
    """A public function for a predicate; TypeError for what is no tensor."""

    def predicate(input: Any) -> bool:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return test(input)

    predicate.__name__ = predicate.__qualname__ = name
    return predicate


def is_shared(self: Tensor) -> bool:
    """Whether the memory is shared between processes, which is not supported."""
    return False


def share_memory_(self: Tensor) -> Tensor:
    raise NotImplementedError(
        "share_memory_(): tensors whose memory several processes see are not supported; each process has its own copy"
    )


FUNCTIONS = {
    "is_conj": _predicate("is_conj", lambda t: t._keys & CONJUGATED != 0),
    "is_neg": _predicate("is_neg", lambda t: t._keys & NEGATED != 0),
    "is_signed": _predicate("is_signed", lambda t: t.dtype.is_signed),
    "is_inference": _predicate("is_inference", is_inference),
}
METHODS = {
    "is_conj": FUNCTIONS["is_conj"],
    "is_neg": FUNCTIONS["is_neg"],
    "is_shared": is_shared,
    "share_memory_": share_memory_,
}
