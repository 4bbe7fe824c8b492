"""Matrix products, and what torch composes of them."""

# A formula is a lambda because its parameters say which of the op's arguments it takes.

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD
from ..._core.threads import threads
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.out_arguments import store_out
from ..._dispatch.out_checks import check_grad, on_device
from ..._dispatch.out_dtypes import exact
from ..._dispatch.registry import aten, composite, op
from .._support import split_products
from .._support.common import cpp_name, no_kernel, normal_dim, scalar_name, unexpected_dtype
from .._support.half import is_narrow
from ..pointwise.arithmetic import conj, fitting_number, scaled
from ..shape.view import expand
from ._checks import LAPACK

_FLOAT32 = np.dtype(np.float32)
_expand = expand.kernel


def sides(array):
    return "x".join(map(str, array.shape))


# Products take operands as they are: there is no promotion.


def sum_orders(factors):
    """The deprecated orders of a sum with a product: beta, the sum, alpha; as methods have them, the sum first."""
    return tuple(f"{head} {factors}" for head in ("beta self alpha", "beta self", "self beta alpha", "self beta"))


def _check_addmm(self, mat1, mat2):
    for which, other in (("self", self), ("mat1", mat1)):
        if other.dtype != mat2.dtype:
            raise RuntimeError(
                f"{which} and mat2 must have the same dtype, but got {scalar_name(other)} and {scalar_name(mat2)}"
            )
    _check_mm(mat1, mat2, "addmm")


def _check_mm(self, mat2, name="mm"):
    if self.ndim != 2 or mat2.ndim != 2:
        which = "self" if self.ndim != 2 else "mat2"
        raise RuntimeError(
            f"{which} must be a matrix"
            if name == "mm"
            else f"{'mat1' if which == 'self' else 'mat2'} must be a matrix, got "
            f"{(self if which == 'self' else mat2).ndim}-D tensor"
        )
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({sides(self)} and {sides(mat2)})")
    if self.dtype != mat2.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {cpp_name(self)} != {cpp_name(mat2)}")


def product(self, mat2, kernel):
    """The matrix product of arrays of one dtype; narrow floats are summed in float32. The error for bools names `kernel`."""
    kind = self.dtype
    if kind is not _FLOAT32:
        if is_narrow(kind):
            return product(self.astype(_FLOAT32), mat2.astype(_FLOAT32), kernel).astype(kind)
        if kind.kind == "b" and self.size and mat2.size:
            raise no_kernel(kernel, self)
    if mat2.ndim == 1:
        return split_products.dot_with_vector(self, mat2)
    return split_products.dot(self, mat2) if self.ndim == 2 else split_products.matmul(self, mat2)


def plus(self, product, beta, alpha):
    """beta * self + alpha * product, in the memory of the product; `expand` raises for a self that has no such shape."""
    if alpha != 1:
        product = np.multiply(product, fitting_number(alpha, product.dtype))
    if beta == 0:
        if self.shape != product.shape:
            _expand(self, product.shape, False)
        return product
    try:
        return np.add(
            product,
            self if beta == 1 else np.multiply(self, fitting_number(beta, product.dtype)),
            product if product.__class__ is np.ndarray else None,
        )
    except ValueError:
        _expand(self, product.shape, False)
        raise


def _without_product(self, shape, beta):
    """`plus` where nothing is summed, or nothing comes out: torch multiplies by beta as `mul` does, and looks at no alpha."""
    self = _expand(self, shape, False)
    if beta == 0:
        return np.zeros(shape, self.dtype)
    if not self.size or beta == 1:
        return self.copy()
    own = dt.from_numpy(self.dtype)
    kind = dt.result_type((own, dt.DIM_TENSOR), (dt.number_dtype(beta), dt.NUMBER))
    if not dt.can_cast(kind, own):
        raise RuntimeError(f"result type {kind.scalar_name} can't be cast to the desired output type {own.scalar_name}")
    return np.multiply(self, fitting_number(beta, self.dtype))


def _mm_shape(self, mat2):
    _check_mm(self._array, mat2._array)
    return (self._array.shape[0], mat2._array.shape[1]), self._array.dtype


# ---------------------------------------------------------------- two matrices


def _column_major(shape, strides, item):
    """Whether a matrix is laid out by columns, as the transpose of a row-major one is."""
    return strides[0] == item and strides[1] == item * shape[0]


def mm_self_grad(g, mat2, shape, strides):
    """d/dself of self @ mat2, computed transposed when self is column-major, so that the layouts match."""
    if mat2._array.dtype is not _FLOAT32:
        mat2 = conj(mat2)
    if _column_major(shape, strides, g._array.itemsize):
        return aten.t(aten.mm(mat2, aten.t(g)))
    return aten.mm(g, aten.t(mat2))


def mm_mat2_grad(g, self, shape, strides):
    """d/dmat2 of self @ mat2, computed transposed when mat2 is column-major."""
    if self._array.dtype is not _FLOAT32:
        self = conj(self)
    if _column_major(shape, strides, g._array.itemsize):
        return aten.t(aten.mm(aten.t(g), self))
    return aten.mm(aten.t(self), g)


def _two_matrices(make):
    return [(make(3, 4), make(4, 2))]


@op(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    shape=_mm_shape,
    samples=_two_matrices,
    flops=lambda self, mat2: 2 * self[0] * self[1] * mat2[1],
    autocast=Autocast.LOWER,
    batching=Batching.PRODUCT,
    torch_counts_flops=True,
)
def mm(self, mat2):
    """The product of two matrices.

    >>> torch.mm(torch.tensor([[1, 2]]), torch.tensor([[3], [4]]))
    tensor([[11]])
    """
    if self.dtype is _FLOAT32 and mat2.dtype is _FLOAT32 and self.ndim == 2 and mat2.ndim == 2:
        try:
            return split_products.dot(self, mat2)
        except ValueError:
            pass
    _check_mm(self, mat2)
    return product(self, mat2, "addmm_impl_cpu_")


mm.vjp(
    self=lambda g, mat2, self_shape, self_strides: mm_self_grad(g, mat2, self_shape, self_strides),
    mat2=lambda g, self, mat2_shape, mat2_strides: mm_mat2_grad(g, self, mat2_shape, mat2_strides),
)


@op(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    deprecated=sum_orders("mat1 mat2"),
    inplace=True,
    shape=lambda self, mat1, mat2, beta, alpha: _mm_shape(mat1, mat2),
    samples=lambda make: [(make(2), make(3, 4), make(4, 2)), (make(3, 2), make(3, 4), make(4, 2), {"beta": 0.5, "alpha": 2})],
    flops=lambda self, mat1, mat2, *_: 2 * mat1[0] * mat1[1] * mat2[1],
    autocast=Autocast.LOWER,
    batching=Batching.ADDED_PRODUCT,
    torch_counts_flops=True,
)
def addmm(self, mat1, mat2, beta, alpha):
    """`beta * input + alpha * mat1 @ mat2`.

    >>> torch.addmm(torch.ones(2, 2), torch.eye(2), torch.eye(2))
    tensor([[2., 1.],
            [1., 2.]])
    """
    if (
        beta == 1
        and alpha == 1
        and mat1.ndim == 2
        and mat2.ndim == 2
        and mat1.dtype is _FLOAT32
        and mat2.dtype is _FLOAT32
        and self.dtype is _FLOAT32
    ):
        try:
            made = split_products.dot(mat1, mat2)
            return np.add(made, self, made)
        except ValueError:
            pass
    _check_addmm(self, mat1, mat2)
    if not mat1.size or not mat2.size:
        return _without_product(self, (mat1.shape[0], mat2.shape[1]), beta)
    if alpha == 0 and mat1.dtype.char in LAPACK:  # BLAS does not look at the product then
        return plus(self, np.zeros((mat1.shape[0], mat2.shape[1]), mat1.dtype), beta, 1)
    if is_narrow(mat1.dtype):  # rounded once, after the sum
        wide = split_products.dot(mat1.astype(_FLOAT32), mat2.astype(_FLOAT32))
        return plus(self.astype(_FLOAT32), wide, beta, alpha).astype(mat1.dtype)
    return plus(self, product(mat1, mat2, "addmm_impl_cpu_"), beta, alpha)


addmm.vjp(
    self=lambda g, beta: scaled(g, beta),
    mat1=lambda g, mat2, mat1_shape, mat1_strides, alpha: scaled(mm_self_grad(g, mat2, mat1_shape, mat1_strides), alpha),
    mat2=lambda g, mat1, mat2_shape, mat2_strides, alpha: scaled(mm_mat2_grad(g, mat1, mat2_shape, mat2_strides), alpha),
)

# ---------------------------------------------------------------- batches of matrices


def check_bmm(self, mat2, added=None):
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if self.ndim != 3 else "batch2 must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    if added is not None and added.dtype != self.dtype:
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {cpp_name(added)}, batch1: {cpp_name(self)}, batch2: {cpp_name(mat2)}"
        )
    if self.dtype != mat2.dtype and self.size and mat2.size:
        raise unexpected_dtype(self, mat2)


def has_dim(array, dim):
    """IndexError unless an array has a dim: torch asks for the size of it before it counts dims."""
    if not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    normal_dim(dim, array.ndim)


def bmm_shape(self, mat2):
    check_bmm(self._array, mat2._array)
    return (*self._array.shape[:2], mat2._array.shape[2]), mat2._array.dtype


@op(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    shape=bmm_shape,
    samples=lambda make: [(make(2, 3, 4), make(2, 4, 2))],
    flops=lambda self, mat2: 2 * math.prod(self) * mat2[2],
    autocast=Autocast.LOWER,
    batching=Batching.PRODUCT,
    torch_counts_flops=True,
)
def bmm(self, mat2):
    """The products of two batches of matrices.

    >>> torch.bmm(torch.ones(1, 1, 2), torch.ones(1, 2, 1))
    tensor([[[2.]]])
    """
    a, b = self.shape, mat2.shape
    if self.dtype is not _FLOAT32 or mat2.dtype is not _FLOAT32 or len(a) != 3 or len(b) != 3 or a[0] != b[0]:
        check_bmm(self, mat2)
        if not self.size or not mat2.size:  # of any dtypes
            return np.zeros((*a[:2], b[2]), mat2.dtype)
        return product(self, mat2, "bmm")
    try:
        return split_products.matmul(self, mat2)
    except ValueError:
        check_bmm(self, mat2)
        raise


bmm.vjp(
    self=lambda g, mat2: aten.bmm(g, conj(mat2).transpose(1, 2)), mat2=lambda g, self: aten.bmm(conj(self).transpose(1, 2), g)
)


@op(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    deprecated=sum_orders("batch1 batch2"),
    inplace=True,
    shape=lambda self, batch1, batch2, beta, alpha: bmm_shape(batch1, batch2),
    samples=lambda make: [
        (make(2, 3, 2), make(2, 3, 4), make(2, 4, 2)),
        (make(1, 2), make(2, 3, 4), make(2, 4, 2), {"beta": 0.5, "alpha": 2}),
    ],
    flops=lambda self, batch1, batch2, *_: 2 * math.prod(batch1) * batch2[2],
    autocast=Autocast.LOWER,
    batching=Batching.ADDED_PRODUCT,
    torch_counts_flops=True,
)
def baddbmm(self, batch1, batch2, beta, alpha):
    """`beta * input + alpha * batch1 @ batch2`, batch by batch.

    >>> torch.baddbmm(torch.zeros(1, 1, 1), torch.ones(1, 1, 2), torch.ones(1, 2, 1))
    tensor([[[2.]]])
    """
    if batch1.ndim != 3 or batch2.ndim != 3:
        has_dim(batch1, 0)
        has_dim(batch1, 1)
        has_dim(batch2, 2)
    check_bmm(batch1, batch2, self)
    if not batch1.size or not batch2.size:
        return _without_product(self, (*batch1.shape[:2], batch2.shape[2]), beta).astype(batch2.dtype, copy=False)
    return plus(self, product(batch1, batch2, "baddbmm"), beta, alpha)


baddbmm.vjp(
    self=lambda g, beta: scaled(g, beta),
    batch1=lambda g, batch2, alpha: scaled(aten.bmm(g, conj(batch2).transpose(1, 2)), alpha),
    batch2=lambda g, batch1, alpha: scaled(aten.bmm(conj(batch1).transpose(1, 2), g), alpha),
)

# ---------------------------------------------------------------- any ranks


@composite(
    "matmul(Tensor self, Tensor other) -> Tensor",
    samples=lambda make: [
        (make(*a), make(*b))
        for a, b in (
            ((3, 4), (4, 2)),
            ((4,), (4,)),
            ((3, 4), (4,)),
            ((4,), (4, 2)),
            ((2, 3, 4), (4, 2)),
            ((2, 3, 4), (4,)),
            ((3, 4), (2, 4, 2)),
            ((4,), (2, 4, 2)),
            ((2, 3, 4), (1, 4, 2)),
            ((2, 1, 3, 4), (2, 4, 2)),
        )
    ],
    autocast=Autocast.LOWER,
    out_dtype=exact,
)
def matmul(self, other):
    """The matrix product: of vectors, matrices, and batches of them, which broadcast.

    >>> torch.matmul(torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
    tensor([3, 7])
    """
    n, m = self._array.ndim, other._array.ndim
    if n == 2 and m == 2:
        return aten.mm(self, other)
    if n == 1 and m == 1:
        return aten.dot(self, other)
    if n == 2 and m == 1:
        return aten.mv(self, other)
    if n == 1 and m == 2:
        return aten.squeeze_(aten.mm(aten.unsqueeze(self, 0), other), 0)
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if n == 3 and m == 3:
        # A single matrix on one side is folded like a matrix, if it takes part in the gradient.
        if self._array.shape[0] == 1 and other._array.shape[0] > 1 and self._keys & AUTOGRAD:
            self, n = aten.squeeze(self, 0), 2
        elif other._array.shape[0] == 1 and self._array.shape[0] > 1 and other._keys & AUTOGRAD:
            other, m = aten.squeeze(other, 0), 2
    if n > m and m <= 2 and _folds(self._array, other):
        return _fold_left(self, other)
    if m > n:
        transposed = aten.mT(other)
        if n <= 2 and _folds(transposed._array, self, right=True):
            return _fold_right(self, other)
    return _batched(self, other)


@matmul.with_out
def _matmul_into(self, other, out):
    n, m = self._array.ndim, other._array.ndim
    if n == 0 or m == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {n}D and {m}D")
    if threads.state.grad_enabled and (self._keys | other._keys | out._keys) & AUTOGRAD:
        check_grad(matmul, (out,), (self, other))
    if n == 1 and m == 1:
        return aten.dot(self, other, out=out)
    if n == 2 and m == 1:
        return aten.mv(self, other, out=out)
    if n == 1 and m == 2:
        return aten.squeeze_(aten.mm(aten.unsqueeze(self, 0), other, out=out), 0)
    if n == 2 and m == 2:
        return aten.mm(self, other, out=out)
    on_device(matmul, (self, other), [self, other], self._keys | other._keys, (out,))
    try:
        product = matmul.kernel(self, other)
    except NotImplementedError:
        exact(self.dtype, out.dtype)  # what torch looks at before it asks for a kernel
        raise
    store_out(matmul, (self, other), (out,), (product,))
    return out


def _folds(array, small, right=False):
    """Whether the larger operand is folded into one matrix: for the smaller one's gradient, or if that costs no copy.

    On the right, the product with a matrix would have to be transposed back, which is a copy too.
    """
    if small._keys & AUTOGRAD or not array.size:
        return True
    if right and small._array.ndim == 2:
        return False
    shape, strides = array.shape, array.strides
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(array.ndim - 2))


def _fold_left(self, other):
    shape = self._array.shape
    folded = aten.reshape(self, (math.prod(shape[:-1]), shape[-1]))
    if other._array.ndim == 1:
        return aten._unsafe_view(aten.mv(folded, other), shape[:-1])
    return aten._unsafe_view(aten.mm(folded, other), (*shape[:-1], other._array.shape[1]))


def _fold_right(self, other):
    """small @ large = (largeᵀ @ smallᵀ)ᵀ"""
    large = aten.mT(other)
    shape = large._array.shape
    if self._array.ndim == 1:
        folded = aten.reshape(large, (math.prod(shape[:-1]), shape[-1]))
        return aten._unsafe_view(aten.mv(folded, self), shape[:-1])
    small = aten.t(self)
    folded = aten.reshape(large, (math.prod(shape[:-1]), shape[-1]))
    transposed = aten._unsafe_view(aten.mm(folded, small), (*shape[:-1], small._array.shape[1]))
    return aten.contiguous(aten.mT(transposed))


def _batched(self, other):
    n, m = self._array.ndim, other._array.ndim
    a = (1, *self._array.shape) if n == 1 else self._array.shape
    b = other._array.shape
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        at = next(i for i in range(1, 64) if a[-2 - i] != b[-2 - i] and 1 not in (a[-2 - i], b[-2 - i]))
        raise RuntimeError(
            f"The size of tensor a ({a[-2 - at]}) must match the size of tensor b ({b[-2 - at]}) at "
            f"non-singleton dimension {max(len(a), len(b)) - 2 - at}"
        ) from None
    count = math.prod(batch)
    left = aten.reshape(aten.expand(self, (*batch, *a[-2:])), (count, *a[-2:]))
    if m == 1:
        vectors = aten.reshape(aten.expand(other, (*batch, *b)), (count, *b))
        products = aten.squeeze(aten.bmm(left, aten.unsqueeze(vectors, 2)), -1)
        return aten._unsafe_view(products, (*batch, a[-2]))
    right = aten.reshape(aten.expand(other, (*batch, *b[-2:])), (count, *b[-2:]))
    shape = (*batch, *(() if n == 1 else (a[-2],)), b[-1])
    return aten._unsafe_view(aten.bmm(left, right), shape)


@composite(
    "linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor",
    samples=lambda make: [
        (make(3, 4), make(2, 4)),
        (make(3, 4), make(2, 4), make(2)),
        (make(2, 3, 4), make(2, 4), make(2)),
        (make(4), make(2, 4), make(2)),
    ],
    autocast=Autocast.LOWER,
    out=True,
)
def linear(input, weight, bias):
    """`input @ weight.T + bias`.

    >>> F.linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([0.5]))
    tensor([[11.5000]])
    """
    array = input._array
    if bias is not None and array.ndim == 2:
        return aten.addmm(bias, input, aten.t(weight))
    if bias is not None and (array.flags.c_contiguous or array.ndim == 1) and weight._array.ndim == 2:
        shape = array.shape
        if not shape:
            raise RuntimeError("both arguments to linear need to be at least 1D, but they are 0D and 2D")
        folded = aten.view(input, (math.prod(shape[:-1]), shape[-1]))
        product = aten.addmm(bias, folded, aten.t(weight))
        return aten.view(product, (*shape[:-1], weight._array.shape[0]))
    product = aten.matmul(input, aten.t(weight))
    if bias is None:
        return product
    return aten.add(product, bias) if product._keys & AUTOGRAD else aten.add_(product, bias)
