"""Objects bound to a row of a store: each attribute is read from the columns on first access."""

from __future__ import annotations

import copyreg
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Self, SupportsIndex, TypeAlias

if TYPE_CHECKING:
    from .event_factory import EventFactory

# Reads one attribute of a row.
Reader: TypeAlias = "Callable[[EventFactory, int], Any]"
# Attributes that refer to other objects of the same kind.
LINKS = ("cpu_parent", "cpu_children")


class LazyAttributes:
    """Base class of objects bound to a row, which read an attribute on first access and keep its value.

    `_live` is the row, as long as the object equals it. An assignment first reads all attributes and unbinds the object;
    then `_origin` is the row.
    """

    __slots__ = ("__dict__", "__weakref__", "_live", "_origin")

    _live: tuple[EventFactory, int] | None
    _origin: tuple[EventFactory, int] | None
    _readers: ClassVar[dict[str, Reader]] = {}

    @classmethod
    def _read_with(cls, readers: dict[str, Reader]) -> None:
        """Set the attributes of the class and how each is read from a row."""
        cls._readers = readers
        for name, read in readers.items():
            setattr(cls, name, _FirstRead(name, read))

    def __setattr__(self, name: str, value: Any) -> None:
        self._part()
        _set(self, name, value)

    def _part(self) -> None:
        """Unbind the object from its row, after reading all attributes."""
        if self._live is not None:
            vars(self)
            self._live[0].changed = True
            _set_origin(self, self._live)
            _set_live(self, None)

    def __copy__(self) -> Self:
        """An object without a row that has the same attributes."""
        other = type(self).__new__(type(self))
        other.__setstate__((dict(vars(self)), self._live or self._origin))
        return other

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """What a deep copy and a pickle are made of: the row, or without one the attributes."""
        if self._live is None:
            if self._is_of_rows:
                return _of_rows_again, self._origin
            return copyreg.__newobj__, (type(self),), (dict(own_attributes(self)), self._origin)  # type: ignore[attr-defined]
        # Of parents and children the row tells; to follow them would go through all events, as deep as they are nested.
        values = {name: value for name, value in own_attributes(self).items() if name not in LINKS}
        return _bound_again, (type(self), *self._live, values)

    @property
    def _is_of_rows(self) -> bool:
        """Whether copies of the rows have a copy of this object: it is bound to them, or changed and still theirs."""
        return self._live is not None or (self._origin is not None and self._origin[0].has(self._origin[1], self))

    def __setstate__(self, state: tuple[dict[str, Any], tuple[EventFactory, int] | None]) -> None:
        attributes, origin = state
        _set_live(self, None)
        _set_origin(self, origin)
        own_attributes(self).update(attributes)

    @property
    def _all_attributes(self) -> dict[str, Any]:
        own = own_attributes(self)
        if self._live is not None:
            rows, row = self._live
            for name, read in self._readers.items():
                if name not in own:
                    own[name] = read(rows, row)
        return own


def _bound_again(kind: type[LazyAttributes], rows: EventFactory, row: int, values: dict[str, Any]) -> LazyAttributes:
    """The object of a row in a copy of its rows: for an event the one that the rows have."""
    instance: LazyAttributes = rows.event(row)
    if type(instance) is not kind:
        instance = kind.__new__(kind)
        bind_row(instance, rows, row)
    own_attributes(instance).update(values)
    return instance


def _of_rows_again(rows: EventFactory, row: int) -> LazyAttributes:
    return rows.event(row)


class _FirstRead:
    """Descriptor that reads an attribute and stores it on the instance, which is found first from then on."""

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
# The attributes that an object has stored so far; vars() of the subclasses reads the others first.
own_attributes: Callable[[LazyAttributes], dict[str, Any]] = LazyAttributes.__dict__["__dict__"].__get__


def bind_row(instance: LazyAttributes, rows: EventFactory, row: int) -> None:
    """Let `instance` read its attributes from a row."""
    _set_live(instance, (rows, row))


def detach_row(instance: LazyAttributes) -> None:
    """Initialize `instance` as an object without a row."""
    _set_live(instance, None)
    _set_origin(instance, None)
