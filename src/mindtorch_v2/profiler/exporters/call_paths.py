"""The paths of Python calls: all calls of a function that the same functions called, in the same order, have one number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .._io.stack_lines import stack_frame
from ..store import tree
from ..store.store import EventStore


def collapsed(stack: Sequence[str]) -> str:
    """A stack, innermost frame first, as one word: root first, joined by semicolons."""
    return ";".join(map(stack_frame, reversed(stack)))


class CallPaths:
    """The path of each Python call of a recording: the calls around it, or the stack that is recorded with one of them."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self.rows = np.flatnonzero(store.is_python)
        self._caller = tree.nearest_ancestor(store.parent, store.is_python)
        # Places among the calls; -1 where nothing is known to have called it, or a stack tells what did.
        caller = np.searchsorted(self.rows, self._caller[self.rows]).astype(np.int32)
        caller[(self._caller[self.rows] < 0) | (store.stack[self.rows] >= 0)] = -1
        self.number, self._above, self._first = _numbered(caller, store.name[self.rows], store.stack[self.rows])
        self._texts: dict[int, str] = {}

    def sums(self, amounts: NDArray[np.int64]) -> list[tuple[str, int]]:
        """The text and the sum of each path, given an amount for each row of the store; without those that have none."""
        totals = np.bincount(self.number, np.maximum(amounts[self.rows], 0), len(self._first)).astype(np.int64)
        with_any = np.flatnonzero(totals > 0)
        with_any = with_any[np.argsort(self._first[with_any], kind="stable")]
        found: dict[str, int] = {}  # files may give one function several names that look alike
        for path, total in zip(with_any.tolist(), totals[with_any].tolist(), strict=True):
            text = self._text(path)
            found[text] = found.get(text, 0) + total
        return list(found.items())

    def of_caller(self, row: int) -> str:
        """The path that ends in the Python call around a row; "" if there is none."""
        caller = int(self._caller[row])
        return self._text(int(self.number[np.searchsorted(self.rows, caller)])) if caller >= 0 else ""

    def _text(self, path: int) -> str:
        """The functions of a path, outermost first."""
        missing = []
        at = path
        while at >= 0 and at not in self._texts:
            missing.append(at)
            at = int(self._above[at])
        text = self._texts[at] if at >= 0 else ""
        for inner in reversed(missing):
            own = self._own_text(int(self.rows[self._first[inner]]))
            text = self._texts[inner] = f"{text};{own}" if text else own
        return text

    def _own_text(self, row: int) -> str:
        store = self._store
        name, stack = store.names[store.name[row]], int(store.stack[row])
        return collapsed((name, *store.stacks[stack])) if stack >= 0 else stack_frame(name)


def _numbered(
    caller: NDArray[np.int32], name: NDArray[np.int32], stack: NDArray[np.int32]
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """The path of each call; and of each path the one above it, -1 at an outermost one, and its first call.

    Level by level: a path is what lies above it, and a name. At the top what lies above is a recorded stack, or nothing.
    """
    number = np.empty(len(caller), np.intp)
    above, first = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
    level = tree.depths(caller)
    by_level = np.argsort(level, kind="stable")
    names = int(name.max(initial=0)) + 1
    count = 0
    for calls in np.split(by_level, np.flatnonzero(np.diff(level[by_level])) + 1):
        called_by = number[caller[calls]] if len(calls) and caller[calls[0]] >= 0 else np.full(len(calls), -1, np.intp)
        outside = np.where(called_by >= 0, called_by, stack[calls])
        key = (outside + 1) * names + name[calls]
        order = np.argsort(key, kind="stable")
        is_new = np.diff(key[order], prepend=-1) != 0
        number[calls[order]] = count + np.cumsum(is_new) - 1
        first.append(calls[order[is_new]])
        above.append(called_by[order[is_new]])
        count += len(first[-1])
    return number, np.concatenate(above), np.concatenate(first)
