"""Storage: the buffer behind one or more tensors, its version counter, and the allocation hook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MemoryHook = Callable[[int, int, str], None]


class Storage:
    """What tensors that view the same memory share.

    A tensor that was never viewed or changed in place has none yet (`Tensor._storage is None`, version 0);
    `storage_of` makes it on demand, which keeps it off the path of a plain op.
    """

    __slots__ = ("__weakref__", "device", "external", "owner", "version")

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
    """The hook: `on_alloc` is called for every tensor that was given fresh memory, `on_free` when it goes."""

    __slots__ = ("_watchers", "on_alloc", "on_free")

    def __init__(self) -> None:
        self.on_alloc: MemoryHook | None = None
        self.on_free: MemoryHook | None = None
        self._watchers: list[tuple[MemoryHook, MemoryHook]] = []

    def set(self, watchers: list[tuple[MemoryHook, MemoryHook]]) -> None:
        self._watchers = watchers
        if not watchers:
            self.on_alloc = self.on_free = None
        elif len(watchers) == 1:
            self.on_alloc, self.on_free = watchers[0]
        else:
            self.on_alloc = _fan_out([alloc for alloc, _ in watchers])
            self.on_free = _fan_out([free for _, free in watchers])


def _fan_out(hooks: list[MemoryHook]) -> MemoryHook:
    def call(nbytes: int, address: int, device: str) -> None:
        for hook in hooks:
            hook(nbytes, address, device)

    return call


allocation = Allocation()

# Classes whose instances hold memory and need to say so when they go: Storage, and Tensor (added by its module).
_holders: list[tuple[type, Callable[[Any], None]]] = []


def _storage_freed(self: Storage) -> None:
    hook = allocation.on_free
    if hook is not None and not self.external:
        hook(self.nbytes, id(self.owner), self.device)


_holders.append((Storage, _storage_freed))


def watch_memory(on_alloc: MemoryHook, on_free: MemoryHook) -> None:
    """Report every allocation and free from now on, also frees of tensors that exist already.

    Finalisers are put on the classes only while somebody watches, so a tensor's end costs nothing otherwise.
    """
    allocation.set([*allocation._watchers, (on_alloc, on_free)])
    for holder, finalise in _holders:
        holder.__del__ = finalise  # type: ignore[attr-defined]


def unwatch_memory(on_alloc: MemoryHook | None = None) -> None:
    """Stop reporting to the watcher that `on_alloc` belongs to, or to all."""
    kept = [pair for pair in allocation._watchers if on_alloc is not None and pair[0] is not on_alloc]
    allocation.set(kept)
    if not kept:
        for holder, _ in _holders:
            if "__del__" in vars(holder):
                del holder.__del__  # type: ignore[attr-defined]


def report_finaliser(holder: type, finalise: Callable[[Any], None]) -> None:
    """Have `finalise(object)` run at the end of every `holder` while memory is watched."""
    _holders.append((holder, finalise))
