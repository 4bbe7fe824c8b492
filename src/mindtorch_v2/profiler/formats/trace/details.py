"""Collects what rows of a trace have beyond a store's columns, so that saving and converting a trace loses nothing of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import orjson

from ...store.store import RowDetails
from .kinds import IMPLIED

# Arguments that columns or tables hold, or that a writer counts anew.
_HOST = frozenset(
    {
        "External id",
        "Ev Idx",
        "Profiler Event Index",
        "Record function id",
        "Sequence number",
        "Fwd thread id",
        "Concrete Inputs",
        "Input type",
        "Input Strides",
        "Input Dims",
        "Module Hierarchy",
        "Call stack",
        "correlation",
        "external ts",  # of old traces: a time on another clock
    }
)
_DEVICE = frozenset({"External id", "correlation", "Ev Idx"})
_RECORD_FUNCTION = "Record function id"


class DetailsTable:
    """The details of rows, each stored once."""

    def __init__(self) -> None:
        self.numbers: dict[RowDetails, int] = {}
        self._more: dict[tuple[bool, tuple[str, ...]], tuple[str, ...]] = {}

    def table(self) -> list[RowDetails]:
        """The details by number."""
        return list(self.numbers)

    def of_host(self, args: Sequence[Any], categories: Sequence[str], record_functions: Sequence[int]) -> list[int]:
        """A number for each row of the host, -1 where the columns have everything."""
        more, number, numbers = self._more, self._number, []
        for arguments, category, function in zip(args, categories, record_functions, strict=True):
            keys = (False, tuple(arguments))
            extra = more.get(keys)
            if extra is None:
                extra = more[keys] = tuple(key for key in keys[1] if key not in _HOST)
            if extra or function or category not in IMPLIED:
                values = {key: arguments[key] for key in extra}
                if function:
                    values[_RECORD_FUNCTION] = function
                numbers.append(number(category, values))
            else:
                numbers.append(-1)
        return numbers

    def of_device(self, args: Sequence[Any], categories: Sequence[str]) -> list[int]:
        """A number for each row of a device, -1 where the columns have everything."""
        more, number, numbers = self._more, self._number, []
        for arguments, category in zip(args, categories, strict=True):
            keys = (True, tuple(arguments))
            extra = more.get(keys)
            if extra is None:
                extra = more[keys] = tuple(key for key in keys[1] if key not in _DEVICE)
            if extra or category not in IMPLIED:
                numbers.append(number(category, {key: arguments[key] for key in extra}))
            else:
                numbers.append(-1)
        return numbers

    def _number(self, category: str, values: dict[str, Any]) -> int:
        details = RowDetails("" if category in IMPLIED else category, json_text(values))
        return self.numbers.setdefault(details, len(self.numbers))


def json_text(value: dict[str, Any]) -> str:
    """A JSON object as text; Decimals, which come from times with all digits, become floats."""
    try:
        return orjson.dumps(value, default=float).decode()
    except TypeError:  # numbers of more than 64 bits
        return json.dumps(value, default=float)
