"""Bits: and, or, xor, not, shifts, and the operators made of them."""

from __future__ import annotations

import numpy as np

from .._dispatch.registry import aten, composite, op


def _integers(make):
    return [(make.ints(20, 3, 4), make.ints(5, 3, 4))]


for _name, _ufunc in (("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor)):
    op(f"{_name}.Tensor(Tensor self, Tensor other) -> Tensor", _ufunc, promote="same", nondiff=True, inplace=True,
       samples=_integers)

op("bitwise_not(Tensor self) -> Tensor", np.invert, promote="same", nondiff=True, inplace=True,
   samples=lambda make: [(make.ints(20, 3, 4),)])


def _shift(name, ufunc, overload):
    """A shift of more bits than there are gives 0 (or the sign) in torch and anything in C."""
    def kernel(self, other, out=None):
        bits = self.dtype.itemsize * 8
        made = ufunc(self, other, out)
        beyond = (np.asarray(other) < 0) | (np.asarray(other) >= bits)
        if beyond.any():
            flood = 0 if ufunc is np.left_shift else np.where(self < 0, -1, 0).astype(self.dtype)
            if out is None:
                return np.where(beyond, flood, made).astype(self.dtype)
            np.copyto(out, flood, where=beyond, casting="unsafe")
        return made

    op(f"{name}{overload}(Tensor self, Tensor other) -> Tensor", kernel, promote="same", nondiff=True,
       inplace=not name.startswith("__"), samples=_integers)


_shift("bitwise_left_shift", np.left_shift, ".Tensor")
_shift("bitwise_right_shift", np.right_shift, ".Tensor")
_shift("__lshift__", np.left_shift, ".Tensor")
_shift("__rshift__", np.right_shift, ".Tensor")

for _name in ("and", "or", "xor"):
    composite(f"__{_name}__.Tensor(Tensor self, Tensor other) -> Tensor",
              lambda self, other, name=f"bitwise_{_name}": getattr(aten, name)(self, other), samples=_integers)
    composite(f"__i{_name}__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
              lambda self, other, name=f"bitwise_{_name}_": getattr(aten, name)(self, other), samples=_integers)
