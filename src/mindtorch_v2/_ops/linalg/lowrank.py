"""The largest singular values of large matrices, by way of random directions."""

from __future__ import annotations

from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from .._support.common import home_of


def _basis(a: Tensor, count: int, niter: int) -> Tensor:
    """Columns, each of length 1 and at right angles, that nearly span what `a` makes of all vectors.

    Random vectors are sent through `a`, and `niter` times back and forth: what `a` stretches most comes to prevail.
    """
    image = aten.matmul(a, aten.randn((a.shape[-1], count), dtype=a.dtype, device=home_of(a)))
    columns = aten.linalg_qr(image)[0]
    back = aten.mH(a)
    for _ in range(niter):
        columns = aten.linalg_qr(aten.matmul(back, columns))[0]
        columns = aten.linalg_qr(aten.matmul(a, columns))[0]
    return columns


def _largest(a: Tensor, count: int, niter: int) -> tuple[Tensor, Tensor, Tensor]:
    m, n = a.shape[-2:]
    tall = a if m >= n else aten.mH(a)
    columns = _basis(tall, count, niter)
    u, s, vh = aten.linalg_svd(aten.matmul(aten.mH(columns), tall), False)
    left, right = aten.matmul(columns, u), aten.mH(vh)
    return (left, s, right) if m >= n else (right, s, left)


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """U, S and V with A - M nearly U diag(S) Vᴴ, for the `q` largest singular values; `niter` rounds refine them."""
    if M is not None:
        A = A - aten.broadcast_to(M, A.shape)
    return _largest(A, 6 if q is None else q, 2 if niter is None else niter)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` main directions V of the rows of A, which are samples: less their mean, unless `center` is False."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _largest(A - aten.mean(A, (-2,), True) if center else A, q, niter)


FUNCTIONS = {"svd_lowrank": svd_lowrank, "pca_lowrank": pca_lowrank}
