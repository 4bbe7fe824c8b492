"""torch.nn.attention.bias: causal masks of attention that are named, not stored."""

from __future__ import annotations

import warnings
from enum import IntEnum
from typing import Any

from ... import _surface as torch
from ..._core.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """To which corner of the scores a causal mask is aligned."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask for `scaled_dot_product_attention(attn_mask=)`, by its corner and lengths."""

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant)}")
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn("Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2)

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a tensor of bools."""
        shift = 0 if self.variant == CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        ones = torch.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=torch.bool)
        return torch.tril(ones, diagonal=shift)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None) -> Any:
        named = dict(kwargs or {})
        if func is not torch.scaled_dot_product_attention:
            return super().__torch_function__(func, types, args, named)
        if named.get("is_causal") or (len(args) > 5 and args[5]):
            raise ValueError("CausalBias should not be used with causal=True")
        if isinstance(named.get("attn_mask"), cls):
            named["attn_mask"] = named["attn_mask"]._materialize(args[0].device if args else named["query"].device)
        else:
            args = (*args[:3], args[3]._materialize(args[0].device), *args[4:])
        return func(*args, **named)

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return repr(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """The mask by which a query sees the keys up to its own position, counted from the first of both."""
    if len(size) != 2:
        raise AssertionError("causal_upper_left only supports 2D tensors")
    return CausalBias(CausalVariant.UPPER_LEFT, *size)


def causal_lower_right(*size: int) -> CausalBias:
    """The mask by which a query sees the keys up to its own position, counted from the last of both."""
    if len(size) != 2:
        raise AssertionError("causal_lower_right only supports 2D tensors")
    return CausalBias(CausalVariant.LOWER_RIGHT, *size)
