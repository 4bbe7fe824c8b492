"""Tensors on the memory of a file: `torch.from_file`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.untyped_storage import map_file
from ..._dispatch.registry import op
from .._support.common import np_dtype
from .._support.factory import OPTIONS, check_options


@op(
    f"from_file(str filename, bool? shared=None, int? size=0, {OPTIONS}) -> Tensor",
    nondiff=True,
    samples=lambda make: [],
    doc="""A tensor on the memory of a file.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     count = file.write(bytes([1, 2, 3]))
    ...     file.flush()
    ...     torch.from_file(file.name, size=3, dtype=torch.uint8)
    tensor([1, 2, 3], dtype=torch.uint8)
    """,
)
def from_file(
    filename: str, shared: bool | None, size: int | None, dtype: Any, layout: Any, device: Any, pin_memory: Any
) -> np.ndarray:
    """A 1-d tensor of the first `size` elements of a file; writing to it changes the file if it is shared."""
    if pin_memory:
        raise RuntimeError("tensors constructed from a file cannot be pinned")
    check_options(layout, pin_memory)
    kind, count = np_dtype(dtype), size or 0
    if count < 0:
        raise RuntimeError(f"from_file: the number of elements must not be negative, got {count}")
    if not count:
        return np.empty(0, kind)
    mapped: Any = map_file(filename, bool(shared), count * kind.itemsize)
    return np.ndarray((count,), kind, mapped)
