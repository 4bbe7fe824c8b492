"""torch.autograd.forward_ad: forward-mode AD, which computes tangents along with values."""

from __future__ import annotations

from typing import Any

from .._autograd import forward_ad as _implementation
from .._autograd.forward_ad import (
    UnpackedDualTensor,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)
from .._autograd.forward_ad import _is_fwd_grad_enabled as _is_fwd_grad_enabled
from .._autograd.forward_ad import _set_fwd_grad_enabled as _set_fwd_grad_enabled

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


def __getattr__(name: str) -> Any:
    # The number of the open level changes.
    if name == "_current_level":
        return _implementation.current_level()
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
