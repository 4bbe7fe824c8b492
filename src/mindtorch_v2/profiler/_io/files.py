"""The one writer of the profiler's files: whole or not at all, gzipped if the name says so."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable

from ..._core.files import check_writable as check_writable
from ..._core.files import write_whole

# Measured on traces: 3 takes 40 % of the time of 6 and writes 15 % more; 1 and 2 are hardly faster than 3.
_LEVEL = 3
_GZIP = 31  # zlib's window bits for a gzip header and trailer


def path_text(path: object) -> str:
    """A path as text; AttributeError for other types, as in torch."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise AttributeError(f"a path is text or os.PathLike, not {type(path).__name__}")
    return os.fsdecode(path)


def write_file(path: str | bytes | os.PathLike[str], blocks: Iterable[bytes]) -> None:
    """Write blocks to `path`, gzipped if its name ends in .gz. An OSError leaves an existing file as it was."""
    write_whole(path, _gzipped(blocks) if os.fsdecode(path).endswith(".gz") else blocks)


def _gzipped(blocks: Iterable[bytes]) -> Iterable[bytes]:
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    for block in blocks:
        yield packer.compress(block)
    yield packer.flush()
