"""The file that a recording is streamed to: frames go in, and what cannot be written now is written later.

The file is this process's for as long as a window is open: an advisory lock (`flock`) refuses a second writer. It stays at its
path: if it is removed or moved away meanwhile, what it has is copied to a new file at the path, and writing goes on there.
"""

from __future__ import annotations

import errno
import os
import warnings

try:
    import fcntl
except ImportError:  # not a POSIX system: two writers are not told apart there
    fcntl = None  # type: ignore[assignment]

# Bytes that wait while the disk is full. Beyond that, events are counted as dropped.
_MOST_WAITING = 32 << 20
_COPIED_AT_ONCE = 1 << 20
_FLAGS = os.O_RDWR | getattr(os, "O_CLOEXEC", 0)


class StreamFile:
    """A file that is written at its known end, so that a write that failed half-way can be repeated."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._number = -1
        self._blocks: list[bytes] = []
        self._left: tuple[int, int, int] | None = None  # device, inode and bytes of the file as the last window left it
        self.size = 0
        self.failure: OSError | None = None
        self.dropped = 0

    # ------------------------------------------------------------------ a window

    def goes_on(self) -> bool:
        """Whether the next window can go on where the last one ended; if not, it begins a new file.

        False before the first window and when the file is gone; FileExistsError when another one is in its place.
        """
        if self._number >= 0:
            return True
        if self._left is None:
            return False
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            return False
        if (found.st_dev, found.st_ino, found.st_size) != self._left:
            raise FileExistsError(
                errno.EEXIST, "stream_to: another file is in the place of the one that this profile wrote", self._path
            )
        return True

    def open(self, new: bool) -> None:
        """Open the file to write at its end, or at its beginning if it is to be new; no one else may be writing to it."""
        if self._number >= 0:  # still open, because the end of the last window could not be written
            return
        number = os.open(self._path, _FLAGS | os.O_CREAT, 0o666)
        try:
            _lock(number, self._path)
            if new:
                os.ftruncate(number, 0)
        except BaseException:
            os.close(number)
            raise
        if new:
            self._blocks, self.size, self.failure, self.dropped = [], 0, None, 0
        self._number = number

    def add(self, blocks: list[bytes]) -> None:
        """Queue blocks for the next write()."""
        self._blocks += blocks

    def write(self) -> None:
        """Write the queued blocks. If that fails they stay queued, and the file is intact up to `size`."""
        data = b"".join(self._blocks)
        try:
            self._keep_in_place()
            os.ftruncate(self._number, self.size)
            _write_at(self._number, data, self.size)
        except OSError as error:
            if self.failure is None:
                warnings.warn(f"the profile cannot be written to {self._path!r} for now: {error}", RuntimeWarning, stacklevel=2)
            self.failure = error
            self._blocks = [data]
            return
        self.size += len(data)
        self._blocks, self.failure = [], None

    def close(self, end: bytes) -> bool:
        """Write the last frame of a complete file and let go of it; a window that follows overwrites that frame.

        False if that, or what is queued, cannot be written: then the file stays open, and close() may be called again.
        """
        if self._number < 0:
            return True
        self.write()
        if self.failure is None:
            try:
                _write_at(self._number, end, self.size)
            except OSError as error:
                self.failure = error
        if self.failure is None:
            self.let_go()
        return self.failure is None

    def let_go(self) -> None:
        """Close the file and give up the lock, which children that were forked meanwhile share."""
        number, self._number = self._number, -1
        if number < 0:
            return
        try:
            state = os.fstat(number)
            self._left = (state.st_dev, state.st_ino, state.st_size)
            _unlock(number)
        finally:
            os.close(number)

    def forget(self) -> None:
        """In a forked child: close the parent's file, whose lock stays the parent's."""
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)

    def _keep_in_place(self) -> None:
        """If the file was removed or moved away: go on with a copy of it at its path."""
        own = os.fstat(self._number)
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            pass
        else:
            if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino):
                raise FileExistsError(errno.EEXIST, "another file is in its place", self._path)
            return
        number = os.open(self._path, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _lock(number, self._path)
            for at in range(0, self.size, _COPIED_AT_ONCE):
                _write_at(number, os.pread(self._number, min(_COPIED_AT_ONCE, self.size - at), at), at)
        except BaseException:
            os.close(number)
            os.unlink(self._path)
            raise
        before, self._number = self._number, number
        os.close(before)

    @property
    def waiting(self) -> int:
        """Bytes that are queued and not in the file yet."""
        return sum(map(len, self._blocks))

    @property
    def giving_up(self) -> bool:
        """Whether so much is queued that further events are to be dropped."""
        return self.waiting > _MOST_WAITING


def _lock(number: int, path: str) -> None:
    if fcntl is None:
        return
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        text = "stream_to: another profile, of this process or another one, is writing to this file"
        raise BlockingIOError(errno.EWOULDBLOCK, text, path) from None
    except OSError as error:
        # Some network file systems have no locks: there, as on other systems, two writers are not told apart.
        if error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
            raise


def _unlock(number: int) -> None:
    if fcntl is not None:
        fcntl.flock(number, fcntl.LOCK_UN)


def _write_at(number: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(number, view, place)
        view, place = view[count:], place + count


def check_target(path: str) -> None:
    """Raise an OSError that says why no file can be written at `path`, if that is so."""
    folder = os.path.dirname(os.path.abspath(path))
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"stream_to: there is no folder {folder!r}")
    if os.path.isdir(path):
        raise IsADirectoryError(f"stream_to: {path!r} is a folder")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise PermissionError(f"stream_to: cannot write to {path!r}")
