"""Code that is generated at run time, compiled once: a file beside the package's bytecode keeps it for the next process.

Compiling is what most of a program's first step would spend. A piece is found by a hash of its source, so that nothing in the
file can be out of date. The file is read whole at the first use and written at exit, if something new was compiled and Python
may write bytecode (`sys.dont_write_bytecode`, `sys.pycache_prefix`); where the package's folder cannot be written, it is in
the user's cache folder. What cannot be read or written, or is damaged, is as if it were not there.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import MAGIC_NUMBER, cache_from_source, source_hash
from types import CodeType

# Bytes of all pieces of a file: some six hundred, of which a small training program needs seventy. Reading takes 2 ms.
LIMIT = 2_000_000

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_HASH_BYTES = 8

# No lock, which a fork could leave locked for ever: two threads at once do the same work twice, and no harm.
_used: dict[bytes, bytes] = {}  # by hash, the pieces that this process has taken from a file, as marshal made them
_new: dict[bytes, CodeType] = {}  # those that it has compiled


def compiled(source: str, filename: str) -> CodeType:
    """The code of a module with this source, like `compile(source, filename, "exec")`."""
    key = source_hash(source.encode())
    code = _new.get(key)
    if code is None:
        piece = _stored().get(key)
        if piece is None:
            if not _new:
                atexit.register(_save)
            # Without the name of a file: ops share pieces, and packages move.
            code = _new[key] = compile(source, "", "exec", dont_inherit=True)
        else:
            _used[key] = piece
            code = marshal.loads(piece)
    return _in_file(code, filename)


def _in_file(code: CodeType, filename: str) -> CodeType:
    """Code, with that of the functions in it, as if it had been compiled from a file of this name."""
    constants = [_in_file(constant, filename) if isinstance(constant, CodeType) else constant for constant in code.co_consts]
    return code.replace(co_filename=filename, co_consts=tuple(constants))


@cache
def _stored() -> dict[bytes, bytes]:
    """The pieces of all files, as they are at the first use."""
    return {key: piece for path in _paths() for key, piece in _read(path).items()}


def _paths() -> list[str]:
    """Where the file may be, in the order in which it is written to: the first that can be written is taken."""
    try:
        beside_bytecode = cache_from_source(os.path.join(_PACKAGE, "generated.py"))  # differs for each Python, and for -O
    except NotImplementedError:  # a Python that caches no bytecode
        return []
    if sys.pycache_prefix is not None:
        return [beside_bytecode]
    folder = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(folder):
        folder = os.path.join(os.path.expanduser("~"), ".cache")
    of_user = os.path.join(folder, "mindtorch_v2", os.path.basename(beside_bytecode))
    return [beside_bytecode, of_user] if os.path.isabs(of_user) else [beside_bytecode]


def _read(path: str) -> dict[bytes, bytes]:
    """The pieces of a file: none unless it was written whole by this version of Python, and in a user's folder by that user."""
    try:
        with open(path, "rb") as stream:
            owner = os.fstat(stream.fileno()).st_uid
            content = stream.read(2 * LIMIT)
    except OSError:
        return {}
    trusted = (_PACKAGE, sys.pycache_prefix or _PACKAGE)  # as Python trusts the bytecode there
    if not path.startswith(trusted) and hasattr(os, "geteuid") and owner != os.geteuid():
        return {}
    head = len(MAGIC_NUMBER) + _HASH_BYTES
    packed = memoryview(content)[head:]
    if content[:head] != MAGIC_NUMBER + source_hash(packed):  # marshal may crash on bytes that it has not made
        return {}
    pieces: dict[bytes, bytes] = marshal.loads(packed)
    return pieces


def _save() -> None:
    """Write what was compiled, with what the file has by now; if there is too much, what this process did not use goes."""
    if sys.dont_write_bytecode:
        return
    write_whole = import_module(".files", __package__).write_whole
    own = {key: marshal.dumps(code) for key, code in list(_new.items())}
    own |= list(_used.items())
    for path in _paths():
        pieces: dict[bytes, bytes] = {}
        room = LIMIT
        for key, piece in (own | _read(path)).items():
            room -= len(piece)
            if room < 0:
                break
            pieces[key] = piece
        packed = marshal.dumps(pieces)
        with suppress(OSError):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            write_whole(path, [MAGIC_NUMBER, source_hash(packed), packed])
            return
