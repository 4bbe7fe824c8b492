"""Products of sparse matrices under their old names, and copies of the parts of sparse tensors."""

from __future__ import annotations

from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch.facts import Surface
from ..._dispatch.registry import aten, composite
from .compressed import layout_name
from .coordinates import coalesce, sparse_coo_tensor


def _need_coordinates(name: str, **tensors: Any) -> None:
    """NotImplementedError for a tensor that has no coordinates."""
    for argument, tensor in tensors.items():
        if not tensor.is_sparse:
            raise NotImplementedError(
                f"aten::{name}: argument '{argument}' must be a sparse COO tensor, not {layout_name(tensor)}"
            )


def _rows_of_product(mat1: Any, mat2: Any) -> tuple[Tensor, Tensor]:
    """The rows of `mat1` that have entries, and the same rows of `mat1 @ mat2`."""
    matrix = coalesce(mat1)
    rows = aten.unbind(matrix._coordinates, 0)[0].unique()
    return rows, aten.index_select(aten.mm(matrix, mat2), 0, rows)


def _no_samples(make: Any) -> list[Any]:
    return []  # sparse operands, which the table of samples does not make


@composite("hspmm(Tensor mat1, Tensor mat2) -> Tensor", surface=Surface.FUNCTION, samples=_no_samples)
def hspmm(mat1: Any, mat2: Any) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse tensor of rows.

    >>> torch.hspmm(torch.eye(2).to_sparse(), torch.ones(2, 3)).sparse_dim()
    1
    """
    _need_coordinates("hspmm", mat1=mat1)
    rows, values = _rows_of_product(mat1, mat2)
    return sparse_coo_tensor(aten.unsqueeze(rows, 0), values, (mat1.shape[0], mat2.shape[1]))


@composite(
    "sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    surface=Surface.BOTH,
    samples=_no_samples,
)
def sspaddmm(self: Any, mat1: Any, mat2: Any, beta: Any, alpha: Any) -> Tensor:
    """`beta * self + alpha * (mat1 @ mat2)` for sparse `self` and `mat1`, as a sparse matrix that is not coalesced.

    >>> eye = torch.eye(2).to_sparse()
    >>> torch.sspaddmm(eye, eye, torch.ones(2, 2)).to_dense()
    tensor([[2., 1.],
            [1., 2.]])
    """
    _need_coordinates("sspaddmm", self=self, mat1=mat1)
    rows, values = _rows_of_product(mat1, mat2)
    width = mat2.shape[1]
    columns = aten.repeat(aten.arange(width), [len(rows)])
    positions = aten.stack([aten.repeat_interleave(rows, width), columns])
    indices = aten.cat([self._coordinates, positions], 1)
    entries = aten.cat([aten.mul(self._entries, beta), aten.mul(aten.flatten(values), alpha)])
    return sparse_coo_tensor(indices, entries, (mat1.shape[0], width))


@composite("smm(Tensor self, Tensor mat2) -> Tensor", surface=Surface.BOTH, samples=_no_samples)
def smm(self: Any, mat2: Any) -> Tensor:
    """The product of a sparse and a dense matrix as a sparse matrix.

    >>> torch.smm(torch.eye(2).to_sparse(), torch.ones(2, 2)).is_sparse
    True
    """
    _need_coordinates("smm", self=self)
    nothing = sparse_coo_tensor(self._coordinates[:, :0], self._entries[:0], (self.shape[0], mat2.shape[1]))
    return aten.sspaddmm(nothing, self, mat2)


@composite("native_norm(Tensor self, Scalar p=2) -> Tensor", surface=Surface.FUNCTION, samples=_no_samples)
def native_norm(self: Any, p: Any) -> Tensor:
    """The norm of all elements of a sparse tensor.

    >>> torch.native_norm(torch.tensor([3.0, 0.0, 4.0]).to_sparse())
    tensor(5.)
    """
    _need_coordinates("native_norm", self=self)
    return aten.norm(coalesce(self)._entries, p)


def _copy_of_part(part: str, layout: str) -> None:
    """Declares `PART_copy`, whose example takes a tensor of a layout."""

    def copy(self: Any) -> Tensor:
        return aten.clone(getattr(self, part)())

    composite(
        f"{part}_copy(Tensor self) -> Tensor",
        copy,
        surface=Surface.FUNCTION,
        samples=_no_samples,
        doc=f"""A copy of what `Tensor.{part}` shows.

        >>> torch.{part}_copy(torch.eye(2).{layout}).shape
        torch.Size({_SHAPES[part]})
        """,
    )


_SHAPES = {
    "indices": "[2, 2]",
    "values": "[2]",
    "crow_indices": "[3]",
    "col_indices": "[2]",
    "ccol_indices": "[3]",
    "row_indices": "[2]",
}
_copy_of_part("indices", "to_sparse().coalesce()")
_copy_of_part("values", "to_sparse().coalesce()")
_copy_of_part("crow_indices", "to_sparse_csr()")
_copy_of_part("col_indices", "to_sparse_csr()")
_copy_of_part("ccol_indices", "to_sparse_csc()")
_copy_of_part("row_indices", "to_sparse_csc()")
