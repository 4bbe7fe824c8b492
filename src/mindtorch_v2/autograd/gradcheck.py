"""torch.autograd.gradcheck: derivatives against differences of function values."""

from __future__ import annotations

from .._autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]
