"""torch.autograd.grad_mode: blocks in which ops record nodes, or do not."""

from __future__ import annotations

from .._autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]
