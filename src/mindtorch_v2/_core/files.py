"""Writes files whole or not at all, and checks names that become part of a path.

Everything that writes a file for a user comes here: exports, reports, saved profiles, checkpoints. What grows as it is written
(streamed recordings, event files) keeps its own file open instead.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

# Names of this process's open descriptors.
_DESCRIPTORS = re.compile(r"/dev/fd/(\d{1,9})|/proc/self/fd/(\d{1,9})|/dev/(stdout|stderr)")
IN_PLACE_OF_A_FOLDER = "cannot write a file in place of the folder"  # what an IsADirectoryError of these functions says
_STANDARD = {"stdout": 1, "stderr": 2}


def write_whole(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], blocks: Iterable[bytes | memoryview]) -> None:
    """Write blocks to `path`. A failure leaves an existing file as it was, no other file, and an OSError that names `path`.

    A new file has the permissions that open() gives it; one that exists keeps its own, and its owner where the process may set
    it. The end of a link is written, not the link. A pipe, a device and a descriptor (/dev/stdout) are written as they are.
    """
    target = os.fsdecode(path)
    with _named(target):
        if number := _descriptor(target):
            with os.fdopen(os.dup(number), "wb") as stream:  # a duplicate shares the position in the file
                stream.writelines(blocks)
            return
        before = _state(target)
        if before is not None and not stat.S_ISREG(before.st_mode):  # a pipe or a device
            with open(target, "wb") as stream:
                stream.writelines(blocks)
            return
        _replace(os.path.realpath(target), before, blocks)


def check_writable(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
    """Raise the OSError that `write_whole` would raise because of the path alone: for what takes long before it writes."""
    target = os.fsdecode(path)
    with _named(target):
        if _descriptor(target):
            return
        before = _state(target)
        if before is not None and not stat.S_ISREG(before.st_mode):
            return
        folder = os.path.dirname(os.path.realpath(target))
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), target)
        if not os.access(folder, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, "no file can be made in its folder", target)


def _state(target: str) -> os.stat_result | None:
    """What stands at the target, None for nothing; an OSError if no file can be written there."""
    if os.path.isdir(target) or target.endswith(os.sep):
        raise IsADirectoryError(errno.EISDIR, IN_PLACE_OF_A_FOLDER, target)
    try:
        found = os.stat(target)
    except FileNotFoundError:
        if not target:  # the real path of nothing is the current folder
            raise
        return None
    if not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, "cannot write to the file", target)
    return found


def _descriptor(target: str) -> int:
    """The number of the open descriptor that a path names, 0 if it names none."""
    named = _DESCRIPTORS.fullmatch(target)
    return 0 if named is None else _STANDARD.get(named[3]) or int(named[1] or named[2] or 0)


def _replace(target: str, before: os.stat_result | None, blocks: Iterable[bytes | memoryview]) -> None:
    """Write a file beside the target, and give it the target's name."""
    folder, name = os.path.split(target)
    # Hidden, and short enough for every folder that takes the target's name.
    beside = os.path.join(folder, f".{name[:40]}.{os.urandom(8).hex()}.part")
    # The permissions of a new file are open()'s: the kernel takes the umask off, which no thread can ask for without setting
    # it for all of them. What replaces a file is private until it has the permissions of that file.
    created = partial(os.open, mode=0o666 if before is None else 0o600)
    try:
        with open(beside, "xb", opener=created) as stream:
            stream.writelines(blocks)
        if before is not None:
            _take_after(beside, before)
        os.replace(beside, target)
    except FileExistsError:  # some other file has that name
        raise
    except BaseException:
        with suppress(OSError):  # the caller gets the first error
            os.unlink(beside)
        raise


def _take_after(path: str, before: os.stat_result) -> None:
    """Give a file the owner and the permissions that another had."""
    if hasattr(os, "chown") and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        with suppress(PermissionError):  # only root may give files away
            os.chown(path, before.st_uid, before.st_gid)
    os.chmod(path, before.st_mode & 0o777)


@contextmanager
def _named(target: str) -> Iterator[None]:
    """Let an OSError name the target, and not the temporary file."""
    try:
        yield
    except OSError as error:
        if error.filename == target:
            raise
        raise OSError(error.errno, error.strerror or str(error), target) from error


def name_in_folder(name: str, what: str) -> str:
    """A name that becomes a file's in a folder, or part of it; ValueError if it could lead out of that folder."""
    separators = "".join(filter(None, (os.sep, os.altsep, "/", "\\", "\0")))
    if not name or name in (os.curdir, os.pardir) or any(mark in name for mark in separators):
        raise ValueError(
            f"{what} becomes part of a file's name: it must not be empty, '.', '..' or have /, \\ or NUL, got {name!r}"
        )
    return name


def path_in_folder(folder: str, name: str, what: str) -> str:
    """The path of `name`, which may have folders in it, below a folder; ValueError if it leads out of that folder."""
    depth = 0
    for part in re.split(r"[/\\]", name):
        depth += -1 if part == os.pardir else part not in ("", os.curdir)
        if depth < 0:
            break
    if depth < 0 or "\0" in name or not name or os.path.isabs(name) or name[:1] in "/\\":
        raise ValueError(f"{what} names a place below {folder!r}: it must not lead out of there, got {name!r}")
    return os.path.join(folder, name)
