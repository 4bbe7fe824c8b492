"""Tensors that stand for others while a program is traced: for isinstance, since nothing is traced that way."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.tensor import Tensor

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class FakeTensor(Tensor):
    """The class of such tensors, of which no tensor is an instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("torch._subclasses.FakeTensor: use tensors on the meta device")


class FakeTensorMode:
    """Would make such tensors of all inside a block."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("torch._subclasses.FakeTensorMode: use tensors on the meta device")


def is_fake(x: Any) -> bool:
    """Whether a tensor has no data because a program is traced: never."""
    return False
