"""The switch `use_deterministic_algorithms`: the alert of ops that torch has no deterministic implementation of, and what
memory is filled with that no one has set yet, so that it is the same in each run."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from . import dtype as dt
from .cpython import stack_level

_OURS = __name__.partition(".")[0]
_REST = "to help us prioritize adding deterministic support for this operation."


class Determinism:
    """The settings of the process: whether only deterministic algorithms are wanted, and whether others only warn."""

    wanted = False
    warns = False


def alert_not_deterministic(name: str) -> None:
    """RuntimeError, or a warning, for an op whose results depend in torch on the order in which threads write.

    They do not here; the programs that ask are those that want to hear of it before they run elsewhere.
    """
    if not Determinism.wanted:
        return
    if not Determinism.warns:
        raise RuntimeError(
            f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True)'. "
            "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
            "acceptable for your application. You can also file an issue at https://github.com/pytorch/pytorch/issues " + _REST
        )
    warnings.warn(
        f"{name} does not have a deterministic implementation, but you set 'torch.use_deterministic_algorithms(True, "
        f"warn_only=True)'. You can file an issue at https://github.com/pytorch/pytorch/issues {_REST}",
        UserWarning,
        stacklevel=stack_level(_OURS),
    )


# ---------------------------------------------------------------- memory that is left unset


class Uninitialized:
    """The setting of the process: whether such memory is filled."""

    filled = False


listeners: list[Callable[[bool], None]] = []
"""Told when the setting changes."""


def set_filled(on: bool) -> None:
    """Have uninitialized memory filled, or not, from now on."""
    if on is not Uninitialized.filled:
        Uninitialized.filled = on
        for listener in listeners:
            listener(on)


def filled(array: np.ndarray) -> np.ndarray:
    """The array, full of what stands for elements that were not set: nan, or the largest integer."""
    kind = array.dtype.kind
    if kind == "b":
        array.fill(True)
    elif kind in "iu":
        array.fill(np.iinfo(array.dtype).max)
    elif kind == "W" or dt.from_numpy(array.dtype).is_complex:
        parts = array.view(f"f{array.itemsize // 2}") if array.flags.c_contiguous and array.ndim else None
        if parts is None:
            array[...] = np.array(complex(np.nan, np.nan)).astype(array.dtype)
        else:
            parts.fill(np.nan)
    else:
        array[...] = np.array(np.nan).astype(array.dtype)
    return array
