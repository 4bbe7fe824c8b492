"""Which dtypes a tensor given as `out=` may have: checks of the dtype that a result has against the one that is to hold it."""

from __future__ import annotations

from .._core import dtype as dt


def castable(computed: dt.dtype, held: dt.dtype) -> None:
    """The rule of ops that promote their operands: any dtype that a result can be cast to."""
    if not dt.can_cast(computed, held):
        raise RuntimeError(f"result type {computed.scalar_name} can't be cast to the desired output type {held.scalar_name}")


def same(computed: dt.dtype, held: dt.dtype) -> None:
    """The rule of ops that iterate over operands of one dtype."""
    if held is not computed:
        raise RuntimeError(f"Found dtype {held.scalar_name} but expected {computed.scalar_name}")


def exact(computed: dt.dtype, held: dt.dtype) -> None:
    """The rule of ops that know their result's dtype before they compute it."""
    if held is not computed:
        raise RuntimeError(f"Expected out tensor to have dtype {computed.cpp_name}, but got {held.cpp_name} instead")


def unchecked(computed: dt.dtype, held: dt.dtype) -> None:
    """The rule of ops whose result is stored in any dtype."""
