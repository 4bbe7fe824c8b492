"""The places inside a container: of a dict, of a sequence, of an attribute. A path of them leads from a tree to a leaf."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

K = TypeVar("K")


class KeyEntry(Protocol):
    """One step of a path: hashable, and `get(parent)` is what is there."""

    def __hash__(self) -> int: ...

    def __eq__(self, other: object) -> bool: ...

    def __str__(self) -> str: ...

    def get(self, parent: Any) -> Any:
        """What `parent` holds at this place."""
        ...


KeyPath = tuple[KeyEntry, ...]


@dataclass(frozen=True)
class SequenceKey:
    """A position in a list, tuple or deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.idx]


@dataclass(frozen=True)
class MappingKey(Generic[K]):
    """A key of a dict."""

    key: K

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, parent: Any) -> Any:
        return parent[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """An attribute of an object, or a field of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, parent: Any) -> Any:
        return getattr(parent, self.name)


def keystr(kp: Iterable[KeyEntry]) -> str:
    """A path as Python writes it: `['layers'][0].weight`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[KeyEntry]) -> Any:
    """What is at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj
