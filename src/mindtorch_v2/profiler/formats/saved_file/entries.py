"""Entries of a saved profile's tables: from JSON to the objects of a store, and placeholders of lost ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from ...store.store import InputInfo, OtherEvent, RowDetails, ThreadInfo

# Tables of logs are only in streamed files, and what reads them needs the recorder: it is imported then.
if TYPE_CHECKING:
    from ...assembly.python_rows import Target
    from ...recording.module_calls import ModuleInfo

_LOST = "<lost>"


def _text(entry: Any, tables: Any) -> str:
    if not isinstance(entry, str):
        raise TypeError("not a text")
    return entry


def _thread(entry: Any, tables: Any) -> ThreadInfo:
    ident, name = entry
    return ThreadInfo(int(ident), _text(name, tables))


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_tuples, value))
    return complex(*value["complex"]) if isinstance(value, dict) else value


def _input_info(entry: Any, tables: Any) -> InputInfo:
    dims, types, strides, concrete, *more = map(_tuples, entry)
    keywords = more[0] if more else ()
    if not all(isinstance(part, tuple) for part in (dims, types, strides, concrete, keywords)):
        raise TypeError("not the inputs of a call")
    return InputInfo(dims, types, strides, concrete, tuple((str(name), value) for name, value in keywords))


def _stack_node(entry: Any, tables: dict[str, list[Any]]) -> tuple[str, ...]:
    """The stack that ends in a node: the node's frame, and the stack of the node above it, which comes earlier in the table."""
    parent, frame = entry
    frames, nodes = tables["frames"], tables["stack_nodes"]
    if not -1 <= parent < len(nodes):
        raise ValueError("a node above one that is not known yet")
    text = frames[frame] if 0 <= frame < len(frames) else _LOST
    return (text, *nodes[parent]) if parent >= 0 else (text,)


def _stack(entry: Any, tables: dict[str, list[Any]]) -> tuple[str, ...]:
    if isinstance(entry, int):
        nodes = tables["stack_nodes"]
        if entry < 0:
            return ()
        known_stack: tuple[str, ...] = nodes[entry] if entry < len(nodes) else (_LOST,)
        return known_stack
    known = tables["frames"]
    return tuple(known[at] if 0 <= at < len(known) else _LOST for at in entry)


def _call(entry: Any, tables: Any) -> Target:
    from ...assembly.call_table import restored

    return restored(entry)


def _module_info(entry: Any, tables: Any) -> ModuleInfo:
    from ...recording.module_calls import ModuleInfo

    ident, class_name, order, children = entry
    return ModuleInfo(
        int(ident), _text(class_name, tables), int(order), {int(key): _text(name, tables) for key, name in children}
    )


def _object(text: Any, tables: Any) -> str:
    """The text of a JSON object: exporters write it into their files as it is."""
    if not isinstance(orjson.loads(_text(text, tables)), dict):
        raise TypeError("not a JSON object")
    return str(text)


def _row_details(entry: Any, tables: Any) -> RowDetails:
    category, arguments = entry
    return RowDetails(_text(category, tables), _object(arguments, tables))


def _other_event(entry: Any, tables: Any) -> OtherEvent:
    start, duration, fields = entry
    return OtherEvent(int(np.int64(start)), int(np.int64(duration)), _object(fields, tables))


# By table: makes an entry of its JSON; TypeError, ValueError or LookupError if that is not one.
ENTRIES: dict[str, Callable[[Any, dict[str, list[Any]]], Any]] = {
    "names": _text,
    "threads": _thread,
    "input_infos": _input_info,
    "frames": _text,
    "stacks": _stack,
    "modules": _text,
    "overloads": _text,
    "calls": _call,
    "module_infos": _module_info,
    "tasks": _thread,
    "row_details": _row_details,
    "other_events": _other_event,
    "stack_nodes": _stack_node,
}
_LOST_ENTRIES: dict[str, Any] = {
    "names": _LOST,
    "threads": ThreadInfo(0, _LOST),
    "input_infos": InputInfo((), (), (), ()),
    "frames": _LOST,
    "stacks": (_LOST,),
    "modules": _LOST,
    "overloads": "",
    "tasks": ThreadInfo(0, _LOST),
    "row_details": RowDetails("", "{}"),
    "other_events": OtherEvent(0, -1, '{"ph": "i", "name": "<lost>"}'),
    "stack_nodes": (_LOST,),
}


def lost_entry(table: str) -> Any:
    """What stands for an entry of a table that is missing."""
    if table == "calls":
        from ...assembly.call_table import LOST

        return LOST
    return _module_info([0, _LOST, 0, ()], {}) if table == "module_infos" else _LOST_ENTRIES[table]
