"""The largest and smallest elements, of all or along dims, and where their gradients go."""

from __future__ import annotations

import numpy as np

from ..._core.single_pass import reduced
from ..._dispatch.facts import Batching, Layout
from ..._dispatch.registry import aten, composite, op
from .._support.common import home_of, normal_dim, normal_dims, reduced_shape
from .._support.elementwise import need_real
from .._support.out_rules import like_self_as_extremes
from .reduce import axes_of, by_dim, by_dims

_BOOL = np.dtype(np.bool_)
_FLOAT32 = np.dtype(np.float32)
_INT64 = np.dtype(np.int64)


# ---------------------------------------------------------------- where gradients of picked elements go


@composite(
    "value_selecting_reduction_backward(Tensor grad, int dim, Tensor indices, int[] sizes, bool keepdim) -> Tensor",
    samples=lambda make: [(make(3), 1, make.ints(4, 3), (3, 4), False)],
)
def value_selecting_reduction_backward(grad, dim, indices, sizes, keepdim):
    """The gradient of picking elements along a dim: each goes where its element came from."""
    if not keepdim and len(sizes):
        grad, indices = aten.unsqueeze(grad, dim), aten.unsqueeze(indices, dim)
    return aten.scatter_(aten.zeros(sizes, dtype=grad.dtype, device=home_of(grad)), dim, indices, grad)


def evenly_distributed(g, self, result):
    """The gradient of `max()` or `min()` of all elements: shared evenly by those that have its value."""
    mask = self.isnan() if aten.item(aten.isnan(result)) else self == result
    zeros = aten.new_zeros(g, self._array.shape)
    share = g / mask.sum()
    return aten.masked_fill_(zeros, mask, share)


def _restored(t, shape, dim, keepdim):
    if keepdim:
        return t
    gone = set(normal_dims(dim, len(shape)))
    return aten.reshape(t, tuple(1 if i in gone else n for i, n in enumerate(shape)))


def _shared_by_count(g, mask, dim):
    """Each element that is the extreme of its slice takes an equal part."""
    count = aten.sum(mask, normal_dims(dim, mask._array.ndim), True)
    return (g / count) * mask


# ---------------------------------------------------------------- extremes


def _check_not_empty(caller, self, dim):
    if self.ndim and self.shape[normal_dim(dim, self.ndim)] == 0:
        raise IndexError(f"{caller}: Expected reduction dim {normal_dim(dim, self.ndim)} to have non-zero size.")


def _pair_shape(self, dim, keepdim):
    shape = reduced_shape(self._array.shape, (dim,), keepdim)
    return [(shape, self._array.dtype), (shape, _INT64)]


def _extreme(name, reduce, find, docs):  # noqa: C901  declares four ops
    def found(array, dim, dtype, out, keepdim):
        return find(array, dim, out, keepdims=keepdim)

    @op(
        f"{name}(Tensor self) -> Tensor",
        shape=lambda self: ((), self._array.dtype),
        node=f"{name.title()}Backward1",
        batching=Batching.ALONG_DIM,
        out_overload="unary_out",
        doc=docs[name],
    )
    def whole(self):
        if not self.size:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        if self.dtype is not _FLOAT32:
            need_real(f"{name}_all", self)
        return reduce(self, None)

    whole.vjp(self=evenly_distributed)

    @op(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        layout=Layout.ROW_MAJOR,
        node=f"{name.title()}Backward0",
        shape=_pair_shape,
        samples=by_dim,
        batching=Batching.ALONG_DIM,
        out_overload=f"dim_{name}",
    )
    def along(self, dim, keepdim):
        if not self.ndim:
            normal_dim(dim, 0)
            if self.dtype.kind == "c":
                raise RuntimeError(f"{name}(): does not support complex input")
            return self.copy(), np.zeros((), np.int64)
        if not self.size:
            _check_not_empty(name + "()", self, dim)
        if self.dtype is not _FLOAT32 and self.dtype.kind == "c":
            normal_dim(dim, self.ndim)
            raise RuntimeError(f"{name}(): does not support complex input")
        if keepdim:
            return reduced(reduce, self, dim, None, True), reduced(found, self, dim, None, True)
        return reduced(reduce, self, dim), reduced(found, self, dim)

    along.vjp(
        self=lambda g, self_shape, dim, keepdim, result1: aten.value_selecting_reduction_backward(
            g, dim, result1, self_shape, keepdim
        )
    )

    @op(
        f"arg{name}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
        nondiff=True,
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, None if dim is None else (dim,), keepdim), _INT64),
        batching=Batching.ALONG_DIM,
        doc=docs[f"arg{name}"],
    )
    def position(self, dim, keepdim):
        if self.dtype is not _FLOAT32 and self.dtype.kind in "bc":
            raise RuntimeError(f"arg{name}(): does not support {'bool' if self.dtype is _BOOL else 'complex'} input")
        if dim is None:
            if not self.size:
                raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = np.asarray(find(self))
            return index.reshape((1,) * self.ndim) if keepdim else index
        if not self.ndim:
            normal_dim(dim, 0)
            return np.zeros((), np.int64)
        if not self.size:
            _check_not_empty(f"arg{name}()", self, dim)
        return reduced(found, self, dim, None, keepdim)

    @op(
        f"a{name}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor",
        samples=by_dims,
        batching=Batching.REDUCTION,
        out_rule=like_self_as_extremes,
        doc=docs[f"a{name}"],
        shape=lambda self, dim, keepdim: (reduced_shape(self._array.shape, dim, keepdim), self._array.dtype),
    )
    def over(self, dim, keepdim):
        axes = axes_of(dim, self.ndim)
        if not self.size:
            if axes is None:
                raise RuntimeError(
                    f"a{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify "
                    "the reduction dim with the 'dim' argument."
                )
            for d in axes:
                _check_not_empty(f"a{name}()", self, d)
        if self.dtype is not _FLOAT32:
            normal_dims(() if dim is None else dim, self.ndim)
            if self.size:
                need_real(f"{name}_values_cpu", self)
        try:
            return reduced(reduce, self, axes, None, keepdim)
        except ValueError:
            normal_dims(dim, self.ndim)  # a dim that is named twice
            raise

    def over_grad(g, self, dim, keepdim, result):
        shape = self._array.shape
        mask = self == _restored(result, shape, dim, keepdim)
        return _shared_by_count(_restored(g, shape, dim, keepdim), mask, dim)

    over.vjp(self=over_grad)


_extreme(
    "max",
    np.maximum.reduce,
    np.ndarray.argmax,
    docs={
        "amax": """The largest element along one or several dims; ties share the gradient.

        >>> torch.amax(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([5., 7.])
        """,
        "max": """The largest element; along `dim` with its position; or the larger of two tensors, element by element.

        >>> torch.max(torch.tensor([3, 1, 2]))
        tensor(3)
        >>> torch.max(torch.tensor([[1, 5], [7, 2]]), dim=1)
        torch.return_types.max(
        values=tensor([5, 7]),
        indices=tensor([1, 0]))
        """,
        "argmax": """The position of the largest element, in the flattened tensor or along `dim`.

        >>> torch.argmax(torch.tensor([[1, 9], [4, 2]]))
        tensor(1)
        >>> torch.argmax(torch.tensor([[1, 9], [4, 2]]), dim=1)
        tensor([1, 0])
        """,
    },
)
_extreme(
    "min",
    np.minimum.reduce,
    np.ndarray.argmin,
    docs={
        "argmin": """The position of the smallest element, in the flattened tensor or along `dim`.

        >>> torch.argmin(torch.tensor([3, 1, 2]))
        tensor(1)
        """,
        "amin": """The smallest element along one or several dims; ties share the gradient.

        >>> torch.amin(torch.tensor([[1.0, 5.0], [7.0, 2.0]]), dim=1)
        tensor([1., 2.])
        """,
        "min": """The smallest element; along `dim` with its position; or the smaller of two tensors, element by element.

        >>> torch.min(torch.tensor([3, 1, 2]))
        tensor(1)
        >>> torch.min(torch.tensor([[1, 5], [7, 2]]), dim=1)
        torch.return_types.min(
        values=tensor([1, 2]),
        indices=tensor([0, 1]))
        """,
    },
)

composite(
    "max.other(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.maximum(self, other),
    batching=Batching.ALONG_DIM,
    out=True,
    out_overload="out",
)
composite(
    "min.other(Tensor self, Tensor other) -> Tensor",
    lambda self, other: aten.minimum(self, other),
    batching=Batching.ALONG_DIM,
    out=True,
    out_overload="out",
)


def _both_shapes(self, dim, keepdim):
    return [(reduced_shape(self._array.shape, None if dim is None else (dim,), keepdim), self._array.dtype)] * 2


@op(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    layout=Layout.ROW_MAJOR,
    takes_all_grads=True,
    shape=_both_shapes,
    samples=lambda make: [(make(3, 4),), (make(3, 4), {"dim": 1}), (make(3, 4), {"dim": 0, "keepdim": True})],
    batching=Batching.ALONG_DIM,
)
def aminmax(self, dim, keepdim):
    """The smallest and the largest element, of the whole tensor or along `dim`.

    >>> torch.aminmax(torch.tensor([3, 1, 2]))
    torch.return_types.aminmax(
    min=tensor(1),
    max=tensor(3))
    """
    axes = None if dim is None else normal_dims((dim,), self.ndim)
    if not self.size:
        if dim is None:
            raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
        _check_not_empty("aminmax", self, dim)
    need_real("aminmax_cpu", self)
    return np.minimum.reduce(self, axes, None, None, keepdim), np.maximum.reduce(self, axes, None, None, keepdim)


@aminmax.vjp
def _(grads, self, dim, keepdim, result0, result1):
    dims = None if dim is None else (dim,)
    total = None
    for g, result in zip(grads, (result0, result1), strict=True):
        if g is not None:
            shape = self._array.shape
            g, result = _restored(g, shape, dims, keepdim), _restored(result, shape, dims, keepdim)
            part = _shared_by_count(g, self == result, dims)
            total = part if total is None else total + part
    return (total,)
