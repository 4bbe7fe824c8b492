"""Ready-made parametrizations: weight norm, spectral norm, orthogonal matrices."""

# ruff: noqa: N803, N806  A, Q and X are the names of the math
from __future__ import annotations

from enum import Enum, auto
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._dispatch.registry import aten
from .._functional.normalization import normalize
from ..modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module
from . import parametrize

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


# ---------------------------------------------------------------- weight norm


class _WeightNorm(Module):
    """weight = g * v / |v|, with norms over all dims but one."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return aten._weight_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        return aten.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Any:
    """Split a weight into its length (original0) and its direction (original1)."""
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_old_names(state_dict: Any, prefix: str, *_: Any) -> None:
        old = f"{prefix}{name}_g", f"{prefix}{name}_v"
        if old[0] in state_dict and old[1] in state_dict:
            for i, key in enumerate(old):
                state_dict[f"{prefix}parametrizations.{name}.original{i}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_old_names)
    return module


# ---------------------------------------------------------------- spectral norm


class _SpectralNorm(Module):
    """The weight divided by its largest singular value, which power iterations follow."""

    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}")
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._reshape_weight_to_matrix(weight)
            height, width = matrix.size()
            u = aten.normal_(aten.new_empty(matrix, (height,)), 0, 1)
            v = aten.normal_(aten.new_empty(matrix, (width,)), 0, 1)
            self.register_buffer("_u", normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _reshape_weight_to_matrix(self, weight: Any) -> Any:
        if self.dim != 0:
            weight = aten.permute(weight, (self.dim, *(d for d in range(weight.dim()) if d != self.dim)))
        return aten.flatten(weight, 1)

    @no_grad()
    def _power_method(self, matrix: Any, n_power_iterations: int) -> None:
        for _ in range(n_power_iterations):
            self._u = normalize(aten.mv(matrix, self._v), dim=0, eps=self.eps, out=self._u)
            self._v = normalize(aten.mv(aten.transpose(matrix, 0, 1).conj(), self._u), dim=0, eps=self.eps, out=self._v)

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = self._reshape_weight_to_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Copies, since the next call changes the buffers while this graph may still be needed.
        u, v = aten.clone(self._u), aten.clone(self._v)
        return weight / aten.vdot(u, aten.mv(matrix, v))

    def right_inverse(self, value: Any) -> Any:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value."""
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d) else 0
    return parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))


# ---------------------------------------------------------------- orthogonal matrices


class _OrthMaps(Enum):
    matrix_exp = auto()
    cayley = auto()
    householder = auto()


def _is_orthogonal(matrix: Any, eps: float | None = None) -> bool:
    rows, cols = matrix.size(-2), matrix.size(-1)
    if rows < cols:
        matrix, rows, cols = matrix.mT, cols, rows
    product = matrix.mT.conj() @ matrix
    return bool(
        aten.allclose(
            product, aten.eye(cols, dtype=matrix.dtype, device=matrix.device), atol=10 * (1.2e-7 if eps is None else eps) * rows
        )
    )


def _make_orthogonal(matrix: Any) -> Any:
    """The Q of a QR decomposition, made unique by positive signs on R's diagonal."""
    q, r = aten.linalg_qr(matrix)
    return q * aten.unsqueeze(aten.sgn(aten.diagonal(r, 0, -2, -1)), -2)


class _Orthogonal(Module):
    """Orthogonal matrices from any matrix: by the exponential or Cayley's map of its skew part, or by reflections.

    With `use_trivialization` the map starts from `base`, the matrix that was assigned last.
    """

    def __init__(self, weight: Any, orthogonal_map: _OrthMaps, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map is _OrthMaps.householder:
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        wide = X.size(-2) < X.size(-1)
        if wide:
            X = X.mT
        Q = self._by_reflections(X) if self.orthogonal_map is _OrthMaps.householder else self._by_skew_part(X)
        if self.use_trivialization:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _by_skew_part(self, X: Any) -> Any:
        rows, cols = X.size(-2), X.size(-1)
        X = aten.tril(X)
        if rows != cols:
            more = aten.expand(aten.new_zeros(X, (rows, rows - cols)), (*X.shape[:-2], -1, -1))
            X = aten.cat((X, more), dim=-1)
        A = X - X.mT.conj()
        if self.orthogonal_map is _OrthMaps.matrix_exp:
            Q = aten.linalg_matrix_exp(A)
        else:
            identity = aten.eye(rows, dtype=A.dtype, device=A.device)
            Q = aten.linalg_solve(aten.add(identity, A, alpha=-0.5), aten.add(identity, A, alpha=0.5))
        return Q if rows == cols else Q[..., :cols]

    def _by_reflections(self, X: Any) -> Any:
        """Columns below the diagonal are reflections, scaled according to their length; the diagonal is signs."""
        A = aten.tril(X, diagonal=-1)
        tau = 2.0 / (1.0 + (A * A).sum(dim=-2))
        Q = aten.linalg_householder_product(A, tau)
        return Q * aten.unsqueeze(aten.diagonal(X, 0, -2, -1).int(), -2)

    @no_grad()
    def right_inverse(self, Q: Any) -> Any:
        if Q.shape != self.shape:
            raise ValueError(f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}.")
        wanted = Q
        wide = Q.size(-2) < Q.size(-1)
        if wide:
            Q = Q.mT
        rows, cols = Q.size(-2), Q.size(-1)
        if not self.use_trivialization:
            if self.orthogonal_map is not _OrthMaps.householder:
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley "
                    "parametrizations when use_trivialization=False."
                )
            A, tau = aten.geqrf(Q)
            signs = aten.diagonal(A, 0, -2, -1)
            signs.sign_()
            signs[tau == 0.0] *= -1
            return A.mT if wide else A
        if rows == cols:
            self.base = aten.clone(Q) if _is_orthogonal(Q) else _make_orthogonal(Q)
        else:
            more = aten.randn((*Q.size()[:-2], rows, rows - cols), dtype=Q.dtype, device=Q.device)
            self.base = _make_orthogonal(aten.cat((Q, more), dim=-1))
        # What all three maps send to the identity.
        start = aten.zeros_like(wanted)
        aten.fill_(aten.diagonal(start, 0, -2, -1), -1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Make a weight orthogonal (unitary, if complex) and keep it so."""
    weight = getattr(module, name, None)
    if weight is None:
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    kind = getattr(_OrthMaps, orthogonal_map, None)
    if kind is None:
        raise ValueError(f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}')
    parametrization = _Orthogonal(weight, kind, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, parametrization, unsafe=True)
