"""torch._subclasses.meta_utils: tensors on the meta device that stand for others."""

from __future__ import annotations

from .._autograd.graph import require_grad
from .._core.tensor import Tensor, make_meta
from ..utils.weak import WeakIdKeyDictionary

__all__ = ["MetaConverter"]


class MetaConverter:
    """Called with a tensor, it gives one on the meta device: the same one for the same tensor, as long as that lives."""

    def __init__(self) -> None:
        self.tensor_memo: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def __call__(self, t: Tensor) -> Tensor:
        """A tensor without memory, of the same shape, strides and dtype; it requires grad if `t` does."""
        known = self.tensor_memo.get(t)
        if known is None:
            array = t._array
            known = self.tensor_memo[t] = make_meta(array.shape, array.dtype, array.strides)
            if t.requires_grad:
                require_grad(known)
            known._is_param = t._is_param
        return known
