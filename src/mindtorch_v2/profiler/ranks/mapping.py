"""From files to digests: the part of the work that runs on any engine, in this process or on another machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from ...version import __version__
from ..formats._recovery import TraceError
from ..formats.detect import read_any
from . import digest_file
from .digest import NoRankError, make_digest
from .recorded_rows import RecordedRows, read_rows, rows_of_store
from .sources import Source, is_remote, open_source

FILES_PER_TASK = 25
# What a worker must be of: digests of different versions are not comparable.
WORKER_VERSION = f"{__version__}/{digest_file.VERSION}"


@dataclass(frozen=True)
class Mapped:
    """What became of one file: its digests, or the reason why there are none."""

    label: str
    blocks: tuple[bytes, ...]
    reason: str = ""


@dataclass(frozen=True)
class TaskResult:
    """What a worker returns."""

    version: str
    files: tuple[Mapped, ...]


def tasks(sources: Sequence[Source], per_task: int = FILES_PER_TASK) -> list[tuple[tuple[str, str], ...]]:
    """The sources cut into tasks, as plain pairs of label and path."""
    pairs = [(source.label, source.path) for source in sources]
    return [tuple(pairs[at : at + per_task]) for at in range(0, len(pairs), per_task)]


def run_task(files: Sequence[tuple[str, str]]) -> TaskResult:
    """Make the digests of some files. A file that is none of a rank, or damaged, is left out with the reason."""
    return TaskResult(WORKER_VERSION, tuple(map_file(label, path) for label, path in files))


def map_file(label: str, path: str) -> Mapped:
    """The digest of one recording, or those of a file of digests."""
    try:
        if not is_remote(path) and os.path.isdir(path):
            return Mapped(label, (digest_file.encode(make_digest(_folder_rows(path), label)),))
        file, size = open_source(path)
        with file:
            if size == 0:
                return Mapped(label, (), "the file is empty")
            if file.read(len(digest_file.MAGIC)) == digest_file.MAGIC:
                file.seek(0)
                blocks = tuple(digest_file.read_blocks(file.read()))
                for block in blocks:
                    digest_file.decode(block)
                return Mapped(label, blocks)
            file.seek(0)
            return Mapped(label, (digest_file.encode(make_digest(read_rows(file, size), label)),))
    except (TraceError, NoRankError) as error:
        return Mapped(label, (), str(error).replace(repr(path), "the file"))
    except Exception as error:
        # Any file may lie in a folder: whatever is wrong with one must not end the work on the others.
        return Mapped(label, (), f"{type(error).__name__}: {error}".replace(repr(path), "the file"))


def _folder_rows(path: str) -> RecordedRows:
    """Of a recording that is a folder, such as those of Ascend's profiler."""
    store, recovery = read_any(path)
    rows = rows_of_store(store)
    rows.damage = "" if recovery.intact else str(recovery)
    return rows
