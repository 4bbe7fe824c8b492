"""Records collectives and messages between processes: each is a row on a lane of its process group.

Communications of one group may overlap in time, which rows of one lane must not: each takes the first lane of its group that
is free when it begins.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._core.threads import ThreadState, threads
from ..._dispatch import communications, observer
from ..._dispatch.communications import Communication
from ..store.store import RowDetails

FIRST_LANE = 1_500_000_000  # lanes are numbered from here, above the operating system's threads and asyncio's tasks


# Number and name of a lane, columns of its rows, and the tables that the columns index.
LaneRows = tuple[int, str, dict[str, NDArray[np.int64]], dict[str, list[Any]]]


class _Lane:
    """One of a group's lanes, and what is to become rows on it."""

    def __init__(self, ident: int, name: str) -> None:
        self.ident, self.name = ident, name
        self.until = 0  # when its last communication ended
        self.pending: list[tuple[Communication, int, bool]] = []


class CommunicationLog:
    """The communications of one recording, from the moment they begin."""

    def __init__(self, records_thread: Callable[[ThreadState], bool], with_inputs: bool) -> None:
        """`records_thread` says whether the recording has a thread; `with_inputs` whether it has shapes of tensors."""
        self._records_thread, self._with_inputs = records_thread, with_inputs
        self._begun: deque[Communication] = deque()
        self._lanes: dict[str, list[_Lane]] = {}
        self._numbers = 0

    def start(self) -> None:
        """Listen."""
        communications.add_listener(self._begins)

    def stop(self) -> None:
        """Listen no more; what is under way may still end."""
        communications.remove_listener(self._begins)

    def _begins(self, communication: Communication) -> None:
        if self._records_thread(threads.state):
            self._begun.append(communication)

    def take(self, until: int | None = None) -> list[LaneRows]:
        """Remove communications and return their rows: lane, its name, columns and tables.

        Those under way stay, unless the recording has ended at `until`: they end there, and say that they had not finished.
        """
        under_way = []
        for _ in range(len(self._begun)):
            communication = self._begun.popleft()
            ended = communication.ended
            if until is not None and (ended is None or ended > until):
                self._place(communication, max(until, communication.started), is_finished=False)
            elif ended is None:
                under_way.append(communication)
            else:
                self._place(communication, ended, is_finished=True)
        self._begun.extendleft(reversed(under_way))
        return [self._rows(lane) for lanes in self._lanes.values() for lane in lanes if lane.pending]

    def _place(self, communication: Communication, end: int, is_finished: bool) -> None:
        lanes = self._lanes.setdefault(communication.lane, [])
        lane = next((each for each in lanes if each.until <= communication.started), None)
        if lane is None:
            number = len(lanes) + 1
            name = communication.lane if number == 1 else f"{communication.lane}, lane {number}"
            lane = _Lane(FIRST_LANE + self._numbers, name)
            self._numbers += 1
            lanes.append(lane)
        lane.until = end
        lane.pending.append((communication, end, is_finished))

    def _rows(self, lane: _Lane) -> LaneRows:
        pending, lane.pending = lane.pending, []
        names: dict[str, int] = {}
        inputs: dict[object, int] = {}
        details: dict[RowDetails, int] = {}
        columns: dict[str, list[int]] = {name: [] for name in ("name", "start", "end", "shapes", "details")}
        for communication, end, is_finished in pending:
            arguments = communication.describe(communication)
            if not is_finished:
                arguments = {**arguments, "finished": False}
            detail = RowDetails("", json.dumps(arguments))
            columns["name"].append(names.setdefault(communication.name, len(names)))
            columns["start"].append(communication.started)
            columns["end"].append(end)
            outline = communication.inputs if self._with_inputs else ()
            columns["shapes"].append(inputs.setdefault(outline, len(inputs)) if outline else -1)
            columns["details"].append(details.setdefault(detail, len(details)))
        count = len(pending)
        arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
        arrays["kind"] = np.full(count, observer.SCOPE, np.int64)
        for name, missing in (("stack", -1), ("module", -1), ("flops", 0)):
            arrays[name] = np.full(count, missing, np.int64)
        tables: dict[str, list[Any]] = {
            "names": [*names],
            "input_infos": [*inputs],
            "stacks": [],
            "modules": [],
            "row_details": [*details],
        }
        return lane.ident, lane.name, arrays, tables
