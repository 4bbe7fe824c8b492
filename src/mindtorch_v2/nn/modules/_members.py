"""Where a module keeps its parameters, buffers and submodules."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

MISSING: Any = object()


class Members(dict[str, Any]):
    """Members of one kind by name. Each is an entry of the module's `__dict__` as well, see `_show`.

    Python looks there first, so that `self.weight` costs no more than any attribute; `Module.__getattr__`
    would be many times slower. Only a weak reference to the module is held: modules stay free of cycles.
    """

    __slots__ = ("_owner",)

    def __init__(self, owner: Any, items: Any = ()) -> None:
        super().__init__()
        self._owner = weakref.ref(owner)
        self.update(items)

    def _attributes(self) -> dict[str, Any]:
        owner = self._owner()
        return {} if owner is None else owner.__dict__

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        owner = self._owner()
        if owner is not None:
            owner._show(name, value)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._attributes().pop(name, None)

    def pop(self, name: str, default: Any = MISSING) -> Any:
        if name not in self and default is not MISSING:
            return default
        value = self[name]
        del self[name]
        return value

    def popitem(self) -> tuple[str, Any]:
        name, value = super().popitem()
        self._attributes().pop(name, None)
        return name, value

    def clear(self) -> None:
        for name in list(self):
            del self[name]

    def setdefault(self, name: str, default: Any = None) -> Any:
        if name not in self:
            self[name] = default
        return self[name]

    def update(self, items: Any = (), /, **named: Any) -> None:
        pairs: Iterable[tuple[str, Any]] = items.items() if hasattr(items, "items") else items
        for name, value in (*pairs, *named.items()):
            self[name] = value

    def __ior__(self, items: Any) -> Any:  # type: ignore[misc]
        self.update(items)
        return self

    def copy(self) -> dict[str, Any]:
        return dict(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # A plain dict outside of its module; `Module.__setstate__` makes members of it again.
        return dict, (dict(self),)
