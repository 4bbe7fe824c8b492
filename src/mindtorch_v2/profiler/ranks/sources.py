"""The files of a job: a folder, a pattern, names, or an address that fsspec knows (s3://bucket/run/, gs://, az://, https://)."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..views.tabular import import_extra

_MAGIC = "*?["
_FOLDER_ENDINGS = ("_ascend_pt", "_ascend_ms")  # such a folder is one recording
_MOST_BYTES = 8 << 30


@dataclass(frozen=True, order=True)
class Source:
    """A file and its name in answers, which is the same wherever the folder stands."""

    label: str
    path: str


def find_sources(paths: Iterable[str]) -> list[Source]:
    """The files of folders, patterns, names and addresses, sorted by name. FileNotFoundError: there is no such thing."""
    paths = list(paths)
    found = [source for path in paths for source in (_remote(path) if is_remote(path) else _local(path))]
    labels = [source.label for source in found]
    if len(set(labels)) < len(labels):  # several folders with files of the same name
        found = [Source(source.path, source.path) for source in found]
    return sorted(set(found))


def is_remote(path: str) -> bool:
    """Whether the path is an address for fsspec."""
    return "://" in path


def open_source(path: str) -> tuple[BinaryIO, int]:
    """The open file and its size."""
    if not is_remote(path):
        file = open(path, "rb")  # noqa: SIM115
        return file, os.fstat(file.fileno()).st_size
    import io

    system, name = _fsspec().core.url_to_fs(path)
    data = system.cat_file(name, end=_MOST_BYTES)
    return io.BytesIO(data), len(data)


def _local(path: str) -> list[Source]:
    if os.path.isdir(path) and not path.rstrip("/\\").endswith(_FOLDER_ENDINGS):
        return [Source(os.path.relpath(name, path).replace(os.sep, "/"), name) for name in _walk(path)]
    if any(character in path for character in _MAGIC) and not os.path.exists(path):
        names = sorted(glob.glob(path, recursive=True))
        base = os.path.dirname(path[: min(path.index(c) for c in _MAGIC if c in path)])
        if not names:
            raise FileNotFoundError(2, "no file matches", path)
        return [Source(os.path.relpath(name, base or ".").replace(os.sep, "/"), name) for name in names if _is_file(name)]
    if not os.path.exists(path):
        raise FileNotFoundError(2, "there is no such file or folder", path)
    return [Source(os.path.basename(path.rstrip("/\\")), path)]


def _walk(folder: str) -> list[str]:
    names = []
    for where, folders, files in os.walk(folder):
        names += [os.path.join(where, name) for name in folders if name.endswith(_FOLDER_ENDINGS)]
        folders[:] = sorted(name for name in folders if not name.endswith(_FOLDER_ENDINGS) and not name.startswith("."))
        names += [os.path.join(where, name) for name in files if not name.startswith(".")]
    return names


def _is_file(name: str) -> bool:
    return os.path.isfile(name) or name.endswith(_FOLDER_ENDINGS)


def _fsspec() -> Any:
    return import_extra("fsspec", "remote", "an address such as s3://")


def _remote(path: str) -> list[Source]:
    scheme = path.partition("://")[0]
    system, name = _fsspec().core.url_to_fs(path)
    if any(character in name for character in _MAGIC):
        base = name[: min(name.index(c) for c in _MAGIC if c in name)].rpartition("/")[0]
        names = system.glob(name)
    elif system.isfile(name):
        return [Source(name.rpartition("/")[2], path)]
    else:
        base, names = name.rstrip("/"), system.find(name)
    if not names:
        raise FileNotFoundError(2, "there is nothing at", path)
    return [Source(each.removeprefix(base).lstrip("/"), f"{scheme}://{each}") for each in names]
