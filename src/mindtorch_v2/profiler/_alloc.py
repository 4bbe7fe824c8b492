"""Memory while recording: one row of plain numbers per allocation and free, straight from the storage hook."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from threading import get_ident
from typing import Any

from .._core import storage

WIDTH = 4  # time, bytes (negative: freed), address, operating-system thread id
TOUCH_WIDTH = 4  # start of the op, address, bytes, op id and position of the argument
MOST_ARGUMENTS = 64


class MemoryLog:
    """The allocations and frees of one thread, or of all."""

    def __init__(self, all_threads: bool, clock: Callable[[], int], unheard: bool = False) -> None:
        """`unheard`: somebody listens to every call of a builtin, so call them in a way that is not heard."""
        self.rows: list[int] = []
        self._everybody = all_threads
        self._extend: Callable[[tuple[int, ...]], None] = partial(self.rows.extend) if unheard else self.rows.extend
        self._clock = partial(clock) if unheard else clock
        self._ident = partial(get_ident) if unheard else get_ident
        self._hooks: tuple[storage.MemoryHook, storage.MemoryHook] | None = None

    def start(self) -> None:
        """Listen, on behalf of the calling thread."""
        if self._everybody:
            self._hooks = _every_thread(self._extend, self._clock)
        else:
            self._hooks = _one_thread(self._extend, self._clock, self._ident)
        storage.watch_memory(*self._hooks)

    def stop(self) -> None:
        """Listen no more."""
        if self._hooks is not None:
            storage.unwatch_memory(self._hooks[0])
            self._hooks = None


Hooks = tuple[storage.MemoryHook, storage.MemoryHook]


def _one_thread(
    extend: Callable[[tuple[int, ...]], None], clock: Callable[[], int], ident: Callable[[], int]
) -> Hooks:
    mine, native = get_ident(), threading.get_native_id()

    def on_alloc(nbytes: int, address: int, device: str) -> None:
        if ident() == mine:
            extend((clock(), nbytes, address, native))

    def on_free(nbytes: int, address: int, device: str) -> None:
        if ident() == mine:
            extend((clock(), -nbytes, address, native))

    return on_alloc, on_free


def _every_thread(extend: Callable[[tuple[int, ...]], None], clock: Callable[[], int]) -> Hooks:
    native_id = threading.get_native_id

    def on_alloc(nbytes: int, address: int, device: str) -> None:
        extend((clock(), nbytes, address, native_id()))

    def on_free(nbytes: int, address: int, device: str) -> None:
        extend((clock(), -nbytes, address, native_id()))

    return on_alloc, on_free


def noting_storages(detail: Callable[..., None], rows: list[int]) -> Callable[..., None]:
    """A `detail` that also notes which storages an op was given, without keeping them."""

    def detail_and_note(op: int, start: int, end: int, sequence: int, args: tuple[Any, ...]) -> None:
        detail(op, start, end, sequence, args)
        place = op * MOST_ARGUMENTS
        for position, value in enumerate(args):
            for one in value if isinstance(value, list | tuple) else (value,):
                array = getattr(one, "_array", None)
                if array is not None:
                    owner = storage.owner_of(array)
                    rows.extend((start, id(owner), owner.nbytes, place + position))

    return detail_and_note
