"""Bits: and, or, xor, not, shifts, the operators made of them, and hashes."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.dispatcher import as_operator
from ..._dispatch.facts import Promotion, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, normal_dims, reduced_shape

_DOCS = {
    "bitwise_and": """The bits that both operands have; logical and for bools.

    >>> torch.bitwise_and(torch.tensor([12, 10]), torch.tensor([10, 6]))
    tensor([8, 2])
    """,
    "bitwise_or": """The bits that either operand has; logical or for bools.

    >>> torch.bitwise_or(torch.tensor([12, 10]), torch.tensor([10, 6]))
    tensor([14, 14])
    """,
    "bitwise_xor": """The bits that exactly one operand has; exclusive or for bools.

    >>> torch.bitwise_xor(torch.tensor([12, 10]), torch.tensor([10, 6]))
    tensor([ 6, 12])
    """,
    "bitwise_left_shift": """Moves bits to the left by as many places as `other` says.

    >>> torch.bitwise_left_shift(torch.tensor([1, 3]), torch.tensor([2, 1]))
    tensor([4, 6])
    """,
    "bitwise_right_shift": """Moves bits to the right by as many places as `other` says, keeping the sign.

    >>> torch.bitwise_right_shift(torch.tensor([8, -8]), torch.tensor([2, 1]))
    tensor([ 2, -4])
    """,
}


def _integers(make):
    return [(make.ints(20, 3, 4), make.ints(5, 3, 4))]


def _with_number(make):
    return [(make.ints(20, 3, 4), 3)]


def _of_number(make):
    return [(3, make.ints(5, 3, 4))]


def _bits(name, ufunc):
    op(
        f"{name}.Tensor(Tensor self, Tensor other) -> Tensor",
        ufunc,
        promote=Promotion.SAME,
        nondiff=True,
        inplace=True,
        samples=_integers,
        doc=_DOCS[name],
    )
    op(
        f"{name}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        lambda self, other: ufunc(other, self),
        promote=Promotion.SAME,
        promoted=("self", "other"),
        nondiff=True,
        tensors_only=True,
        out=False,
        samples=_of_number,
    )


for _name, _ufunc in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    _bits(f"bitwise_{_name}", _ufunc)

op(
    "bitwise_not(Tensor self) -> Tensor",
    np.invert,
    promote=Promotion.SAME,
    nondiff=True,
    inplace=True,
    samples=lambda make: [(make.ints(20, 3, 4),)],
    doc="""Turns every bit around; logical not for bools.

    >>> torch.bitwise_not(torch.tensor([0, 5]))
    tensor([-1, -6])
    """,
)

# ---------------------------------------------------------------- shifts


def _shifted(side, ufunc):
    """A shift by more bits than there are gives 0 (or the sign) in torch and anything in C."""

    def kernel(self, other, out=None):
        if self.dtype.kind not in "iu":
            raise TypeError("only integers have bits to shift")
        beyond = (np.asarray(other) < 0) | (np.asarray(other) >= self.dtype.itemsize * 8)  # first: `out` may be an operand
        if not beyond.any():
            return ufunc(self, other, out)
        flood = 0 if ufunc is np.left_shift else np.where(self < 0, -1, 0)
        shifted = ufunc(self, other, out)
        if out is None:
            return np.where(beyond, flood, shifted).astype(self.dtype)
        np.copyto(out, flood, where=beyond, casting="unsafe")
        return out

    return kernel


for _name, _shift in (("left", np.left_shift), ("right", np.right_shift)):
    _kernel = _shifted(_name, _shift)
    op(
        f"bitwise_{_name}_shift.Tensor(Tensor self, Tensor other) -> Tensor",
        _kernel,
        promote=Promotion.SAME,
        nondiff=True,
        inplace=True,
        samples=_integers,
        kernel_name=f"{_name[0]}shift_cpu",
        doc=_DOCS[f"bitwise_{_name}_shift"],
    )
    op(
        f"bitwise_{_name}_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
        lambda self, other, kernel=_kernel: kernel(np.array(self, other.dtype), other),
        promote=Promotion.SAME,
        promoted=("self", "other"),
        nondiff=True,
        tensors_only=True,
        out=False,
        samples=_of_number,
        kernel_name=f"{_name[0]}shift_cpu",
    )
    op(
        f"__{_name[0]}shift__.Tensor(Tensor self, Tensor other) -> Tensor",
        _kernel,
        promote=Promotion.SAME,
        nondiff=True,
        samples=_integers,
        kernel_name=f"{_name[0]}shift_cpu",
        handwritten=Surface.METHOD,
    )

# ---------------------------------------------------------------- hashes

_HASHED = (dt.float64, dt.float32, dt.float16, dt.bfloat16, dt.int64, dt.int32, dt.int16, dt.int8, dt.uint8, dt.bool_)


@op(
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    nondiff=True,
    shape=lambda self, dim, keepdim, mode: (reduced_shape(self._array.shape, dim, keepdim), np.dtype(np.uint64)),
    samples=lambda make: [(make(3, 4),), (make.ints(9, 3, 4), 1)],
    doc="""A hash of the bits of all elements, or of those along `dim`.

    >>> torch.hash_tensor(torch.tensor([1, 2, 3]))
    tensor(0, dtype=torch.uint64)
    """,
)
def hash_tensor(self, dim, keepdim, mode):
    """The exclusive or of all elements, each as the 64 bits that it has as float64 or int64."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dims = normal_dims(dim, self.ndim)
    if not self.size:
        if not dim:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument."
            )
        for d in dims:
            if not self.shape[d]:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    kind = dt.from_numpy(self.dtype)
    if kind not in _HASHED:
        raise no_kernel("xor_sum_cpu", self)
    words = self.astype(np.float64 if kind.is_floating_point else np.int64, order="C").view(np.uint64)
    return np.bitwise_xor.reduce(words, axis=dims, keepdims=keepdim)


# ---------------------------------------------------------------- operators


def _operator(symbol, name):
    """`a & b` and `a &= b`: torch records the operator around the op."""
    for overload, kind, samples in (("Tensor", "Tensor", _integers), ("Scalar", "Scalar", _with_number)):
        composite(
            f"__{symbol}__.{overload}(Tensor self, {kind} other) -> Tensor",
            lambda self, other: getattr(aten, name)(self, other),
            samples=samples,
            handwritten=Surface.METHOD,
        )
        composite(
            f"__i{symbol}__.{overload}(Tensor(a!) self, {kind} other) -> Tensor(a!)",
            lambda self, other: getattr(aten, name + "_")(self, other),
            samples=samples,
            handwritten=Surface.METHOD,
        )


for _name in ("and", "or", "xor"):
    _operator(_name, f"bitwise_{_name}")

for _name, _long in (("lshift", "bitwise_left_shift"), ("rshift", "bitwise_right_shift")):
    for _overload in ("Tensor", "Scalar"):
        composite(
            f"__i{_name}__.{_overload}(Tensor(a!) self, {_overload} other) -> Tensor(a!)",
            lambda self, other, name=_long: getattr(aten, name + "_")(self, other),
            samples=_integers if _overload == "Tensor" else _with_number,
            handwritten=Surface.METHOD,
        )


def _reversed(name):
    return as_operator(lambda self, other: getattr(aten, name)(other, self))


OPERATORS = {"__rlshift__": _reversed("bitwise_left_shift"), "__rrshift__": _reversed("bitwise_right_shift")}
