"""torch._subclasses.functional_tensor: tensors of functionalized programs, for isinstance: no program is functionalized."""

from __future__ import annotations

from typing import Any, NoReturn

from .._core.tensor import Tensor

__all__ = ["FunctionalTensor", "mb_unwrap_functional_tensor"]


class FunctionalTensor(Tensor):
    """The class of such tensors, of which no tensor is an instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("torch._subclasses.FunctionalTensor: programs run eagerly. See docs/compatibility.md")


def mb_unwrap_functional_tensor(tensor: Tensor) -> Tensor:
    """The tensor inside of a functional one: itself."""
    return tensor
