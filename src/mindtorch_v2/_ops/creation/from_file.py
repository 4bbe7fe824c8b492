"""Tensors on the memory of a file: `torch.from_file`."""

from __future__ import annotations

import mmap
import os
from typing import Any

import numpy as np

from ..._dispatch.registry import op
from .._support.common import np_dtype
from .._support.factory import OPTIONS, check_options


def _mapped(filename: str, shared: bool, nbytes: int) -> mmap.mmap:
    """The first bytes of a file as memory: shared memory is written to the file, which grows to that size if it is smaller;
    other memory is a copy made page by page as it is written to."""
    mode = "read-write" if shared else "read-only"
    try:
        descriptor = os.open(filename, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{filename}> in {mode} mode: {error.strerror} ({error.errno})") from None
    try:
        size = os.fstat(descriptor).st_size
        if size < nbytes:
            if not shared:
                raise RuntimeError(f"file <{filename}> size <{size}> is smaller than the required mapping size <{nbytes}>")
            os.ftruncate(descriptor, nbytes)
        return mmap.mmap(descriptor, nbytes, access=mmap.ACCESS_WRITE if shared else mmap.ACCESS_COPY)
    finally:
        os.close(descriptor)


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
    memory = _mapped(filename, bool(shared), count * kind.itemsize) if count else b""
    return np.frombuffer(memory, kind, count)
