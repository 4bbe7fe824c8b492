"""Checks of the arguments of matrix functions, with torch's messages."""

from __future__ import annotations

from .._support.common import no_kernel, scalar_name

LAPACK = "fdFD"  # NumPy's letters for the dtypes that there are routines for


def need_matrix(ndim, name, argument="A"):
    """RuntimeError for a tensor with too few dims to hold matrices."""
    if ndim < 2:
        raise RuntimeError(f"{name}: The input tensor {argument} must have at least 2 dimensions.")


def check_square(array, prefix):
    if array.shape[-1] != array.shape[-2]:
        raise RuntimeError(
            f"{prefix}A must be batches of square matrices, but they are {array.shape[-2]} by {array.shape[-1]} matrices"
        )


def check_square_matrices(array, name):
    """RuntimeError unless these are square matrices; the dtype is left to the kernel."""
    need_matrix(array.ndim, name)
    check_square(array, f"{name}: ")


def check_kernel(array, kernel):
    """NotImplementedError for dtypes that LAPACK has no routine for, with the name of torch's kernel."""
    if array.dtype.char not in LAPACK:
        raise no_kernel(kernel, array)


def check_matrices(array, name, square=False, kernel=None):
    """RuntimeError unless these are (square) matrices of floats; the error for half floats names `kernel`, if there is one."""
    need_matrix(array.ndim, name)
    if square:
        check_square(array, f"{name}: ")
    if array.dtype.char in LAPACK:
        return
    if array.dtype.kind not in "fcV":
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {scalar_name(array)}")
    if kernel is not None:
        check_kernel(array, kernel)
    raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {scalar_name(array)}")


def check_two_dims(array, name):
    """RuntimeError for fewer than two dims, in the form that shows the size."""
    if array.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(array.shape)} instead")


def check_same_dtype(a, b, name, first="A"):
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected {first} and B to have the same dtype, but found {first} of type "
            f"{scalar_name(a)} and B of type {scalar_name(b)} instead"
        )


def check_right_side(a, shape, left, name):
    """RuntimeError unless a right-hand side of this shape fits a x = b (x a = b)."""
    need_matrix(len(shape), name, "B")
    if shape[-2 if left else -1] != a.shape[-1]:
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation "
            f"{'AX = B' if left else 'XA = B'} ({a.shape[-2]}x{a.shape[-1]} and {shape[-2]}x{shape[-1]})"
        )
    check_batches(shape, a.shape)


def check_system(b, a, name):
    """RuntimeError unless b and a form a system a x = b; the messages are those of functions that take b first."""
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_name(b)} and A of type "
            f"{scalar_name(a)} instead."
        )
    check_square(a, "")
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a.shape[-1]} by {a.shape[-1]} but each b "
            f"matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    check_batches(b.shape, a.shape)


def check_batches(first, second):
    """RuntimeError unless the dims before the last two can be broadcast together."""
    for back, (m, n) in enumerate(zip(first[-3::-1], second[-3::-1], strict=False), 3):
        if m != n and 1 not in (m, n):
            raise RuntimeError(
                f"The size of tensor a ({m}) must match the size of tensor b ({n}) at non-singleton "
                f"dimension {max(len(first), len(second)) - back}"
            )
