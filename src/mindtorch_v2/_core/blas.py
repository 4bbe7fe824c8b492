"""The OpenBLAS library that NumPy's wheels contain: its number of threads, and its routines by their Fortran names."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .cpython import without_signals_at_entry

# Builds rename what they export: scipy_dgetrf_64_, dgetrf_64_ and dgetrf_ are the same routine.
_PREFIXES = ("scipy_", "")
_SUFFIXES = ("64_", "_64", "")


class OpenBlas(NamedTuple):
    """An opened library, and how its build names what it exports."""

    library: ctypes.CDLL
    prefix: str
    suffix: str

    def control(self, name: str) -> Any:
        """A function of OpenBLAS itself, such as `get_num_threads`; None where the build has none."""
        return getattr(self.library, f"{self.prefix}openblas_{name}{self.suffix}", None)

    def routine(self, name: str) -> Any:
        """A routine of BLAS or LAPACK, such as `dgetrf`; None where the build has none."""
        return getattr(self.library, f"{self.prefix}{name}_{self.suffix}", None)

    def integer(self) -> type[ctypes.c_int32 | ctypes.c_int64]:
        """The type of the routines' integers: every argument is a pointer, so that a wrong one would go unnoticed."""
        config = self.control("get_config")
        if config is None:
            return ctypes.c_int64 if self.suffix else ctypes.c_int32
        config.restype = ctypes.c_char_p
        return ctypes.c_int64 if b"USE64BITINT" in config() else ctypes.c_int32


def _library_paths() -> list[str]:
    """OpenBLAS libraries inside NumPy's wheel or next to it."""
    root = os.path.dirname(np.__file__)
    folders = (f"{root}.libs", os.path.join(root, ".libs"), os.path.join(root, ".dylibs"))
    return [
        os.path.join(folder, name)
        for folder in folders
        if os.path.isdir(folder)
        for name in os.listdir(folder)
        if "openblas" in name
    ]


@cache
def openblas() -> OpenBlas | None:
    """The library, opened at the first call; None where NumPy has another one."""
    for path in _library_paths():
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for prefix in _PREFIXES:
            for suffix in _SUFFIXES:
                candidate = OpenBlas(library, prefix, suffix)
                if candidate.control("get_num_threads") is not None and candidate.control("set_num_threads") is not None:
                    return candidate
    return None


# ---------------------------------------------------------------- threads


class _Threads:
    """The number of threads that was set last; None until it is asked for or set."""

    count: int | None = None


_threads = _Threads()


@cache
def _thread_control(name: str) -> Callable[..., int] | None:
    library = openblas()
    return None if library is None else library.control(name)


def get_num_threads() -> int:
    """How many threads an op may use."""
    if _threads.count is None:
        getter = _thread_control("get_num_threads")
        _threads.count = getter() if getter is not None else os.cpu_count() or 1
    return _threads.count


def set_num_threads(count: int) -> None:
    """Let ops use up to `count` threads."""
    if not isinstance(count, int) or isinstance(count, bool):
        raise TypeError(f"set_num_threads expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError("set_num_threads expects a positive integer")
    _set_blas_threads(count)
    _threads.count = count


class _OneThread:
    """Restricts BLAS to one thread while at least one block runs inside of it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0

    def __enter__(self) -> None:
        with self._lock:
            self._depth += 1
            if self._depth == 1:
                _set_blas_threads(1)

    @without_signals_at_entry
    def __exit__(self, *_error: object) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                _set_blas_threads(get_num_threads())

    def renew(self) -> None:
        """Forget, in a forked process, the blocks of threads that it does not have."""
        depth, self._depth, self._lock = self._depth, 0, threading.Lock()
        if depth:
            _set_blas_threads(get_num_threads())


_one_thread = _OneThread()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_one_thread.renew)


def _set_blas_threads(count: int) -> None:
    setter = _thread_control("set_num_threads")
    if setter is not None:
        setter(count)


def one_blas_thread() -> _OneThread:
    """A context in which BLAS, called from any thread, computes on the calling thread alone."""
    return _one_thread
