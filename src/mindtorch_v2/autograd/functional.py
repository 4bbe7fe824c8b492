"""torch.autograd.functional: Jacobians, Hessians and their products with vectors."""

from __future__ import annotations

from .._autograd.functional import _construct_standard_basis_for as _construct_standard_basis_for
from .._autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
