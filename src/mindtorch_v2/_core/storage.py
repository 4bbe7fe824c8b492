"""Storage: the buffer behind one or more tensors, its version counter, and the allocation hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .cpython import without_signals_at_entry
from .out_of_memory import no_memory
from .threads import threads


class Untracked(int):
    """The version of inference tensors, which is not counted.

    Adding to it gives itself inside of inference_mode and raises outside, before the write that would be counted. Copies and
    pickles of it are 0, the version of a new storage.
    """

    __slots__ = ()

    def __add__(self, more: int) -> Untracked:
        if not threads.state.inference:
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone "
                "to get a normal tensor before doing inplace update.See "
                "https://github.com/pytorch/rfcs/pull/17 for more details."
            )
        return self

    def __deepcopy__(self, memo: Any) -> int:
        return 0

    def __reduce__(self) -> Any:
        return int, ()


UNTRACKED = Untracked(1)


class MemoryListener(NamedTuple):
    """Functions that are called when tensors get memory and when it is freed, on the thread that does it."""

    # ((when, bytes, address)): a tensor got fresh memory; `when` is the start of the op that made it.
    extend: Callable[[tuple[int, int, int]], None]
    # (array, when): the same, where the array may not be the one that owns the memory; `when` 0 means now.
    on_alloc: Callable[[np.ndarray, int], None]
    # (tensor): a tensor ends, and its memory with it, unless it has a storage.
    tensor_freed: Callable[[Any], None]
    # (storage): a storage ends, and its memory with it, unless that is external.
    storage_freed: Callable[[Any], None]
    # (tensor): a tensor is about to get other memory than it has.
    tensor_moves: Callable[[Any], None]


# Where a storage's memory comes from, if it is not its own: NumPy, a file or a device, or another storage, which it shares
# with a version of its own.
FOREIGN, SHARED = 1, 2


# Added to the version of a tensor that detach_() took the history of: what was saved before has another version.
DETACHED = 1 << 40


class Storage:
    """The memory that several tensors share, and its version.

    A tensor that was never viewed or changed in place has none yet (`Tensor._storage is None`, version 0); `storage_of`
    makes it on demand, so that plain ops need none.
    """

    # `__dict__` is for what programs attach to an UntypedStorage, which a Storage becomes when one is asked for.
    __slots__ = ("__dict__", "__weakref__", "external", "owner", "place", "version")

    external: int
    owner: Any
    # The name of its device.
    place: str
    version: int

    def __init__(self, owner: Any, *, external: int = 0, device: str = "cpu") -> None:
        self.owner = owner
        self.version = 0
        # Memory that another storage of the runtime has (SHARED), or that was allocated elsewhere (FOREIGN): not counted here.
        self.external = external
        self.place = device

    def __getstate__(self) -> Any:
        # What Python does by itself from protocol 2 on.
        return None, {name: getattr(self, name) for name in ("external", "owner", "place", "version")}

    @property
    def byte_count(self) -> int:
        return int(self.owner.nbytes)


class LentStorage(Storage):
    """The memory of another storage with a count of versions of its own: that of a tensor that was given other memory.

    `lender` is the storage that has the memory; it lives as long as this one, so that the end of the memory is told once.
    """

    __slots__ = ("lender",)

    lender: Storage

    def __init__(self, lender: Storage, version: int) -> None:
        self._borrow(lender)
        self.version = version

    def _borrow(self, lender: Storage) -> None:
        self.lender = lender_of(lender)
        self.owner = lender.owner
        self.external = lender.external or SHARED
        self.place = lender.place

    def __getstate__(self) -> Any:
        return None, {name: getattr(self, name) for name in ("external", "lender", "owner", "place", "version")}


class JointStorage(LentStorage):
    """The memory of another storage with the versions of a third: that of a tensor whose base or views go on counting with it.

    Writes of two threads at once may be counted as one here, unlike in other storages.
    """

    __slots__ = ("counter",)

    counter: Storage

    def __init__(self, lender: Storage, counter: Storage) -> None:
        self.counter = counter.counter if isinstance(counter, JointStorage) else counter
        self._borrow(lender)

    @property
    def version(self) -> int:  # type: ignore[override]
        return self.counter.version

    @version.setter
    def version(self, value: int) -> None:
        self.counter.version = value

    def __getstate__(self) -> Any:
        return None, {name: getattr(self, name) for name in ("counter", "external", "lender", "owner", "place")}


def lender_of(storage: Storage) -> Storage:
    """The storage that has the memory: mostly itself."""
    return storage.lender if isinstance(storage, LentStorage) else storage


def allocate(nbytes: int) -> np.ndarray:
    """Fresh memory for a storage; RuntimeError if there is none."""
    if nbytes < 0:
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:98] ((ptrdiff_t)nbytes) >= 0. alloc_cpu() seems to have been called with "
            f"negative number: {nbytes % 2**64}"
        )
    try:
        return np.empty(nbytes, np.uint8)
    except (MemoryError, ValueError):
        raise no_memory(nbytes) from None


def check_version(storage: Storage) -> None:
    """RuntimeError for memory that must not be written to, before it is: that of inference tensors outside inference_mode.

    The write is counted after it, by `storage.version += 1`. That line calls nothing, so no other thread runs inside it, and no
    count is lost; it must stay one line. `tests/mindtorch_v2/core/test_storage.py` looks at its bytecode.
    """
    _ = storage.version + 1


@without_signals_at_entry
def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of `array`, which may be itself."""
    # Finalizers call this: a pattern and a recursion handle no signal, isinstance() and a loop would.
    match array.base:
        case np.ndarray() as base:
            return owner_of(base)
    return array


def address_of(array: np.ndarray) -> int:
    """A number that identifies the memory of `array` for as long as that is allocated."""
    return id(owner_of(array))


class Allocation:
    """The hooks for memory that tensors get; the functions are None while there is no listener.

    Code that makes a tensor calls `on_alloc(array, when)`, or `extend(row)` where it knows that the array owns its memory. Code
    that gives a tensor other memory calls `on_move(tensor)` before.
    """

    __slots__ = ("extend", "listeners", "on_alloc", "on_move")

    def __init__(self) -> None:
        self.extend: Callable[[tuple[int, int, int]], None] | None = None
        self.on_alloc: Callable[[np.ndarray, int], None] | None = None
        self.on_move: Callable[[Any], None] | None = None
        self.listeners: list[MemoryListener] = []


allocation = Allocation()

# Classes whose instances hold memory, and the listener's function for their end; Tensor adds itself.
_holders: dict[type, str] = {Storage: "storage_freed"}


def report_end(holder: type, function: str) -> None:
    """Call the function of that name of every MemoryListener when an instance of `holder` ends."""
    _holders[holder] = function


def add_memory_listener(listener: MemoryListener) -> None:
    """Call a listener at every allocation and free from now on, also at frees of tensors that exist already."""
    allocation.listeners.append(listener)
    _connect()


def remove_memory_listener(listener: MemoryListener) -> None:
    """Undo `add_memory_listener`; a listener that is not there is no error."""
    if listener in allocation.listeners:
        allocation.listeners.remove(listener)
    _connect()


def _connect() -> None:
    """Put the listeners' functions where they are called.

    The classes have finalizers only while there is a listener, so that a tensor's end costs nothing otherwise. The functions
    of a single listener are put in place as they are, since a finalizer runs for every tensor.
    """
    listeners = allocation.listeners
    allocation.extend = _each([listener.extend for listener in listeners]) if listeners else None
    allocation.on_alloc = _each([listener.on_alloc for listener in listeners]) if listeners else None
    allocation.on_move = _each([listener.tensor_moves for listener in listeners]) if listeners else None
    for holder, function in _holders.items():
        if listeners:
            holder.__del__ = _each([getattr(listener, function) for listener in listeners])  # type: ignore[attr-defined]
        elif "__del__" in vars(holder):
            del holder.__del__  # type: ignore[attr-defined]


def _each(functions: list[Callable[..., None]]) -> Callable[..., None]:
    if len(functions) == 1:
        return functions[0]

    def call(*values: Any) -> None:
        for function in functions:
            function(*values)

    return call
