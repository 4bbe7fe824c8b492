"""torch.utils._python_dispatch: modes that see every op below autograd."""

from __future__ import annotations

from .._dispatch.interception import TorchDispatchMode

__all__ = ["TorchDispatchMode"]
