"""Softmax and logsumexp under their names in torch.special."""

from __future__ import annotations

from ..._dispatch.registry import aten, composite

composite(
    "special_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
    doc="""The softmax along a dim: exponentials divided by their sum.

    >>> torch.special.softmax(torch.tensor([1.0, 1.0]), 0)
    tensor([0.5000, 0.5000])
    """,
)
composite(
    "special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    lambda self, dim, dtype: aten.log_softmax(self, dim, dtype),
    samples=lambda make: [(make(3, 4), 1)],
    doc="""The logarithm of the softmax along a dim.

    >>> torch.special.log_softmax(torch.tensor([1.0, 1.0]), 0)
    tensor([-0.6931, -0.6931])
    """,
)
composite(
    "special_logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    lambda self, dim, keepdim: aten.logsumexp(self, dim, keepdim),
    samples=lambda make: [(make(3, 4), 1)],
    out=True,
    doc="""The logarithm of the sum of exponentials along a dim, without overflow.

    >>> torch.special.logsumexp(torch.tensor([1.0, 1.0]), 0)
    tensor(1.6931)
    """,
)
