"""Dispatch keys by name, as far as libraries name them, and leaving some out for a while."""

from __future__ import annotations

import enum
from typing import Any

from .._core.cpython import without_signals_at_entry
from ..amp.autocast_mode import autocast


class DispatchKey(enum.Enum):
    """What may take part in a call: a device's kernels, autograd, autocast ..."""

    CPU = "CPU"
    CUDA = "CUDA"
    XPU = "XPU"
    MPS = "MPS"
    Meta = "Meta"
    PrivateUse1 = "PrivateUse1"
    Autograd = "Autograd"
    AutogradCPU = "AutogradCPU"
    AutogradCUDA = "AutogradCUDA"
    AutocastCPU = "AutocastCPU"
    AutocastCUDA = "AutocastCUDA"
    AutocastXPU = "AutocastXPU"
    CompositeImplicitAutograd = "CompositeImplicitAutograd"
    CompositeExplicitAutograd = "CompositeExplicitAutograd"
    ADInplaceOrView = "ADInplaceOrView"
    Python = "Python"


class DispatchKeySet:
    """Some dispatch keys: `DispatchKeySet(key) | other`."""

    def __init__(self, key: DispatchKey) -> None:
        self._keys = frozenset([key])

    def has(self, key: DispatchKey) -> bool:
        """Whether a key is among them."""
        return key in self._keys

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _made(self._keys | other._keys)

    def __sub__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _made(self._keys - other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return _made(self._keys & other._keys)

    def __repr__(self) -> str:
        return f"DispatchKeySet({', '.join(sorted(key.name for key in self._keys))})"


def _made(keys: frozenset[DispatchKey]) -> DispatchKeySet:
    result = object.__new__(DispatchKeySet)
    result._keys = keys
    return result


_AUTOCAST = {DispatchKey.AutocastCPU: "cpu", DispatchKey.AutocastCUDA: "cuda", DispatchKey.AutocastXPU: "xpu"}


class _ExcludeDispatchKeyGuard:
    """Leaves keys out of the calls inside a `with` block: those of autocast, whose kernels call the op again by that."""

    def __init__(self, keys: DispatchKeySet) -> None:
        others = [key.name for key in keys._keys if key not in _AUTOCAST]
        if others:
            raise NotImplementedError(f"_ExcludeDispatchKeyGuard: {', '.join(sorted(others))}; autocast can be left out")
        # Autocast for devices that do not exist is off anyway.
        self._off = autocast("cpu", enabled=False) if keys.has(DispatchKey.AutocastCPU) else None

    def __enter__(self) -> None:
        if self._off is not None:
            self._off.__enter__()

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        if self._off is not None:
            self._off.__exit__(*exc)
