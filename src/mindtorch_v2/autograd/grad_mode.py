"""torch.autograd.grad_mode: blocks in which ops record nodes, or do not."""

from __future__ import annotations

from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled
from .._lazy_imports import lazy_exports as _lazy_exports

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
