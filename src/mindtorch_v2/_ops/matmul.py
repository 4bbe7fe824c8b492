"""Matrix products, and what torch composes of them."""

from __future__ import annotations

import math

import numpy as np

from .._core.keys import AUTOGRAD
from .._dispatch.registry import aten, composite, op


def _check_mm(self, mat2, name="mm"):
    if self.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"{name}: expected two matrices, got {self.ndim}-D and {mat2.ndim}-D tensors")
    if self.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({self.shape[0]}x{self.shape[1]} and "
                           f"{mat2.shape[0]}x{mat2.shape[1]})")
    if self.dtype != mat2.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {_word(self)} != {_word(mat2)}")


def _word(array):
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "bfloat16": "c10::BFloat16",
            "float16": "c10::Half"}.get(array.dtype.name, array.dtype.name)


def _mm_shape(self, mat2):
    return (self._array.shape[0], mat2._array.shape[1]), self._array.dtype


def _column_major(shape, strides):
    """Whether a matrix is laid out by columns, as the transpose of a row-major one is."""
    return len(shape) == 2 and strides[0] < strides[1] and strides[1] == strides[0] * max(shape[0], 1)


def mm_self_grad(g, mat2, shape, strides):
    """d/dself of self @ mat2, computed transposed when self is column-major, so that the layouts match."""
    if _column_major(shape, strides):
        return aten.t(aten.mm(mat2, aten.t(g)))
    return aten.mm(g, aten.t(mat2))


def mm_mat2_grad(g, self, shape, strides):
    """d/dmat2 of self @ mat2, likewise."""
    if _column_major(shape, strides):
        return aten.t(aten.mm(aten.t(g), self))
    return aten.mm(aten.t(self), g)


@op("mm(Tensor self, Tensor mat2) -> Tensor", shape=_mm_shape, flops=lambda self, mat2: 2 * self[0] * self[1] * mat2[1])
def mm(self, mat2):
    _check_mm(self, mat2)
    return np.dot(self, mat2) if self.dtype.kind != "V" else np.matmul(self, mat2)


mm.vjp(self=lambda g, mat2, self_shape, self_strides: mm_self_grad(g, mat2, self_shape, self_strides),
       mat2=lambda g, self, mat2_shape, mat2_strides: mm_mat2_grad(g, self, mat2_shape, mat2_strides))


@op("addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    shape=lambda self, mat1, mat2, beta, alpha: _mm_shape(mat1, mat2),
    flops=lambda self, mat1, mat2, *_: 2 * mat1[0] * mat1[1] * mat2[1])
def addmm(self, mat1, mat2, beta, alpha):
    _check_mm(mat1, mat2, "addmm")
    if self.dtype != mat1.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {_word(self)} and {_word(mat2)}")
    product = np.dot(mat1, mat2) if mat1.dtype.kind != "V" else np.matmul(mat1, mat2)
    if alpha != 1:
        product *= alpha
    if beta == 0:
        return product
    return np.add(product, self if beta == 1 else self * beta, out=product)


def _scaled(t, factor):
    return t if factor == 1 else t * factor


addmm.vjp(self=lambda g, beta: _scaled(g, beta),
          mat1=lambda g, mat2, mat1_shape, mat1_strides, alpha:
          _scaled(mm_self_grad(g, mat2, mat1_shape, mat1_strides), alpha),
          mat2=lambda g, mat1, mat2_shape, mat2_strides, alpha:
          _scaled(mm_mat2_grad(g, mat1, mat2_shape, mat2_strides), alpha))


@op("bmm(Tensor self, Tensor mat2) -> Tensor",
    shape=lambda self, mat2: ((*self._array.shape[:2], mat2._array.shape[2]), self._array.dtype),
    flops=lambda self, mat2: 2 * math.prod(self) * mat2[2])
def bmm(self, mat2):
    if self.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor" if self.ndim != 3 else "batch2 must be a 3D tensor")
    if self.shape[0] != mat2.shape[0] or self.shape[2] != mat2.shape[1]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{self.shape[0]}, {self.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}].")
    return np.matmul(self, mat2)


bmm.vjp(self=lambda g, mat2: aten.bmm(g, mat2.transpose(1, 2)), mat2=lambda g, self: aten.bmm(self.transpose(1, 2), g))


@op("mv(Tensor self, Tensor vec) -> Tensor", shape=lambda self, vec: ((self._array.shape[0],), self._array.dtype),
    flops=lambda self, vec: 2 * self[0] * self[1])
def mv(self, vec):
    if self.ndim != 2 or vec.ndim != 1 or self.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({'x'.join(map(str, self.shape))}), vec ({vec.shape[0]})")
    return np.dot(self, vec)


mv.vjp(self=lambda g, vec: aten.ger(g, vec), vec=lambda g, self: aten.mv(aten.t(self), g))


@op("dot(Tensor self, Tensor tensor) -> Tensor", shape=lambda self, tensor: ((), self._array.dtype),
    flops=lambda self, tensor: 2 * self[0])
def dot(self, tensor):
    if self.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {self.ndim}D and {tensor.ndim}D tensors")
    if self.shape != tensor.shape:
        raise RuntimeError(f"inconsistent tensor size, expected tensor [{self.shape[0]}] and src [{tensor.shape[0]}] to "
                           f"have the same number of elements, but got {self.shape[0]} and {tensor.shape[0]} elements "
                           "respectively")
    return np.dot(self, tensor)


dot.vjp(self=lambda g, tensor: g * tensor, tensor=lambda g, self: g * self)

composite("outer(Tensor self, Tensor vec2) -> Tensor", lambda self, vec2: self.reshape(-1, 1) * vec2)
composite("ger(Tensor self, Tensor vec2) -> Tensor", lambda self, vec2: aten.outer(self, vec2))


@composite("matmul(Tensor self, Tensor other) -> Tensor")
def matmul(self, other):
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
    if n >= 3 and m <= 2 and _folds(self, other):
        return _fold_left(self, other)
    if m >= 3 and n <= 2 and _folds(other, self, right=True):
        return _fold_right(self, other)
    return _batched(self, other)


def _folds(large, small, right=False):
    """Whether the larger operand is folded into one matrix: without a copy, or when the smaller requires grad."""
    if small._keys & AUTOGRAD:
        return True
    array = (large._array.swapaxes(-1, -2) if large._array.ndim >= 2 else large._array) if right else large._array
    return array.flags.c_contiguous


def _fold_left(self, other):
    shape = self._array.shape
    folded = aten.reshape(self, (-1, shape[-1]))
    if other._array.ndim == 1:
        return aten._unsafe_view(aten.mv(folded, other), shape[:-1])
    return aten._unsafe_view(aten.mm(folded, other), (*shape[:-1], other._array.shape[1]))


def _fold_right(self, other):
    """small @ large = (largeᵀ @ smallᵀ)ᵀ"""
    large = aten.mT(other)
    shape = large._array.shape
    if self._array.ndim == 1:
        folded = aten.reshape(large, (-1, shape[-1]))
        return aten._unsafe_view(aten.mv(folded, self), shape[:-1])
    small = aten.t(self)
    folded = aten.reshape(large, (-1, shape[-1]))
    made = aten._unsafe_view(aten.mm(folded, small), (*shape[:-1], small._array.shape[1]))
    return aten.contiguous(aten.mT(made))


def _batched(self, other):
    n, m = self._array.ndim, other._array.ndim
    left = aten.unsqueeze(self, 0) if n == 1 else self
    right = aten.unsqueeze(other, 1) if m == 1 else other
    a, b = left._array.shape, right._array.shape
    try:
        batch = np.broadcast_shapes(a[:-2], b[:-2])
    except ValueError:
        raise RuntimeError(f"The size of tensor a ({a[0]}) must match the size of tensor b ({b[0]}) at non-singleton "
                           "dimension 0") from None
    if a[-1] != b[-2]:
        raise RuntimeError("Expected size for first two dimensions of batch2 tensor to be: "
                           f"[{math.prod(batch)}, {a[-1]}] but got: [{math.prod(batch)}, {b[-2]}].")
    count = math.prod(batch)
    left = aten.reshape(aten.expand(left, (*batch, *a[-2:])), (count, *a[-2:]))
    right = aten.reshape(aten.expand(right, (*batch, *b[-2:])), (count, *b[-2:]))
    shape = (*batch, *(() if n == 1 else (a[-2],)), *(() if m == 1 else (b[-1],)))
    return aten._unsafe_view(aten.bmm(left, right), shape)


@composite("linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor")
def linear(input, weight, bias):
    array = input._array
    if bias is not None and array.ndim == 2:
        return aten.addmm(bias, input, aten.t(weight))
    if bias is not None and (array.flags.c_contiguous or array.ndim == 1) and weight._array.ndim == 2:
        shape = array.shape
        folded = aten.view(input, (-1, shape[-1]))
        product = aten.addmm(bias, folded, aten.t(weight))
        return aten.view(product, (*shape[:-1], weight._array.shape[0]))
    product = aten.matmul(input, aten.t(weight))
    if bias is None:
        return product
    return aten.add_(product, bias) if not product._keys & AUTOGRAD else aten.add(product, bias)
