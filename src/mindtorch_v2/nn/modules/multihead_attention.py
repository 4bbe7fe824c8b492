"""Multi-head attention as a layer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from ..._autograd.grad_mode import is_grad_enabled
from ..._core.keys import AUTOGRAD
from ..._dispatch.interception import function_mode_is_active, subclass_types
from ..._dispatch.registry import aten
from .. import init
from .._functional import attention as F
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

if TYPE_CHECKING:
    from ..._core.dtype import dtype as DType
    from ...types import Device

__all__ = ["MultiheadAttention"]

# Whether the fused op may be used; set by `torch.backends.mha.set_fastpath_enabled`.
FUSED = {"enabled": True}


def _package() -> Any:
    """The package itself: functions are called by their public names, where a program may have put others."""
    return import_module(__name__.split(".", 1)[0])


class MultiheadAttention(Module):
    """Attends from several subspaces at once and joins the results.

    Inputs are (length, batch, width), with `batch_first` (batch, length, width), or (length, width) without a batch.
    """

    __module__ = "mindtorch_v2.nn.modules.activation"

    __constants__: ClassVar[list[str]] = ["batch_first"]

    bias_k: Any
    bias_v: Any

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape: int) -> Any:
            return Parameter(aten.empty(shape, device=device, dtype=dtype))

        if self._qkv_same_embed_dim:
            self.in_proj_weight = parameter(3 * embed_dim, embed_dim)
            self.register_parameter("q_proj_weight", None)
            self.register_parameter("k_proj_weight", None)
            self.register_parameter("v_proj_weight", None)
        else:
            self.q_proj_weight = parameter(embed_dim, embed_dim)
            self.k_proj_weight = parameter(embed_dim, self.kdim)
            self.v_proj_weight = parameter(embed_dim, self.vdim)
            self.register_parameter("in_proj_weight", None)
        if bias:
            self.in_proj_bias = parameter(3 * embed_dim)
        else:
            self.register_parameter("in_proj_bias", None)
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if add_bias_kv:
            self.bias_k = parameter(1, 1, embed_dim)
            self.bias_v = parameter(1, 1, embed_dim)
        else:
            self.bias_k = self.bias_v = None
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        if self._qkv_same_embed_dim:
            init.xavier_uniform_(self.in_proj_weight)
        else:
            init.xavier_uniform_(self.q_proj_weight)
            init.xavier_uniform_(self.k_proj_weight)
            init.xavier_uniform_(self.v_proj_weight)
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        if self.bias_k is not None:
            init.xavier_normal_(self.bias_k)
        if self.bias_v is not None:
            init.xavier_normal_(self.bias_v)

    def __setstate__(self, state: Any) -> None:
        state.setdefault("_qkv_same_embed_dim", True)
        super().__setstate__(state)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """(output, attention weights); the weights are None unless `need_weights`, one per head unless averaged."""
        if self._takes_fused_op(query, key, value, key_padding_mask, attn_mask):
            return self._fused_attention(query, key_padding_mask, need_weights, attn_mask, average_attn_weights)
        if self.batch_first and query.dim() == 3:
            # Inputs that are one object stay one, which lets the projections be computed together.
            shared_kv, shared_q = key is value, query is key
            query = aten.transpose(query, 1, 0)
            key = query if shared_q else aten.transpose(key, 1, 0)
            value = key if shared_kv else aten.transpose(value, 1, 0)
            swapped = True
        else:
            swapped = False
        separate: dict[str, Any] = (
            {}
            if self._qkv_same_embed_dim
            else {
                "use_separate_proj_weight": True,
                "q_proj_weight": self.q_proj_weight,
                "k_proj_weight": self.k_proj_weight,
                "v_proj_weight": self.v_proj_weight,
            }
        )
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
            **separate,
        )
        return (aten.transpose(output, 1, 0) if swapped else output), weights

    def _takes_fused_op(self, query: Any, key: Any, value: Any, key_padding_mask: Any, attn_mask: Any) -> bool:
        """Whether one op computes it all: self-attention of a batch in inference, with masks of bools, as in torch."""
        if self.training or not self.batch_first or query is not key or key is not value or query.dim() != 3:
            return False
        weight, bias = self.in_proj_weight, self.in_proj_bias
        if not FUSED["enabled"] or weight is None or bias is None or not query.dtype == weight.dtype == bias.dtype:
            return False
        if self.num_heads % 2 or self.bias_k is not None or self.bias_v is not None or self.add_zero_attn:
            return False
        if any(mask is not None and mask.is_floating_point() for mask in (key_padding_mask, attn_mask)):
            return False
        tensors = (query, weight, bias, self.out_proj.weight, self.out_proj.bias)
        if any(tensor.device.type != "cpu" for tensor in tensors) or _package().is_autocast_enabled("cpu"):
            return False
        if is_grad_enabled() and any(tensor._keys & AUTOGRAD for tensor in tensors):
            return False
        return not (subclass_types(tensors) or function_mode_is_active())

    def _fused_attention(
        self, query: Any, key_padding_mask: Any, need_weights: bool, attn_mask: Any, average_attn_weights: bool
    ) -> Any:
        padding = F._canonical_mask(key_padding_mask, "key_padding_mask", F._none_or_dtype(attn_mask), "attn_mask", query.dtype)
        mask, kind = self.merge_masks(F._canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False), padding, query)
        return _package()._native_multi_head_attention(
            query,
            query,
            query,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.out_proj.weight,
            self.out_proj.bias,
            mask,
            need_weights,
            average_attn_weights,
            kind,
        )

    def merge_masks(self, attn_mask: Any, key_padding_mask: Any, query: Any) -> tuple[Any, int | None]:
        """One mask (batch, heads, length, length) from both, and its type: 0 attention, 1 padding, 2 both, or None."""
        kind: int | None = None
        merged = None
        if key_padding_mask is not None:
            kind, merged = 1, key_padding_mask
        if attn_mask is not None:
            batch, length, _ = query.shape
            kind = 2
            spread = (
                aten.view(attn_mask, (batch, -1, length, length))
                if attn_mask.dim() == 3
                else aten.expand(aten.view(attn_mask, (1, 1, length, length)), (batch, self.num_heads, -1, -1))
            )
            merged = spread
            if key_padding_mask is not None:
                padding = aten.expand(aten.view(key_padding_mask, (batch, 1, 1, length)), (-1, self.num_heads, -1, -1))
                merged = aten.add(spread, padding)
        return merged, kind
