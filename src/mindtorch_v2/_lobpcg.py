# ruff: noqa: N802, N803, N806  matrices have the names of the literature, which torch's arguments have
"""torch.lobpcg: a few eigenvalues and eigenvectors of a large symmetric matrix, by products with it alone.

Knyazev's locally optimal block preconditioned conjugate gradients: each step searches the span of the current vectors, their
preconditioned residuals and the directions of the step before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _surface as torch
from ._core import dtype as dt
from ._core.tensor import Tensor
from .autograd.function import Function

__all__ = ["lobpcg"]

_PRECISION = {dt.float32: 1.2e-07, dt.float64: 2.23e-16}
_DEFAULT_STEPS = 1000


class LOBPCG:
    """The state of one run, which `tracker` is called with after each step."""

    def __init__(
        self,
        A: Tensor,
        B: Tensor | None,
        X: Tensor,
        iK: Tensor | None,
        iparams: dict[str, int],
        fparams: dict[str, float],
        bparams: dict[str, bool],
        method: str,
        tracker: Callable[[LOBPCG], None] | None,
    ) -> None:
        self.A, self.B, self.iK, self.X = A, B, iK, X
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.E = X.new_zeros(X.shape[1])
        self.R = torch.zeros_like(X)
        self.S = X  # the basis that the last step searched
        self.ivars: dict[str, int] = {"istep": 0, "converged_count": 0}
        self.fvars: dict[str, float] = {}
        self.bvars: dict[str, bool] = {"force_stop": False}
        self.tvars: dict[str, Tensor] = {}

    def run(self) -> None:
        """Step until `k` pairs have converged, the steps are used up, or the tracker says so."""
        self._choose(self._basis(self.X))
        directions: list[Tensor] = []
        self.fvars["A_norm"] = float(self.A.matmul(self.X).norm() / self.X.norm())
        self.fvars["B_norm"] = 1.0 if self.B is None else float(self.B.matmul(self.X).norm() / self.X.norm())
        while True:
            self._measure()
            if self.ivars["istep"] and self.tracker is not None:
                self.tracker(self)
            done = self.ivars["converged_count"] >= self.iparams["k"]
            if done or self.bvars["force_stop"] or (self.ivars["istep"] and self.ivars["istep"] == self.iparams["niter"]):
                return
            residuals = self.R if self.iK is None else self.iK.matmul(self.R)
            basis = self._basis(self.X, residuals, *directions)
            count = self.X.shape[1]
            chosen = self._choose(basis)
            # What the step moved by: the part of the new vectors outside of the old ones.
            directions = [self.S[:, count:].matmul(chosen[count:])]
            self.ivars["istep"] += 1

    def _times_B(self, vectors: Tensor) -> Tensor:
        return vectors if self.B is None else self.B.matmul(vectors)

    def _measure(self) -> None:
        self.R = self.A.matmul(self.X) - self._times_B(self.X) * self.E
        self.fvars["X_norm"] = float(self.X.norm())
        scale = self.X.norm(dim=0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        self.tvars["rerr"] = error = self.R.norm(dim=0) / scale
        # A pair counts once all before it have converged.
        self.ivars["converged_count"] = int((error < self.fparams["tol"]).to(dt.int64).cumprod(0).sum())
        self.ivars["iterations_left"] = self.iparams["niter"] - self.ivars["istep"]

    def _basis(self, first: Tensor, *others: Tensor) -> Tensor:
        """The vectors side by side; for the method "ortho" orthonormal, without those that the others span."""
        if self.method == "basic":
            # Columns of one length: directions shrink with every step, and their products would be lost beside the vectors'.
            return torch.cat([first, *(each / each.norm(dim=0).clamp(min=1e-300) for each in others)], 1)
        basis = self._orthonormal(first, None)
        for each in others:
            basis = torch.cat([basis, self._orthonormal(each, basis)], 1)
        return basis

    def _orthonormal(self, vectors: Tensor, basis: Tensor | None) -> Tensor:
        for _ in range(self.iparams["ortho_i_max"]):
            if basis is not None:
                vectors = vectors - basis.matmul(basis.mT.matmul(self._times_B(vectors)))
            vectors = vectors / vectors.norm(dim=0).clamp(min=1e-300)
            values, turns = torch.linalg_eigh(vectors.mT.matmul(self._times_B(vectors)))
            kept = values > self.fparams["ortho_tol_drop"] * values.abs().max()
            vectors = vectors.matmul(turns[:, kept] / values[kept].sqrt())
        return vectors

    def _choose(self, basis: Tensor) -> Tensor:
        """Make the best vectors of the basis's span X, their values E; returns them in terms of the basis."""
        product = basis.mT.matmul(self.A.matmul(basis))
        inverse = None
        if self.method == "basic":
            factor = torch.linalg_cholesky(basis.mT.matmul(self._times_B(basis)))
            identity = torch.linalg_solve_triangular(
                factor, torch.eye(factor.shape[0], dtype=factor.dtype, device=factor.device), upper=False
            )
            inverse = identity.mT
            product = identity.matmul(product).matmul(inverse)
        values, vectors = torch.linalg_eigh((product + product.mT) / 2)
        if self.bparams["largest"]:
            values, vectors = values.flip(0), vectors.flip(1)
        count = self.iparams["n"]
        chosen = vectors[:, :count] if inverse is None else inverse.matmul(vectors[:, :count])
        self.S, self.E, self.X = basis, values[:count], basis.matmul(chosen)
        return chosen


class LOBPCGAutogradFunction(Function):
    """The pairs, and the derivative of eigenvalues and eigenvectors of a symmetric matrix."""

    @staticmethod
    def forward(ctx: Any, A: Tensor, k: int, largest: bool, run: Callable[[Tensor], tuple[Tensor, Tensor]], plain: bool) -> Any:
        values, vectors = run(A)
        ctx.save_for_backward(A, values, vectors)
        ctx.largest, ctx.plain = largest, plain
        return values, vectors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        A, values, vectors = ctx.saved_tensors
        if not ctx.plain:
            raise ValueError("lobpcg.backward does not support backward with B != I yet.")
        value_grad, vector_grad = grads
        # All pairs: how an eigenvector turns depends on its distance from every other one.
        all_values, all_vectors = torch.linalg_eigh(A)
        if ctx.largest:
            all_values, all_vectors = all_values.flip(-1), all_vectors.flip(-1)
        distance = values.unsqueeze(-2) - all_values.unsqueeze(-1)
        distance.diagonal(dim1=-2, dim2=-1).fill_(float("inf"))  # a vector does not turn towards itself
        turned = all_vectors.matmul(all_vectors.mT.matmul(vector_grad) / distance)
        return (vectors * value_grad.unsqueeze(-2) + turned).matmul(vectors.mT), None, None, None, None


def _check(A: Tensor, k: int, n: int, X: Tensor | None) -> None:
    if A.is_complex() or not A.is_floating_point():
        name = A.dtype.cpp_name
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {name} != float")
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    rows = A.shape[-1]
    if X is not None and X.shape[-2] != rows:
        raise AssertionError(f"X shape mismatch: got {X.shape}, expected {(rows, n)}")
    if rows < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={rows}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    if k < 1:
        raise ValueError(f"lobpcg: k must be at least 1, got {k}")


def _ortho_parameters(given: dict[str, Any] | None, known: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted((given or {}).keys() - known.keys())
    if unknown:
        raise NotImplementedError(
            f"torch.lobpcg: {', '.join(unknown)}: of the parameters of orthogonalization there are {', '.join(known)}. See "
            "docs/compatibility.md"
        )
    return {f"ortho_{name}": value for name, value in {**known, **(given or {})}.items()}


def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable[[LOBPCG], None] | None = None,
    ortho_iparams: dict[str, int] | None = None,
    ortho_fparams: dict[str, float] | None = None,
    ortho_bparams: dict[str, bool] | None = None,
) -> tuple[Tensor, Tensor]:
    """The `k` largest, or smallest, eigenvalues of symmetric A, or of A relative to B, and their eigenvectors.

    A may be sparse or a batch. `method` is "ortho", or "basic" with one Cholesky factor a step and no orthogonal basis, which
    may fail for nearly dependent vectors. The derivative is that of dense A without B.

        >>> values, _ = torch.lobpcg(torch.diag(torch.arange(1.0, 7.0)), k=2)
        >>> values.round(decimals=3)
        tensor([6., 5.])
    """
    n = (X.shape[-1] if X is not None else k or 1) if X is not None or n is None else n
    k = n if k is None else min(k, n)
    _check(A, k, n, X)
    rows = A.shape[-1]
    iparams = {"m": rows, "n": n, "k": k, "niter": _DEFAULT_STEPS if niter is None else niter}
    iparams |= _ortho_parameters(ortho_iparams, {"i_max": 2})
    precision = _PRECISION.get(A.dtype, 1.2e-07)
    fparams = {"tol": precision**0.5 if tol is None else tol} | _ortho_parameters(ortho_fparams, {"tol_drop": 10 * precision})
    bparams = {"largest": True if largest is None else largest} | _ortho_parameters(ortho_bparams, {})

    def pairs_of(matrix: Tensor, metric: Tensor | None, start: Tensor | None) -> tuple[Tensor, Tensor]:
        first = torch.randn(rows, n, dtype=A.dtype, device=A.device) if start is None else start
        worker = LOBPCG(matrix, metric, first, iK, dict(iparams), dict(fparams), dict(bparams), method or "ortho", tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    def run(matrix: Tensor) -> tuple[Tensor, Tensor]:
        if matrix.ndim == 2:
            return pairs_of(matrix, B, X)
        batch = matrix.shape[:-2]
        matrices = matrix.reshape(-1, rows, rows)
        metrics = [None] * len(matrices) if B is None else B.expand(matrix.shape).reshape(-1, rows, rows)
        starts = [None] * len(matrices) if X is None else X.expand(*batch, rows, n).reshape(-1, rows, n)
        found = [pairs_of(*each) for each in zip(matrices, metrics, starts, strict=True)]
        values, vectors = torch.stack([value for value, _ in found]), torch.stack([vector for _, vector in found])
        return values.reshape(*batch, k), vectors.reshape(*batch, rows, k)

    if A.requires_grad and not A.is_sparse:
        A = (A + A.mT) / 2
    return LOBPCGAutogradFunction.apply(A, k, bparams["largest"], run, B is None)
