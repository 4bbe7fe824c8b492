"""Objects bound to a row of a store: each attribute is read from the columns on first access."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

if TYPE_CHECKING:
    from .event_factory import EventFactory

# Reads one attribute of a row.
Reader: TypeAlias = "Callable[[EventFactory, int], Any]"


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
