"""torch.save and torch.load, and what may be inside a checkpoint."""

from __future__ import annotations

import io
import os
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from ._core.files import write_whole
from ._core.restoring import Actions, restoring
from ._serialization.reader import MapLocation, read, user_safe
from ._serialization.writer import folder_name, write_legacy, write_zip

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save", "skip_data"]

DEFAULT_PROTOCOL = 2
_skipping: ContextVar[bool] = ContextVar("skipping", default=False)


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with tensors to a file that torch can read, too.

    A path is written beside its target and renamed, so that a failed save leaves an existing file as it was.
    """
    if pickle_module is not None:
        raise NotImplementedError("torch.save(pickle_module=...)")
    if _disable_byteorder_record:
        raise NotImplementedError("torch.save(_disable_byteorder_record=True)")
    buffer = io.BytesIO()
    skipping = _skipping.get()
    if _use_new_zipfile_serialization:
        write_zip(obj, buffer, folder_name(f), pickle_protocol, skipping)
    elif skipping:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    else:
        write_legacy(obj, buffer, pickle_protocol)
    if isinstance(f, str | os.PathLike):
        target = Path(f)
        if not target.parent.is_dir():
            raise RuntimeError(f"Parent directory {target.parent} does not exist.")
        write_whole(f, [buffer.getbuffer()])
    else:
        f.write(buffer.getvalue())


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a checkpoint. Unless `weights_only=False`, only tensors, containers and allowed classes are accepted."""
    if pickle_module is not None and weights_only is not False:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if pickle_module is not None:
        raise NotImplementedError("torch.load(pickle_module=...)")
    if mmap and not isinstance(f, str | os.PathLike):
        raise ValueError("f must be a file path in order to use the mmap argument")
    unknown = set(pickle_load_args) - {"encoding", "errors", "fix_imports"}
    if unknown:
        raise TypeError(f"load() got an unexpected keyword argument {sorted(unknown)[0]!r}")
    return read(f, map_location, weights_only is not False, bool(mmap), pickle_load_args)


@restoring
def skip_data(undo: Actions, materialize_fake_tensors: bool = False) -> None:
    """Inside, torch.save leaves room for the memory of tensors in a file, but writes zeros there."""
    if materialize_fake_tensors:
        raise NotImplementedError("skip_data(materialize_fake_tensors=True): there are no fake tensors")
    undo.append(partial(_skipping.set, _skipping.get()))
    _skipping.set(True)


def _key(entry: Any) -> tuple[tuple[str, str], Any]:
    if isinstance(entry, tuple):
        value, name = entry
        module, _, base = name.rpartition(".")
        return (module, base), value
    return (entry.__module__, entry.__qualname__), entry


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Allow classes and functions in checkpoints that are read with weights_only=True."""
    user_safe.update(map(_key, safe_globals))


def get_safe_globals() -> list[Any]:
    """The classes and functions that `add_safe_globals` allows in files."""
    return list(user_safe.values())


def clear_safe_globals() -> None:
    """Allow nothing but the default again."""
    user_safe.clear()


@restoring
def safe_globals(undo: Actions, safe_globals: list[Any]) -> None:
    """Allow classes inside a block."""
    before = dict(user_safe)

    def restore() -> None:
        user_safe.clear()
        user_safe.update(before)

    undo.append(restore)
    add_safe_globals(safe_globals)
