"""torch.backends.mha: whether attention layers use their fused op in inference."""

from __future__ import annotations

from ..nn.modules.multihead_attention import FUSED as _FUSED


def get_fastpath_enabled() -> bool:
    """Whether `nn.MultiheadAttention` may compute self-attention in inference by one op."""
    return _FUSED["enabled"]


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fused op."""
    _FUSED["enabled"] = bool(value)
