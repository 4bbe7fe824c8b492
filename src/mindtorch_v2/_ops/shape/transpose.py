"""Views with their dims in another order."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

from ..._dispatch.facts import Batching, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import normal_dim
from .._support.warn import warn_once


@op(
    "transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    samples=lambda make: [(make(3, 4), 0, 1), (make(2, 3, 4), -1, 0)],
    batching=Batching.ALONG_DIM,
)
def transpose(self, dim0, dim1):
    """A view with two dims exchanged.

    >>> torch.transpose(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """
    if not self.ndim:
        normal_dim(dim0, 0), normal_dim(dim1, 0)
        return self.view()
    return self.swapaxes(dim0, dim1)


transpose.vjp(self=lambda g, dim0, dim1: aten.transpose(g, dim0, dim1))
_transpose = transpose.call


@composite("t(Tensor(a) self) -> Tensor(a)")
def t(self):
    """The transpose of a matrix, as a view.

    >>> torch.t(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """
    ndim = self._array.ndim
    if ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {ndim}D")
    return _transpose(self, 0, 1 if ndim == 2 else 0)


t.vjp(self=lambda g: aten.t(g))


@composite("mT(Tensor(a) self) -> Tensor(a)", handwritten=Surface.METHOD)
def mT(self):
    """The transpose of the last two dims, as a property.

    >>> torch.tensor([[1, 2], [3, 4]]).mT
    tensor([[1, 3],
            [2, 4]])
    """
    if self._array.ndim == 0:
        warn_once("Tensor.mT is deprecated on 0-D tensors. This function is the identity in these cases.")
        return self
    if self._array.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor.")
    return _transpose(self, -2, -1)


@composite("numpy_T(Tensor(a) self) -> Tensor(a)", handwritten=Surface.METHOD)
def numpy_T(self):
    """The dims in reverse order, which `Tensor.T` is.

    >>> torch.tensor([[1, 2], [3, 4]]).T
    tensor([[1, 3],
            [2, 4]])
    """
    ndim = self._array.ndim
    if ndim != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will "
            "throw an error in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor."
            if ndim
            else "Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases."
        )
    return aten.permute(self, tuple(range(ndim))[::-1])


composite(
    "swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)",
    lambda self, axis0, axis1: _transpose(self, axis0, axis1),
    samples=lambda make: [(make(3, 4), 0, 1)],
    doc="""A view with two dims exchanged, as `transpose`.

    >>> torch.swapaxes(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """,
)
composite(
    "swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)",
    lambda self, dim0, dim1: _transpose(self, dim0, dim1),
    samples=lambda make: [(make(3, 4), 0, 1)],
    doc="""A view with two dims exchanged, as `transpose`.

    >>> torch.swapdims(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """,
)


@op("permute(Tensor(a) self, int[] dims) -> Tensor(a)", samples=lambda make: [(make(2, 3, 4), (2, 0, 1))])
def permute(self, dims):
    """A view with the dims in another order.

    >>> torch.permute(torch.zeros(2, 3, 4), (2, 0, 1)).shape
    torch.Size([4, 2, 3])
    """
    try:
        return self.transpose(dims)
    except ValueError:
        if len(dims) == self.ndim:
            for d in dims:
                normal_dim(d, self.ndim)
            raise RuntimeError("permute(): duplicate dims are not allowed.") from None
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of "
            f"the desired ordering of dimensions i.e. input.dim() = {self.ndim} is not equal to "
            f"len(dims) = {len(dims)}"
        ) from None


def _inverse_permutation(dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d % len(dims)] = i
    return tuple(inverse)


permute.vjp(self=lambda g, dims: aten.permute(g, _inverse_permutation(dims)))


def _moved(self, source, destination):
    """permute(), such that dims `source` come to stand at `destination` and the others keep their order."""
    ndim = self._array.ndim
    if len(source) != len(destination):
        raise RuntimeError(
            "movedim: Invalid source or destination dims: source "
            f"({list(source)} dims) should contain the same number of dims as destination "
            f"({list(destination)} dims)"
        )
    from_, to = [normal_dim(d, ndim) for d in source], [normal_dim(d, ndim) for d in destination]
    for name, dims, listed in (("source", from_, source), ("destination", to, destination)):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(listed)})")
    if not ndim:
        return aten.alias(self)
    rest = iter([d for d in range(ndim) if d not in from_])
    placed = dict(zip(to, from_, strict=True))
    return aten.permute(self, tuple([placed[d] if d in placed else next(rest) for d in range(ndim)]))


composite(
    "movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    lambda self, source, destination: _moved(self, (source,), (destination,)),
    samples=lambda make: [(make(2, 3, 4), 0, 2)],
    doc="""Moves dims to other positions; the others keep their order.

    >>> torch.movedim(torch.zeros(2, 3, 4), 0, 2).shape
    torch.Size([3, 4, 2])
    """,
)
composite(
    "movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    _moved,
    samples=lambda make: [(make(2, 3, 4), (0, 1), (1, 2))],
)
composite(
    "moveaxis.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
    lambda self, source, destination: aten.movedim(self, source, destination),
    samples=lambda make: [(make(2, 3, 4), 0, 2)],
    doc="""Moves dims to other positions, as `movedim`.

    >>> torch.moveaxis(torch.zeros(2, 3, 4), 0, 2).shape
    torch.Size([3, 4, 2])
    """,
)
composite(
    "moveaxis.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
    lambda self, source, destination: aten.movedim(self, source, destination),
    samples=lambda make: [(make(2, 3, 4), (0, 1), (1, 2))],
)
