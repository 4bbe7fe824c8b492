"""Questions about a tensor, as functions: each is a method of the tensor, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._autograd.inference import is_inference
from .._core.tensor import Tensor
from .._dispatch.errors import type_name


def _asked(name: str, answer: Callable[[Tensor], bool]) -> Callable[[Any], bool]:
    """The function of that name, which takes tensors only."""

    def question(input: Any) -> bool:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return answer(input)

    question.__name__ = question.__qualname__ = name
    return question


def _never(_self: Tensor) -> bool:
    """Conjugates and negatives are computed at once: no tensor merely stands for one."""
    return False


def is_shared(self: Tensor) -> bool:
    """Whether other processes see the memory: never."""
    return False


def share_memory_(self: Tensor) -> Tensor:
    raise NotImplementedError(
        "share_memory_(): tensors whose memory several processes see are not supported; each process has its own copy"
    )


FUNCTIONS = {
    "is_conj": _asked("is_conj", _never),
    "is_neg": _asked("is_neg", _never),
    "is_signed": _asked("is_signed", lambda t: t.dtype.is_signed),
    "is_inference": _asked("is_inference", is_inference),
}
METHODS = {
    "is_conj": FUNCTIONS["is_conj"],
    "is_neg": FUNCTIONS["is_neg"],
    "is_shared": is_shared,
    "share_memory_": share_memory_,
}
