"""Memory while recording: one row of plain numbers per allocation and free, straight from the storage hook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from threading import get_ident

from .._core import storage

WIDTH = 4  # time, bytes (negative: freed), address, operating-system thread id


class MemoryLog:
    """The allocations and frees of one thread, or of all."""

    def __init__(self, all_threads: bool, clock: Callable[[], int]) -> None:
        self.rows: list[int] = []
        self._everybody = all_threads
        self._clock = clock
        self._hooks: tuple[storage.MemoryHook, storage.MemoryHook] | None = None

    def start(self) -> None:
        """Listen, on behalf of the calling thread."""
        make = _every_thread if self._everybody else _one_thread
        self._hooks = make(self.rows.extend, self._clock)
        storage.watch_memory(*self._hooks)

    def stop(self) -> None:
        """Listen no more."""
        if self._hooks is not None:
            storage.unwatch_memory(self._hooks[0])
            self._hooks = None


Hooks = tuple[storage.MemoryHook, storage.MemoryHook]


def _one_thread(extend: Callable[[tuple[int, ...]], None], clock: Callable[[], int]) -> Hooks:
    mine, native = get_ident(), threading.get_native_id()

    def on_alloc(nbytes: int, address: int, device: str) -> None:
        if get_ident() == mine:
            extend((clock(), nbytes, address, native))

    def on_free(nbytes: int, address: int, device: str) -> None:
        if get_ident() == mine:
            extend((clock(), -nbytes, address, native))

    return on_alloc, on_free


def _every_thread(extend: Callable[[tuple[int, ...]], None], clock: Callable[[], int]) -> Hooks:
    native_id = threading.get_native_id

    def on_alloc(nbytes: int, address: int, device: str) -> None:
        extend((clock(), nbytes, address, native_id()))

    def on_free(nbytes: int, address: int, device: str) -> None:
        extend((clock(), -nbytes, address, native_id()))

    return on_alloc, on_free
