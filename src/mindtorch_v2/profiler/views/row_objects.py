"""Objects that stand for a row of a recording and read each attribute when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from .event_factory import EventFactory

# How an attribute is read from a row of a store's views.
Reader: TypeAlias = "Callable[[EventFactory, int], Any]"


class LazyAttributes:
    """An object that stands for a row of a store and reads an attribute when it is first asked for.

    `_live` says which row, as long as the object equals it. Assigning to the object first reads everything; from then
    on it goes its own way, and `_origin` remembers the row.
    """

    __slots__ = ("__dict__", "__weakref__", "_live", "_origin")

    _live: tuple[EventFactory, int] | None
    _origin: tuple[EventFactory, int] | None
    _readers: ClassVar[dict[str, Reader]] = {}

    @classmethod
    def _read_with(cls, readers: dict[str, Reader]) -> None:
        """Say how each attribute is read from a row."""
        cls._readers = readers
        for name, read in readers.items():
            setattr(cls, name, _FirstRead(name, read))

    def __setattr__(self, name: str, value: Any) -> None:
        self._part()
        _set(self, name, value)

    def _part(self) -> None:
        """Read everything that is still unread and no longer follow the row."""
        if self._live is not None:
            vars(self)
            self._live[0].changed = True
            _set_origin(self, self._live)
            _set_live(self, None)

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        detach_row(self)
        own_attributes(self).update(state)

    @property
    def _all_attributes(self) -> dict[str, Any]:
        own = own_attributes(self)
        if self._live is not None:
            rows, row = self._live
            for name, read in self._readers.items():
                if name not in own:
                    own[name] = read(rows, row)
        return own


class _FirstRead:
    """Finds an attribute that the object does not hold yet, and leaves it there."""

    __slots__ = ("name", "read")

    def __init__(self, name: str, read: Reader) -> None:
        self.name = name
        self.read = read

    def __get__(self, instance: LazyAttributes | None, owner: type) -> Any:
        if instance is None:
            return self
        live = instance._live
        if live is None:
            message = f"{owner.__name__!r} object has no attribute {self.name!r}"
            raise AttributeError(message, name=self.name, obj=instance)
        value = self.read(*live)
        _set(instance, self.name, value)
        return value


_set = object.__setattr__
_set_live, _set_origin = (LazyAttributes.__dict__[slot].__set__ for slot in ("_live", "_origin"))
# The attributes that an object itself holds by now; vars() of the classes below reads the others first.
own_attributes: Callable[[LazyAttributes], dict[str, Any]] = LazyAttributes.__dict__["__dict__"].__get__


def bind_row(instance: LazyAttributes, rows: EventFactory, row: int) -> None:
    """Make `instance` a view of a row."""
    _set_live(instance, (rows, row))


def detach_row(instance: LazyAttributes) -> None:
    """Make `instance` an object of its own, without a row."""
    _set_live(instance, None)
    _set_origin(instance, None)
