"""Predicates of a tensor (`is_conj`, `is_signed` ...) as functions and methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._autograd.inference import is_inference
from .._core.keys import CONJUGATED, NEGATED, SPARSE
from .._core.tensor import Tensor, make_tensor
from .._core.untyped_storage import untyped_storage
from .._dispatch.errors import type_name
from .._dispatch.registry import composite


def _predicate(name: str, test: Callable[[Tensor], bool]) -> Callable[[Any], bool]:
    """A public function for a predicate; TypeError for what is no tensor."""

    def predicate(input: Any) -> bool:
        if not isinstance(input, Tensor):
            raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type_name(input)}")
        return test(input)

    predicate.__name__ = predicate.__qualname__ = name
    return predicate


def is_shared(self: Tensor) -> bool:
    """Whether other processes can see the memory, since `share_memory_` or since it is a file's."""
    if self._keys & SPARSE:
        return False
    return untyped_storage(self).is_shared()


def share_memory_(self: Tensor) -> Tensor:
    """Move the memory, and with it that of all views, to where other processes can see it; the tensor itself."""
    if self._keys & SPARSE:
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")
    untyped_storage(self).share_memory_()
    return self


@composite("_assert_async(Tensor self) -> ()", nondiff=True, samples=lambda make: [])
def assert_async(self: Tensor) -> None:
    """RuntimeError unless the only element is not zero."""
    if not bool(self):
        raise RuntimeError("Expected Tensor with single nonzero value, but got zero")


@composite("_assert_async.msg(Tensor self, str assert_msg) -> ()", nondiff=True, samples=lambda make: [])
def assert_async_msg(self: Tensor, assert_msg: str) -> None:
    """RuntimeError with a message unless the only element is not zero."""
    if not bool(self):
        raise RuntimeError(assert_msg)


@composite("_shape_as_tensor(Tensor self) -> Tensor", nondiff=True, samples=lambda make: [])
def shape_as_tensor(self: Tensor) -> Tensor:
    """The sizes of a tensor as an int64 tensor."""
    return make_tensor(np.array(self.shape, np.int64))


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
