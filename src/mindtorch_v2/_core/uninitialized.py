"""Memory that no one has set yet, and what it is filled with as long as programs want it to be the same in each run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import dtype as dt


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
