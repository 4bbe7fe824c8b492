"""Writes folders whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Mapping

from ..._core.files import write_whole


def write_folder(path: str, files: Mapping[str, Iterable[bytes]]) -> None:
    """Write a folder with these files, whole or not at all. FileExistsError if there is something at `path` already."""
    target = os.path.abspath(path)
    if os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, "there is something of that name already: a folder is not written over", path)
    beside = os.path.join(os.path.dirname(target), f".{os.path.basename(target)[:40]}.{os.urandom(8).hex()}.part")
    try:
        os.mkdir(beside)
        for name, blocks in files.items():
            inner = os.path.join(beside, *name.split("/"))
            os.makedirs(os.path.dirname(inner), exist_ok=True)
            write_whole(inner, blocks)
        os.rename(beside, target)
    except OSError as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise OSError(error.errno, error.strerror or str(error), path) from error
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
