"""Storage: the buffer behind one or more tensors, its version counter, and the allocation hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .threads import threads


class Untracked(int):
    """The version of inference tensors, which is not counted: adding to it gives itself inside of inference_mode and is an
    error outside, before the write that it would count. Copies and pickles of it are zeros, a new storage's version."""

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


class MemoryWatcher(NamedTuple):
    """Functions that are told of memory, on the thread that gets or gives it back, at that moment."""

    # ((when, bytes, address)): a tensor was given fresh memory; `when` is the start of the op that made it.
    extend: Callable[[tuple[int, int, int]], None]
    # (array, when): the same where it is not known yet which array owns the memory; `when` may be 0: now.
    on_alloc: Callable[[np.ndarray, int], None]
    # (tensor): a tensor goes. If it has a storage, the memory goes with that; if not, now.
    tensor_freed: Callable[[Any], None]
    # (storage): a storage goes, and with it its memory, unless that is external.
    storage_freed: Callable[[Any], None]


class Storage:
    """What tensors that view the same memory share.

    A tensor that was never viewed or changed in place has none yet (`Tensor._storage is None`, version 0);
    `storage_of` makes it on demand, which keeps it off the path of a plain op.
    """

    __slots__ = ("__weakref__", "device", "external", "owner", "version")

    device: str
    external: bool
    owner: Any
    version: int

    def __init__(self, owner: Any, *, external: bool = False, device: str = "cpu") -> None:
        self.owner = owner
        self.version = 0
        # Memory that somebody else allocated (NumPy, a file mapping): never counted as ours.
        self.external = external
        self.device = device

    @property
    def nbytes(self) -> int:
        return int(self.owner.nbytes)


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory `array` looks at."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def address_of(array: np.ndarray) -> int:
    """A number that identifies the memory of `array` while it lives."""
    return id(owner_of(array))


class Allocation:
    """The hook: whoever gives a tensor fresh memory calls `on_alloc`, or where it knows that the array owns its memory,
    `extend` with the row itself."""

    __slots__ = ("extend", "on_alloc", "watchers")

    def __init__(self) -> None:
        self.extend: Callable[[tuple[int, int, int]], None] | None = None
        self.on_alloc: Callable[[np.ndarray, int], None] | None = None
        self.watchers: list[MemoryWatcher] = []


allocation = Allocation()

# Classes whose instances hold memory, and the watcher's function that is told of their end; Tensor adds itself.
_holders: dict[type, str] = {Storage: "storage_freed"}


def report_end(holder: type, function: str) -> None:
    """Have the function of that name of every MemoryWatcher run at the end of every `holder`."""
    _holders[holder] = function


def watch_memory(watcher: MemoryWatcher) -> None:
    """Report every allocation and free from now on, also frees of tensors that exist already."""
    allocation.watchers.append(watcher)
    _connect()


def unwatch_memory(watcher: MemoryWatcher) -> None:
    """Report no more to a watcher."""
    allocation.watchers.remove(watcher)
    _connect()


def _connect() -> None:
    """Finalisers are on the classes only while somebody watches, so a tensor's end costs nothing otherwise.

    What a single watcher gave is put in place as it is: a finaliser runs for every tensor.
    """
    watchers = allocation.watchers
    allocation.extend = _each([watcher.extend for watcher in watchers]) if watchers else None
    allocation.on_alloc = _each([watcher.on_alloc for watcher in watchers]) if watchers else None
    for holder, function in _holders.items():
        if watchers:
            holder.__del__ = _each([getattr(watcher, function) for watcher in watchers])  # type: ignore[attr-defined]
        elif "__del__" in vars(holder):
            del holder.__del__  # type: ignore[attr-defined]


def _each(functions: list[Callable[..., None]]) -> Callable[..., None]:
    if len(functions) == 1:
        return functions[0]

    def call(*values: Any) -> None:
        for function in functions:
            function(*values)

    return call
