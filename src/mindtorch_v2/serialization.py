"""torch.save and torch.load, and what may be inside a checkpoint."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from ._core.cpython import without_signals_at_entry
from ._core.files import write_whole
from ._core.restoring import Actions, restoring
from ._serialization import globals_in_pickle, options
from ._serialization.archive import ArchiveReader, ArchiveWriter, in_memory
from ._serialization.locations import absent, default_restore_location, location_tag, register_package
from ._serialization.locations import registry as _package_registry  # noqa: F401
from ._serialization.names import SAFE, StorageType
from ._serialization.reader import (
    LoadEndianness,
    MapLocation,
    Request,
    SourceChangeWarning,
    check_seekable,
    is_zip,
    read,
    user_safe,
)
from ._serialization.rebuild import get_layout as _get_layout  # noqa: F401
from ._serialization.writer import MAGIC_NUMBER as MAGIC_NUMBER
from ._serialization.writer import PROTOCOL_VERSION as PROTOCOL_VERSION
from ._serialization.writer import folder_name, write_legacy, write_zip

MAP_LOCATION = MapLocation

__all__ = [
    "LoadEndianness",
    "SourceChangeWarning",
    "StorageType",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "normalize_storage_type",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "storage_to_tensor_type",
    "validate_cuda_device",
    "validate_hpu_device",
]

DEFAULT_PROTOCOL = 2
_skipping: ContextVar[bool] = ContextVar("skipping", default=False)
_is_zipfile = is_zip
_check_seekable = check_seekable


def save(
    obj: Any,
    f: Any,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write an object with tensors to a file that torch can read, too.

    A path is written beside its target and renamed, so that a failed save leaves an existing file as it was. A `pickle_module`
    is asked for its Pickler, which must be one that is written in Python, as dill's.
    """
    is_path = isinstance(f, str | os.PathLike)
    if not is_path and not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    skipping = _skipping.get()
    pieces: list[Any] = []
    if _use_new_zipfile_serialization:
        write_zip(
            obj,
            pieces.append,
            folder_name(f),
            pickle_protocol,
            skipping,
            pickle_module,
            byteorder=not _disable_byteorder_record,
        )
    elif skipping:
        raise RuntimeError("Cannot use skip_data=True with _use_new_zipfile_serialization=False")
    else:
        buffer = io.BytesIO()
        write_legacy(obj, buffer, pickle_protocol, pickle_module)
        pieces.append(buffer.getbuffer())
    if is_path:
        _need_parent(f)
        write_whole(f, pieces)
        return
    for piece in pieces:
        f.write(piece)
    if hasattr(f, "flush"):
        f.flush()


def _need_parent(path: Any) -> None:
    parent = Path(path).parent
    if not parent.is_dir():
        raise RuntimeError(f"Parent directory {parent} does not exist.")


def load(
    f: Any,
    map_location: MapLocation = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Read a checkpoint. Unless `weights_only=False`, only tensors, containers and allowed classes are accepted.

    `map_location`: a device, a dict of locations, or a function `(storage, location)` that gives a storage, or None for the
    default. `mmap` reads storages from the file when they are looked at, for files that are given by name.
    """
    only = _only_weights(weights_only, pickle_module)
    if only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap is None:
        mmap = options.load.mmap
    if mmap and not isinstance(f, str | os.PathLike):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", stacklevel=2)
    unknown = sorted(set(pickle_load_args) - {"encoding", "errors", "fix_imports", "buffers"})
    if unknown:
        raise TypeError(
            f"Unpickler.__init__() got an unexpected keyword argument {unknown[0]!r}"
            if only
            else f"{unknown[0]!r} is an invalid keyword argument for Unpickler()"
        )
    if not only:
        pickle_load_args.setdefault("encoding", "utf-8")
    request = Request(map_location, only, bool(mmap), pickle_module, pickle_load_args, _skipping.get())
    return read(f, request)


def _only_weights(asked: bool | None, pickle_module: Any) -> bool:
    """Whether to read nothing but weights: as asked, or as the environment says."""
    force, no_force = (
        os.environ.get(f"TORCH_FORCE_{name}WEIGHTS_ONLY_LOAD", "0").lower() in ("1", "y", "yes", "true") for name in ("", "NO_")
    )
    if force and no_force:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, "
            "but both were set."
        )
    if force:
        return True
    if asked is None and no_force:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
            "`weights_only` argument was not explicitly passed to `torch.load`, forcing weights_only=False.",
            UserWarning,
            stacklevel=3,
        )
        return False
    if asked is None:
        return pickle_module is None
    return bool(asked)


@restoring
def skip_data(undo: Actions, materialize_fake_tensors: bool = False) -> None:
    """Inside, torch.save leaves room for the memory of tensors in a file, and torch.load does not read it: zeros.

    There are no fake tensors here, so that `materialize_fake_tensors` finds none.
    """
    undo.append(partial(_skipping.set, _skipping.get()))
    _skipping.set(True)


# ---------------------------------------------------------------- what may be in a checkpoint


def _key(entry: Any) -> tuple[tuple[str, str], Any]:
    if isinstance(entry, tuple):
        value, name = entry
        module, _, base = name.rpartition(".")
        return (module, base), value
    module = entry.__module__
    package = __name__.partition(".")[0]
    if module == package or module.startswith(package + "."):
        module = "torch" + module[len(package) :]  # as files call it
    return (module, entry.__qualname__), entry


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


def get_unsafe_globals_in_checkpoint(f: Any) -> list[str]:
    """The names in a checkpoint that `weights_only=True` would not accept, e.g. `["__main__.Model"]`. Nothing is loaded."""
    with _open_file_like(f, "rb") as file:
        if not is_zip(file):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        with _open_zipfile_reader(file) as archive:
            if archive.has_record("constants.pkl"):
                raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
            names = globals_in_pickle.names(archive.get_record("data.pkl"))
    allowed = {**SAFE, **user_safe}
    return sorted({f"{module}.{name}" for module, name in names if (module, name) not in allowed})


# ---------------------------------------------------------------- options


def get_default_load_endianness() -> LoadEndianness | None:
    """The byte order of checkpoints that do not say which they have; None is little."""
    return options.load.endianness  # type: ignore[no-any-return]


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Choose what `get_default_load_endianness` tells."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    options.load.endianness = endianness


def get_default_mmap_options() -> int | None:
    """How torch.load(mmap=True) maps files: mmap.MAP_PRIVATE or mmap.MAP_SHARED."""
    return options.load.mmap_flags  # type: ignore[no-any-return]


class set_default_mmap_options:
    """Map files that way from now on; as a context manager, inside a block."""

    def __init__(self, flags: int) -> None:
        if sys.platform == "win32":
            raise RuntimeError("Changing the default mmap options is currently not supported for Windows")
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, "
                f"expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self._before = options.load.mmap_flags
        options.load.mmap_flags = flags

    def __enter__(self) -> None:
        pass

    @without_signals_at_entry
    def __exit__(self, *error: object) -> None:
        options.load.mmap_flags = self._before


def get_crc32_options() -> bool:
    """Whether torch.save writes checksums."""
    return options.save.compute_crc32  # type: ignore[no-any-return]


def set_crc32_options(compute_crc32: bool) -> None:
    """Write checksums or zeros in their place; torch.load compares none, other readers of zip files do."""
    options.save.compute_crc32 = compute_crc32


# ---------------------------------------------------------------- helpers that libraries use


def normalize_storage_type(storage_type: Any) -> Any:
    """The storage class at the top of the package that has the same name."""
    return getattr(sys.modules[__name__.partition(".")[0]], storage_type.__name__)


def storage_to_tensor_type(storage: Any) -> Any:
    """The tensor class that is named like a storage's class."""
    kind = type(storage)
    return getattr(sys.modules[kind.__module__], kind.__name__.replace("Storage", "Tensor"))


def validate_cuda_device(location: str) -> int:
    """RuntimeError: there is no CUDA device that storages could be restored to."""
    raise absent("cuda")


def validate_hpu_device(location: str) -> int:
    """RuntimeError: there is no HPU that storages could be restored to."""
    raise absent("hpu")


def check_module_version_greater_or_equal(
    module: Any, req_version_tuple: tuple[int, ...], error_if_malformed: bool = True
) -> bool:
    """Whether a module's `__version__` is at least that; for one that cannot be read a RuntimeError, or a warning and True."""
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False))
        return version >= req_version_tuple
    except Exception as error:
        message = f"'{module.__name__}' module version string is malformed '{module.__version__}' and cannot be compared"
        message += f" with tuple {req_version_tuple}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(message + ", but continuing assuming that requirement is met", stacklevel=2)
        return True


@contextmanager
def mkdtemp() -> Iterator[str]:
    """A folder that is gone after the block."""
    path = tempfile.mkdtemp()
    try:
        yield path
    finally:
        shutil.rmtree(path)


@contextmanager
def _open_file_like(name_or_buffer: Any, mode: str) -> Iterator[Any]:
    """An open file of a path, closed after the block, or the file that was given."""
    if isinstance(name_or_buffer, str | os.PathLike):
        with open(name_or_buffer, mode) as file:
            yield file
        return
    if "r" in mode:
        check_seekable(name_or_buffer)
    yield name_or_buffer
    if "w" in mode:
        name_or_buffer.flush()


@contextmanager
def _open_zipfile_reader(name_or_buffer: Any) -> Iterator[ArchiveReader]:
    """The records of a checkpoint."""
    with _open_file_like(name_or_buffer, "rb") as file:
        yield ArchiveReader(in_memory(file) if file.tell() else file)


@contextmanager
def _open_zipfile_writer(name_or_buffer: Any) -> Iterator[ArchiveWriter]:
    """Records that become a checkpoint at the end of the block."""
    is_path = isinstance(name_or_buffer, str | os.PathLike)
    if is_path:
        _need_parent(name_or_buffer)
    elif not callable(getattr(name_or_buffer, "write", None)):
        message = f"Buffer of {str(type(name_or_buffer)).strip('<>')} has no callable attribute 'write'"
        raise (TypeError if hasattr(name_or_buffer, "write") else AttributeError)(message)
    pieces: list[Any] = []
    settings = options.save
    archive = ArchiveWriter(pieces.append, folder_name(name_or_buffer), settings.storage_alignment, settings.compute_crc32)
    yield archive
    archive.write_end_of_file()
    if is_path:
        write_whole(name_or_buffer, pieces)
    else:
        for piece in pieces:
            name_or_buffer.write(piece)
        name_or_buffer.flush()
