"""Where the control sockets of armed processes are: a folder that only its user can enter."""

from __future__ import annotations

import os
import stat
import tempfile

_ENDING = ".sock"


def folder() -> str:
    """The folder of this user's sockets, which may not exist yet."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and os.path.isdir(runtime) and os.stat(runtime).st_uid == os.getuid():
        return os.path.join(runtime, "mtprof")
    return os.path.join(tempfile.gettempdir(), f"mtprof-{os.getuid()}")


def private_folder() -> str:
    """The folder, made if it is missing. PermissionError if another user owns it or may enter it."""
    path = folder()
    os.makedirs(path, mode=0o700, exist_ok=True)
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{path!r} is not a folder of this user: no control socket is opened there")
    if stat.S_IMODE(status.st_mode) != 0o700:
        os.chmod(path, 0o700)
    return path


def socket_of(pid: int) -> str:
    """The path of a process's socket, whether there is one or not."""
    return os.path.join(folder(), f"{pid}{_ENDING}")


def armed() -> list[int]:
    """Ids of the processes that have a socket, in ascending order.

    One that was killed leaves its socket, and may be among them where the system does not tell which processes there are.
    """
    try:
        names = os.listdir(folder())
    except OSError:
        return []
    stems = (name.removesuffix(_ENDING) for name in names if name.endswith(_ENDING))
    return sorted(int(stem) for stem in stems if stem.isdecimal() and not is_gone(int(stem)))


def is_gone(pid: int) -> bool:
    """Whether there is no such process; False where that cannot be told."""
    return os.path.isdir("/proc/self") and not os.path.exists(f"/proc/{pid}")
