"""Finds the calls with `out=` of a recording, and gives them the names of torch's overloads with `out=`."""

from __future__ import annotations

from collections.abc import Callable
from threading import get_native_id

import numpy as np

from ..._dispatch import observer
from ..store import tree
from ..store.store import EventStore
from .op_facts import out_overload

# The ids of ops called with `out=`, by the op's own.
_ids: dict[int, int] = {}


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
        """Note the calls of all threads from now on."""
        observer.add_out_listener(self._note)

    def stop(self) -> None:
        """Note no further calls; those so far are kept."""
        observer.remove_out_listener(self._note)

    def _note(self, op: int) -> None:
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
