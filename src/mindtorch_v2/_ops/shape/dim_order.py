"""The order in which a tensor's dims lie in memory: `Tensor.dim_order`."""

from __future__ import annotations

import itertools
from typing import Any

from ..._core.memory_format import channels_last, channels_last_3d, contiguous_format, memory_format
from ..._core.tensor import Tensor
from .._support.factory import memory_order
from ..creation.copy import in_memory_format

_LAST = {4: channels_last, 5: channels_last_3d}


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dims from the outermost to the innermost.

    With `ambiguity_check=True` a RuntimeError says that other orders would describe the same memory, as where a dim has size
    one; a list of memory formats settles that for a tensor that lies in exactly one of them.
    """
    if not isinstance(ambiguity_check, bool) and not (
        isinstance(ambiguity_check, list) and all(isinstance(fmt, memory_format) for fmt in ambiguity_check)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    array, strides = self._array, self.stride()
    formats = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    ambiguous = 1 in array.shape or any(outer == inner for outer, inner in itertools.pairwise(strides))
    if ambiguity_check is not False and ambiguous and sum(_lies_in(array, fmt) for fmt in formats) != 1:
        raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")
    in_order = array.flags.c_contiguous
    if ambiguity_check and (_lies_in(array, _LAST.get(array.ndim)) if in_order else 0 in strides):
        raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(range(array.ndim) if in_order else memory_order(array))


def _lies_in(array: Any, fmt: memory_format | None) -> bool:
    if fmt is contiguous_format:
        return bool(array.flags.c_contiguous)
    return fmt is not None and fmt is _LAST.get(array.ndim) and in_memory_format(array, fmt)


METHODS = {"dim_order": dim_order}
