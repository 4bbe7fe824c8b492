"""Memory while recording: one row per allocation and free.

In: calls of the storage hooks (`_core.storage.watch_memory`). Out: per thread a flat list of time, bytes and address.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from threading import get_ident, get_native_id
from typing import Any

from ..._core import storage, threads
from ..._core.cpython import code_without_signals_at_entry, data_address, without_signals_at_entry
from ..._core.storage import MemoryListener, owner_of
from .python_calls.code_origin import inner_code

WIDTH = 3  # time, bytes or FREED, address
MOVE_WIDTH = 5  # time, id() of the tensor, address and bytes of the memory that it leaves, where its data is
FREED = -1  # in place of the bytes, which are those of the last allocation at that address


class MemoryLog:
    """The allocations and frees of one thread, or of all."""

    def __init__(
        self, all_threads: bool, clock: Callable[[], int], hidden_from_tracer: bool = False, *, note_ends: bool = False
    ) -> None:
        """`hidden_from_tracer`: Python calls are traced too, so call builtins in a way that the tracer does not see.

        `note_ends`: note the end of every tensor, after which another one may get its id(), and which memory a tensor had that
        gets other memory.
        """
        # By operating-system thread id.
        self.rows: dict[int, list[int]] = {}
        self.ends: list[int] | None = [] if note_ends else None  # time and id() of every tensor that ended
        self.moves: list[int] | None = [] if note_ends else None  # rows of MOVE_WIDTH numbers
        self._all_threads = all_threads
        self._clock = clock
        self._hidden_from_tracer = hidden_from_tracer
        self._watcher: MemoryListener | None = None
        self._begin_check: Callable[[threads.ThreadState], None] | None = None

    def start(self) -> None:
        """Install the storage hooks, for the calling thread or for all."""
        if self._all_threads:
            self._install(_every_thread(self._rows_of_caller, self._clock, self.ends, self.moves))
            return
        mine, alone = get_ident(), len(threads.states()) == 1
        watcher = _any_thread(self._rows_of_caller(), self._clock, self.ends, self.moves)
        checked = _only_on(mine, partial(get_ident) if self._hidden_from_tracer else get_ident, watcher)
        self._install(watcher if alone else checked)
        if alone:
            # Asking for the thread costs as much as the rest, so that begins when there is a second thread.
            def no_longer_alone(state: threads.ThreadState) -> None:
                self.stop()
                self._install(checked)

            self._begin_check = no_longer_alone
            threads.started.append(no_longer_alone)

    def expect_one_thread(self) -> None:
        """Ask for no thread until stop(): the caller knows that all others wait for it."""
        self.stop()
        self._install(_any_thread(self._rows_of_caller(), self._clock, self.ends, self.moves))

    def stop(self) -> None:
        """Remove the storage hooks; those that are not there are no error."""
        if self._begin_check is not None:
            if self._begin_check in threads.started:
                threads.started.remove(self._begin_check)
            self._begin_check = None
        if self._watcher is not None:
            storage.remove_memory_listener(self._watcher)
            self._watcher = None

    def _install(self, watcher: MemoryListener) -> None:
        self._watcher = watcher
        storage.add_memory_listener(watcher)

    def _rows_of_caller(self) -> list[int]:
        return self.rows.setdefault(get_native_id(), [])


def _any_thread(
    rows: list[int], clock: Callable[[], int], ends: list[int] | None = None, moves: list[int] | None = None
) -> MemoryListener:
    """Hooks that append to one list, whichever thread calls. Most arrays own their memory: those cost no further call."""
    append = rows.extend
    # Tensors end anywhere. Their finalizers make no call: a tracer would see it, and after it a signal would be handled. What a
    # handler raises in a finalizer is dropped, and with it the user's interrupt and the row.
    times, address = iter(clock, -1), _Address()

    def on_alloc(array: Any, when: int) -> None:
        owner = owner_of(array)
        append((when or clock(), owner.nbytes, id(owner)))

    @without_signals_at_entry
    def tensor_freed(tensor: Any) -> None:
        nonlocal rows, ends
        for now in times:
            if ends is not None:
                ends += (now, address[tensor])
            try:
                if tensor._storage is not None:
                    return
                array = tensor._array
            except AttributeError:  # an interrupt came while the tensor was made
                return
            if array.base is not None:
                array = owner_of(array)
            rows += (now, FREED, address[array])
            break

    @without_signals_at_entry
    def storage_freed(storage: Any) -> None:
        nonlocal rows
        try:
            if storage.external:
                return
            owner = storage.owner
        except AttributeError:  # an interrupt came while the storage was made
            return
        for now in times:
            rows += (now, FREED, address[owner])
            break

    def tensor_moves(tensor: Any) -> None:
        if moves is not None:
            owner = owner_of(tensor._array)
            moves.extend((clock(), id(tensor), id(owner), owner.nbytes, data_address(owner)))

    return MemoryListener(append, on_alloc, tensor_freed, storage_freed, tensor_moves)


class _Address:
    """`address[x]` is id(x), without a call instruction."""

    __slots__ = ()
    __getitem__: Any = id


# What runs at the end of every tensor while memory is recorded: tracers of Python calls leave it out.
FINALIZERS = (
    code_without_signals_at_entry(inner_code(_any_thread, "tensor_freed")),
    code_without_signals_at_entry(inner_code(_any_thread, "storage_freed")),
)


def _only_on(thread: int, ident: Callable[[], int], watcher: MemoryListener) -> MemoryListener:
    """The watcher with every hook restricted to one thread."""

    def checked(function: Callable[..., None]) -> Callable[..., None]:
        def call(*what: Any) -> None:
            if ident() == thread:
                function(*what)

        return call

    return MemoryListener(*[checked(function) for function in watcher])


def _every_thread(
    rows_of_caller: Callable[[], list[int]], clock: Callable[[], int], ends: list[int] | None, moves: list[int] | None
) -> MemoryListener:
    """Hooks that append to the list of the thread that calls."""

    class Own(threading.local):
        """`own.extend` is that of the calling thread's rows; its finalizers append to them."""

        def __init__(self) -> None:
            rows = rows_of_caller()
            self.extend = rows.extend
            _, _, self.tensor_freed, self.storage_freed, self.tensor_moves = _any_thread(rows, clock, ends, moves)

    own = Own()

    def extend(row: tuple[int, int, int]) -> None:
        own.extend(row)

    def on_alloc(array: Any, when: int) -> None:
        owner = owner_of(array)
        own.extend((when or clock(), owner.nbytes, id(owner)))

    @without_signals_at_entry
    def tensor_freed(tensor: Any) -> None:
        own.tensor_freed(tensor)

    @without_signals_at_entry
    def storage_freed(storage: Any) -> None:
        own.storage_freed(storage)

    def tensor_moves(tensor: Any) -> None:
        own.tensor_moves(tensor)

    return MemoryListener(extend, on_alloc, tensor_freed, storage_freed, tensor_moves)
