"""Calls with `out=`: which ones they were, so that they can be shown under the overload that torch has for them."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_native_id
from typing import Any

import numpy as np

from ..._dispatch import entry_globals, observer
from ..store import tree
from ..store.store import EventStore
from .op_facts import out_overload

# Ids that stand for an op called with `out=`, by the op's own.
_ids: dict[int, int] = {}
# Who wants to know of such calls, and what the dispatcher does without anybody.
_listeners: list[OutCalls] = []
_plain: Callable[..., Any] | None = None


def out_id(op: int) -> int:
    """The id of an op called with `out=`: the same name and schema under another overload."""
    number = _ids.get(op)
    if number is None:
        number = _ids[op] = len(observer.op_names)
        name = observer.op_names[op]
        observer.op_names.append(name)
        observer.op_schemas.append(observer.op_schemas[op])
        observer.op_overloads.append(out_overload(name.removeprefix("aten::"), observer.op_overloads[op]))
    return number


class OutCalls:
    """The calls with `out=` of one recording: when and on which thread each was under way."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._calls: list[tuple[int, int, int]] = []  # moment, operating-system thread id, op

    def start(self) -> None:
        """Begin to note them."""
        global _plain
        if not _listeners:
            _plain, entry_globals.run_out = entry_globals.run_out, _noted
        _listeners.append(self)

    def stop(self) -> None:
        """Note no more."""
        if self in _listeners:
            _listeners.remove(self)
            if not _listeners:
                entry_globals.run_out = _plain

    def note(self, op: int) -> None:
        self._calls.append((self._clock(), get_native_id(), op))

    def take(self) -> list[tuple[int, int, int]]:
        """Moment, operating-system thread id and op of the calls so far, which it no longer has."""
        taken = self._calls[:]
        del self._calls[: len(taken)]
        return taken

    def shown_in(self, store: EventStore) -> EventStore:
        """The recording with those calls under their own overload."""
        thread = {info.ident: tid for tid, info in enumerate(store.threads)}
        calls = [call for call in self._calls if call[1] in thread]
        if not calls:
            return store
        moment = np.array([call[0] for call in calls], np.int64)
        tid = np.array([thread[call[1]] for call in calls], np.int32)
        # The innermost op at that moment is the one that was called: nothing inside it has begun.
        rows = tree.enclosing(store.host_tid, store.start, store.end, store.parent, tid, moment)
        op = store.op.copy()
        for row, (_, _, called) in zip(rows.tolist(), calls, strict=True):
            if row >= 0 and op[row] == called:
                op[row] = out_id(called)
        return store.with_overloads(op, list(observer.op_overloads))


def _noted(op: Any, args: tuple[Any, ...], out: Any) -> Any:
    for listener in _listeners:
        listener.note(op.id)
    assert _plain is not None
    return _plain(op, args, out)
