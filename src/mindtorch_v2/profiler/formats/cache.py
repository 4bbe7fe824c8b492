"""Traces that were read once, kept as saved profiles in the user's cache folder, so that the next command needs no parsing.

A trace is known by its path, size and time of change. MTPROF_CACHE names another folder, or is `off`. The folder has at most
MOST_BYTES; what was not used for longest goes first. A cache that cannot be read or written changes nothing but the time.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from hashlib import blake2b

from ..store.store import EventStore
from . import saved
from ._recovery import Recovery, TraceError
from ._source import Progress

VARIABLE = "MTPROF_CACHE"
_OFF = ("off", "0", "no")
_LEAST_BYTES = 1 << 20  # smaller traces are read as quickly as found
MOST_BYTES = 2 << 30
_ENDING = ".mtp"
# What is read from a trace: to be changed with the reader, so that what older versions understood of a trace is not used.
_READER = 1

Read = Callable[[], tuple[EventStore, Recovery]]


def folder() -> str | None:
    """Where traces are kept; None if the user turned that off."""
    chosen = os.environ.get(VARIABLE)
    if chosen is not None:
        return None if chosen.lower() in (*_OFF, "") else chosen
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser("~")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "mtprof")


def read_cached(
    path: str | os.PathLike[str], read: Read, progress: Progress | None = None, *, least: int = _LEAST_BYTES
) -> tuple[EventStore, Recovery]:
    """What read() gives of a trace, or what it gave before if the file has not changed since.

    Only traces that were read whole are kept: of others the user is to be told each time what is missing.
    """
    place = _place(path, least)
    if place is None:
        return read()
    with contextlib.suppress(OSError, TraceError):
        store, recovery = saved.read(place, progress)
        if recovery.intact:
            with contextlib.suppress(OSError):
                os.utime(place)
            return store, Recovery("trace")
    store, recovery = read()
    # A file that grows while it is read belongs to neither of its states.
    if recovery.intact and _place(path, least) == place:
        with contextlib.suppress(OSError):
            _keep(store, place)
    return store, recovery


def _place(path: str | os.PathLike[str], least: int) -> str | None:
    """The file that a trace is kept in; None for what is not kept: small files, pipes, saved profiles, or nothing at all."""
    where = folder()
    if where is None or not isinstance(path, str | os.PathLike) or os.fspath(path).endswith(_ENDING):
        return None
    try:
        real = os.path.realpath(path)
        state = os.stat(real)
    except (OSError, ValueError):
        return None
    if not os.path.isfile(real) or state.st_size < least:
        return None
    key = f"{_READER}\0{real}\0{state.st_size}\0{state.st_mtime_ns}".encode("utf-8", "surrogatepass")
    return os.path.join(where, blake2b(key, digest_size=16).hexdigest() + _ENDING)


def _keep(store: EventStore, place: str) -> None:
    where = os.path.dirname(place)
    os.makedirs(where, mode=0o700, exist_ok=True)
    saved.save(store, place)
    known = []
    with os.scandir(where) as entries:
        for entry in entries:
            if entry.name.endswith(_ENDING) and entry.is_file(follow_symlinks=False):
                state = entry.stat()
                known.append((state.st_mtime_ns, state.st_size, entry.path))
    total = sum(size for _, size, _ in known)
    for _, size, old in sorted(known):
        if total <= MOST_BYTES:
            break
        with contextlib.suppress(OSError):
            os.remove(old)
        total -= size
