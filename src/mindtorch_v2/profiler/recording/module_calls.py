"""nn.Module calls while recording: which module, from when to when.

In: enter and leave, from nn.Module.__call__. Out: rows of module number, start and end. The path of a
module follows from how calls are nested.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._core.cpython import without_signals_at_entry
from ..._dispatch.observer import call_untraced
from ..store import tree
from .tensor_notes import ModuleNote, note_module

WIDTH = 2  # module number when it begins or _ENDS, time
# In place of a module's number: the innermost call ends; recording begins; recording stops.
_ENDS, _BEGINS, _STOPS = -1, -2, -3


class ModuleInfo(NamedTuple):
    """What is known of a module that was called; the module itself is not kept alive."""

    ident: int
    class_name: str
    order: int  # how many modules of its class were called before it
    below: dict[int, str]  # qualified names of all modules inside it, by id()

    @property
    def label(self) -> str:
        """`Linear_0`, as traces show it."""
        return f"{self.class_name}_{self.order}"


class ModuleLog:
    """The module calls of one thread."""

    def __init__(self, clock: Callable[[], int], *, note_parameters: bool = False, hidden_from_tracer: bool = False) -> None:
        """`note_parameters`: also note the modules' parameters and their gradients, when a module is called first.

        `hidden_from_tracer`: Python calls are traced too, so call builtins in a way that the tracer does not see.
        """
        self.infos: list[ModuleInfo] = []
        self.notes: list[ModuleNote] = []  # as infos, if parameters are noted
        self.parameters: set[int] = set()  # addresses
        self._clock = clock
        self._note_parameters = note_parameters
        self._known: dict[int, int] = {}
        self._references: list[weakref.ref[Any]] = []
        self._of_class: dict[str, int] = {}
        self._events: list[int] = []
        # For callers that do inline what `enter` does with a known module, and `leave`.
        ident, now = (partial(id), partial(clock)) if hidden_from_tracer else (id, clock)
        times = iter(clock, -1)
        self.direct = (self._events, self._known, ident, now, times)
        self.enter, self.leave = _functions(self._events, self._known, self._register, now, ident, times)

    @property
    def labels(self) -> list[str]:
        """The label of each module, as the rows of its calls have it."""
        return [info.label for info in self.infos]

    def start(self) -> None:
        """Begin with no call open: those under way are not recorded."""
        self._events += (_BEGINS, 0)

    def stop(self, end: int) -> None:
        """End the calls that are still under way."""
        self._events += (_STOPS, end)

    def calls(self, end: int) -> NDArray[np.int64]:
        """Rows of module number, start and end; those of calls under way as if they ended now."""
        return calls_of(np.fromiter(self._events[:], np.int64).reshape(-1, WIDTH), end)

    @property
    def entries(self) -> int:
        """How many numbers the list of events has."""
        return len(self._events)

    def drain(self) -> NDArray[np.int64]:
        """Remove and return the events so far. `calls_of` needs the events of all drains together."""
        count = len(self._events) // WIDTH * WIDTH
        events = np.fromiter(self._events[:count], np.int64, count).reshape(-1, WIDTH)
        del self._events[:count]
        return events

    def trim(self, until: int) -> int:
        """Drop the events up to a time, except for calls that have not ended by then; returns how many calls were dropped."""
        flat = self._events[:]
        past = next((at for at in range(0, len(flat), WIDTH) if flat[at + 1] > until), len(flat) // WIDTH * WIDTH)
        under_way: list[int] = [_BEGINS, 0]
        ended = 0
        for at in range(0, past, WIDTH):
            what = flat[at]
            if what >= 0:
                under_way += flat[at : at + WIDTH]
            elif what != _ENDS:
                ended += len(under_way) // WIDTH - 1
                del under_way[WIDTH:]
            elif len(under_way) > WIDTH:
                del under_way[-WIDTH:]
                ended += 1
        self._events[:past] = under_way
        return ended

    def _register(self, module: Any) -> int:
        """Number a module that is called for the first time."""
        ident, class_name = id(module), type(module).__name__
        order = self._of_class.get(class_name, 0)
        self._of_class[class_name] = order + 1
        number = self._known[ident] = len(self.infos)
        self.infos.append(ModuleInfo(ident, class_name, order, _names_below(module)))
        # Another module may get the same id() once this one is gone.
        known = self._known
        self._references.append(weakref.ref(module, lambda _: known.pop(ident, None)))
        if self._note_parameters:
            note = call_untraced(note_module, module, self._clock())
            self.notes.append(note)
            self.parameters.update(parameter.address for _, parameter, _ in note.parameters)
        return number


def _functions(
    events: list[int],
    known: dict[int, int],
    register: Callable[[Any], int],
    clock: Callable[[], int],
    ident: Callable[[Any], int],
    times: Iterator[int],
) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
    """The functions for the start and end of a call. The list grows by `+=`: a method call would be traced.

    The end takes the time from an iterator: after a call of the clock a signal would be handled, and the end be missing.
    """

    def enter(module: Any) -> None:
        nonlocal events
        try:
            number = known[ident(module)]
        except KeyError:
            number = register(module)
        events += (number, clock())

    @without_signals_at_entry
    def leave(module: Any) -> None:
        nonlocal events
        for now in times:
            events += (_ENDS, now)
            break

    return enter, leave


def calls_of(events: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """Rows of module number, start and end from a log's events; calls still under way end at `end`.

    An event has the latest time that was read by then: the clock may have gone back.
    """
    events = np.column_stack([events[:, 0], np.maximum.accumulate(events[:, 1])])
    end = max(end, int(events[-1, 1])) if len(events) else end
    bounds = [*np.flatnonzero(events[:, 0] == _BEGINS).tolist(), len(events)]
    parts = [np.empty((0, 3), np.int64)]
    for first, last in itertools.pairwise(bounds):
        stops = np.flatnonzero(events[first:last, 0] == _STOPS)
        finish = int(events[first + stops[0], 1]) if len(stops) else end
        parts.append(_paired(events[first + 1 : first + int(stops[0]) if len(stops) else last], finish))
    return np.concatenate(parts)


def module_path(infos: Sequence[ModuleInfo], module: int, above: int, above_path: str) -> str:
    """`GPT.blocks.0.mlp`: the outermost module's class, then the qualified name of each module in the one that called it.

    A module that is not inside its caller is named by its class. `above` is the number of the caller, -1 if there is none.
    """
    info = infos[module]
    if above < 0:
        return info.class_name
    return f"{above_path}.{infos[above].below.get(info.ident, info.class_name)}"


def _names_below(module: Any) -> dict[int, str]:
    """The qualified name of each module inside one, by id(); the nearest place of a module that has several.

    Not of submodules alone: a ModuleList is not called itself, and a module may call one of a submodule's.
    """
    names: dict[int, str] = {}
    pending = [(module, "")]
    for outer, prefix in pending:  # grows meanwhile
        for name, inner in getattr(outer, "_modules", {}).items():
            if inner is not None and inner is not module and id(inner) not in names:
                names[id(inner)] = prefix + name
                pending.append((inner, f"{prefix}{name}."))
    return names


def _paired(events: NDArray[np.int64], end: int) -> NDArray[np.int64]:
    """One row per beginning, with the time of the end that belongs to it, or `end` if it has none."""
    begins = events[:, 0] != _ENDS
    ends_at = tree.matching_ends(begins)
    finish = np.where(ends_at >= 0, events[ends_at, 1] if len(events) else end, end)
    calls: NDArray[np.int64] = np.column_stack([events, finish])[begins]
    return calls
