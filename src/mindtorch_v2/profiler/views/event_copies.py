"""Events with their parents and children as flat lists, for copies and pickles of events that are no longer rows.

To follow parents and children by recursion would go as deep as events are nested.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from .row_objects import LINKS, LazyAttributes, own_attributes

_ATOMS = (int, float, str, bool, type(None))
# Another object of the lists by its number, or in a tuple an object that is copied in its own way.
Link = int | tuple[Any]


class Flat(NamedTuple):
    """Events of a list, and those that can be reached from them."""

    listed: list[Link]
    kinds: list[type[LazyAttributes]]
    attributes: list[dict[str, Any]]  # of each event, without its parent and children
    origins: list[Any]
    parents: list[Link]
    children: list[list[Link] | None]

    def __deepcopy__(self, memo: dict[int, Any]) -> Flat:
        # Most attributes are numbers and texts: to ask deepcopy() about each of them takes ten times as long.
        attributes = [
            {name: value if type(value) in _ATOMS else copy.deepcopy(value, memo) for name, value in values.items()}
            for values in self.attributes
        ]
        links = (_copied(self.listed, memo), list(self.kinds), attributes, copy.deepcopy(self.origins, memo))
        children = [None if numbers is None else _copied(numbers, memo) for numbers in self.children]
        return Flat(*links, _copied(self.parents, memo), children)


def _copied(links: list[Link], memo: dict[int, Any]) -> list[Link]:
    return [link if type(link) is int else copy.deepcopy(link, memo) for link in links]


def flattened(events: Iterable[Any], taken: Callable[[LazyAttributes], bool]) -> Flat:
    """The events, and all that their parents and children lead to, each once, as far as they are to be `taken` apart."""
    flat = Flat([], [], [], [], [], [])
    numbers: dict[int, int] = {}
    objects: list[LazyAttributes] = []

    def link(event: Any) -> Link:
        number = numbers.get(id(event))
        if number is not None:
            return number
        if not isinstance(event, LazyAttributes) or not taken(event):
            return (event,)
        numbers[id(event)] = len(objects)
        objects.append(event)
        return len(objects) - 1

    flat.listed.extend(map(link, events))
    for event in objects:  # grows meanwhile
        attributes = dict(own_attributes(event))
        parent, children = (attributes.pop(name, None) for name in LINKS)
        flat.kinds.append(type(event))
        flat.attributes.append(attributes)
        flat.origins.append(event._origin)
        flat.parents.append(link(parent))
        flat.children.append(None if children is None else [link(child) for child in children])
    return flat


def rebuilt(flat: Flat) -> list[Any]:
    """The list that was flattened, with new events."""
    objects = [kind.__new__(kind) for kind in flat.kinds]

    def linked(link: Link) -> Any:
        return objects[link] if isinstance(link, int) else link[0]

    for event, attributes, origin, parent, children in zip(
        objects, flat.attributes, flat.origins, flat.parents, flat.children, strict=True
    ):
        event.__setstate__((attributes, origin))
        own_attributes(event).update(
            cpu_parent=linked(parent), cpu_children=None if children is None else [linked(child) for child in children]
        )
    return [linked(link) for link in flat.listed]
