"""Entries of a saved profile's tables: from JSON to the objects of a store, and placeholders of lost ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...assembly.call_table import LOST, restored
from ...assembly.python_rows import Target
from ...recording.module_calls import ModuleInfo
from ...store.store import InputInfo, ThreadInfo

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


def _stack(entry: Any, tables: dict[str, list[Any]]) -> tuple[str, ...]:
    known = tables["frames"]
    return tuple(known[at] if 0 <= at < len(known) else _LOST for at in entry)


def _call(entry: Any, tables: Any) -> Target:
    return restored(entry)


def _module_info(entry: Any, tables: Any) -> ModuleInfo:
    ident, class_name, order, children = entry
    return ModuleInfo(
        int(ident), _text(class_name, tables), int(order), {int(key): _text(name, tables) for key, name in children}
    )


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
}
LOST_ENTRIES: dict[str, Any] = {
    "names": _LOST,
    "threads": ThreadInfo(0, _LOST),
    "input_infos": InputInfo((), (), (), ()),
    "frames": _LOST,
    "stacks": (_LOST,),
    "modules": _LOST,
    "overloads": "",
    "calls": LOST,
    "module_infos": ModuleInfo(0, _LOST, 0, {}),
    "tasks": ThreadInfo(0, _LOST),
}
