"""The source files that stacks name: which are the program's own, where they are, and whether they are still what ran.

In: the texts of stacks, "train.py(12): forward". At the end of a recording `recorded_sources` notes where each file is and what
it contained; `SourceFiles` finds and reads them when something is to be shown.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from ..._io.working_folder import absolute
from ...store.store import EventStore
from .places import FRAMEWORK, parsed

FOUND, MISSING, CHANGED = "found", "missing", "changed"

# The modules beside this package that start the profiler; in a checkout they are in no folder of installed packages.
_BESIDE = Path(__file__).resolve().parents[4].as_posix()
_ENTRIES = (f"{_BESIDE}/mtprof.py", f"{_BESIDE}/mtprof_pytest/")
_MOST_BYTES = 4 << 20  # of a file that is shown
_MOST_KEPT_BYTES = 1 << 18  # of code in no file, which is kept in the recording


class SourceText(NamedTuple):
    """A file: its path, its lines without their ends, and FOUND, MISSING or CHANGED since it ran."""

    path: str
    lines: list[str]
    state: str


def recorded_sources(stacks: Iterable[tuple[str, ...]]) -> dict[str, dict[str, Any]]:
    """Path and digest of every file in the stacks that is there now, by the name it has in them.

    Code that is in no file, such as a notebook's cell, is kept as text: afterwards it is nowhere to be read.
    """
    found = {}
    for name in _files(stacks):
        path = _path(name, ())
        content = _content(path)
        found[name] = {"path": path, "digest": None if content is None else _digest(content), "own": _is_own_path(name, path)}
        if content is not None and found[name]["own"] and len(content) <= _MOST_KEPT_BYTES and not os.path.isfile(path):
            found[name]["text"] = content.decode("utf-8", "replace")
    return found


class SourceFiles:
    """The files of one recording. `folder`: where else to look for files that are named relative to something."""

    def __init__(self, store: EventStore, folder: str | None = None) -> None:
        noted = store.options.get("sources")
        self._noted: dict[str, Any] = noted if isinstance(noted, dict) else {}
        self._folders = () if folder is None else (folder,)
        self._recorded_ns = store.wall_start_ns
        self._own: dict[str, bool] = {}

    def is_own(self, name: str) -> bool:
        """Whether a file is the program's, not this package's, torch's, an installed package's or the standard library's."""
        known = self._own.get(name)
        if known is None:
            note = self._note(name)
            own = note.get("own")
            known = self._own[name] = own if isinstance(own, bool) else _is_own_path(name, self._path(name))
        return known

    def read(self, name: str) -> SourceText:
        """The text of a file as it is now. A file that changed since it ran is shown all the same, and is CHANGED."""
        path = self._path(name)
        kept = self._note(name).get("text")
        if isinstance(kept, str):
            return SourceText(path, kept.splitlines(), FOUND)
        content = _content(path)
        if content is None:
            return SourceText(path, [], MISSING)
        digest = self._note(name).get("digest")
        known = isinstance(digest, str)
        changed = digest != _digest(content) if known else 0 < self._recorded_ns < _modified_ns(path)
        return SourceText(path, content.decode("utf-8", "replace").splitlines(), CHANGED if changed else FOUND)

    def _note(self, name: str) -> dict[str, Any]:
        note = self._noted.get(name)
        return note if isinstance(note, dict) else {}

    def _path(self, name: str) -> str:
        noted = self._note(name).get("path")
        return noted if isinstance(noted, str) and os.path.isfile(noted) else _path(name, self._folders)


def _files(stacks: Iterable[tuple[str, ...]]) -> Iterator[str]:
    texts = {text for stack in stacks for text in stack}
    yield from dict.fromkeys(frame.file for text in sorted(texts) if (frame := parsed(text)) is not None)


def _path(name: str, folders: tuple[str, ...]) -> str:
    """Where the file is: stacks name files relative to the folder of sys.path that they are in."""
    if os.path.isabs(name) or name.startswith("<"):
        return name
    for folder in (*folders, *sys.path, os.curdir):
        whole = absolute(folder or os.curdir)
        if whole is not None and os.path.isfile(path := os.path.join(whole, name)):
            return path
    return name


def _content(path: str) -> bytes | None:
    """The bytes of a file, or of what linecache has under that name: the cells of a notebook."""
    try:
        if os.path.isfile(path) and os.path.getsize(path) <= _MOST_BYTES:
            with open(path, "rb") as stream:
                return stream.read()
        lines = linecache.getlines(path)
    except (OSError, ValueError):  # a name that no file can have
        return None
    return "".join(lines).encode("utf-8", "replace") if lines else None


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _modified_ns(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _is_own_path(name: str, path: str) -> bool:
    slashed = path.replace("\\", "/")
    if name.startswith("<"):
        return _content(name) is not None  # a cell, not code that was generated
    if name.replace("\\", "/").startswith(FRAMEWORK) or "-packages/" in slashed:
        return False
    return not slashed.startswith((*_ENTRIES, *_library_folders()))


@cache
def _library_folders() -> tuple[str, ...]:
    """Folders of the standard library and of installed commands, each with a slash at its end."""
    kinds = ("stdlib", "platstdlib", "scripts")
    folders = {folder for kind in kinds if (folder := sysconfig.get_path(kind))}
    folders |= {os.path.realpath(folder) for folder in folders}
    return tuple(folder.replace("\\", "/").rstrip("/") + "/" for folder in sorted(folders))
