"""The class of nested tensors, of which no tensor is an instance."""

from __future__ import annotations

from typing import Any, NoReturn

from ..._core.tensor import Tensor

__all__ = ["NestedTensor"]


class NestedTensor(Tensor):
    """For isinstance alone."""

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("torch.nested.NestedTensor: there are no nested tensors. See docs/compatibility.md")
