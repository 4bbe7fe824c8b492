"""Tables of a trace's lanes and inputs, in which each value is stored once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson

from ...store.store import InputInfo, ThreadInfo

_THREAD = re.compile(r"thread (-?\d+) \((.*)\)", re.DOTALL)
_WHOLE = re.compile(r"-?\d{1,18}")
_FRACTION = re.compile(r"-?(\d+\.\d*|\.\d+|\d+)(e[+-]?\d+)?", re.IGNORECASE)
_WORDS: dict[str, Any] = {"": None, "True": True, "False": False, "None": None}
_MOST_DEPTH = 4
LaneKey = tuple[int | str, int | str]  # process (or Device) and thread (or stream), as in a trace


class Lanes:
    """Threads and streams, numbered as the tid of rows."""

    def __init__(self) -> None:
        self.numbers: dict[LaneKey, int] = {}
        self._names: dict[LaneKey, str] = {}

    def number(self, process: int | str, thread: int | str) -> int:
        """The lane of a thread or stream, a new one if it has none yet."""
        return self.numbers.setdefault((process, thread), len(self.numbers))

    def set_name(self, process: int | str, thread: int | str, name: str) -> None:
        """Set the name of a thread, without the "thread N (...)" that Kineto puts around it."""
        match = _THREAD.fullmatch(name)
        self._names[process, thread] = match[2] if match and match[1] == str(thread) else name

    def table(self, process: int | str) -> list[ThreadInfo]:
        """The names of all lanes; those of other processes than `process` include theirs."""
        threads = []
        for place, (owner, thread) in enumerate(self.numbers):
            ident = int(thread) if isinstance(thread, int) else place
            name = self._names.get((owner, thread), thread if isinstance(thread, str) else f"thread {ident}")
            if isinstance(owner, Device):
                name = self._names.get((int(owner), thread), "").strip() or f"stream {ident}"
            elif owner != process:
                name = f"{name} of process {owner}"
            threads.append(ThreadInfo(ident, name))
        return threads


class Device(int):
    """The owner of a stream; unequal to the process of that number."""

    def __hash__(self) -> int:
        return hash((Device, int(self)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and int(self) == int(other)


class Inputs:
    """Inputs of calls, by the JSON of their four lists."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self.table: list[InputInfo] = []

    def number(self, args: dict[str, Any]) -> int:
        """The number of the inputs in an event's arguments, -1 if there are none."""
        dims = args.get("Input Dims")
        if dims is None:
            return -1
        return self._number(_written, dims, args.get("Input type"), args.get("Input Strides"), args.get("Concrete Inputs"))

    def number_of_values(self, dims: Any, types: Any, strides: Any, concrete: Any) -> int:
        """The number of inputs whose concrete values are Python's, and not texts of them."""
        return self._number(_hashable, dims, types, strides, concrete)

    def _number(self, value_of: Callable[[Any], Any], *parts: Any) -> int:
        try:
            key = orjson.dumps(parts, default=str)
        except TypeError:  # numbers of more than 64 bits
            key = repr(parts).encode("utf-8", "replace")
        number = self._numbers.get(key)
        if number is None:
            info = _input_info(value_of, *parts)
            if info is None:
                number = -1
            else:
                number = len(self.table)
                self.table.append(info)
            self._numbers[key] = number
        return number


def _input_info(value_of: Callable[[Any], Any], dims: Any, types: Any, strides: Any, concrete: Any) -> InputInfo | None:
    if not isinstance(dims, list):
        return None
    count = len(dims)
    return InputInfo(
        tuple(map(_sizes, dims)),
        tuple(entry if isinstance(entry, str) else "" for entry in _fitted(types, count, "")),
        tuple(map(_sizes, _fitted(strides, count, []))),
        tuple(map(value_of, _fitted(concrete, count, ""))),
    )


def _fitted(values: Any, count: int, missing: Any) -> list[Any]:
    present = values[:count] if isinstance(values, list) else []
    return present + [missing] * (count - len(present))


def _sizes(value: Any, depth: int = 0) -> Any:
    """A shape or a list of shapes as tuples; () for other values."""
    if not isinstance(value, list) or depth == _MOST_DEPTH:
        return ()
    if all(type(entry) is int for entry in value):
        return tuple(value)
    return tuple(_sizes(entry, depth + 1) for entry in value)


def _written(text: Any) -> Any:
    """Parse a value as C++ prints it; text that is no number, boolean or list of these stays text."""
    if not isinstance(text, str):
        return None
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("[") and text.endswith("]"):
        entries = [_scalar(part.strip()) for part in text[1:-1].split(",")] if text != "[]" else []
        return text if any(isinstance(entry, str) for entry in entries) else tuple(entries)
    return _scalar(text)


def _hashable(value: Any) -> Any:
    """A value as a store keeps it: lists as tuples, and what is no number, boolean or text as text."""
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _scalar(text: str) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _FRACTION.fullmatch(text):
        return float(text)
    return _WORDS.get(text, text) if text else text
