"""torch.autograd.gradcheck: gradients compared with finite differences."""

from __future__ import annotations

from .._autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
