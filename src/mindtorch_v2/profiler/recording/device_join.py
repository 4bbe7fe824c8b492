"""Which launch each piece of a device's work belongs to, by what the device tells of itself.

A call of the driver lies inside the launch of its thread that was running then; work has the correlation number of such a
call, and work of a stream runs in the order in which it was launched. Numbers may come again, or be missing: then the order and
the names decide.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store.distinct import distinct_values

Times = NDArray[np.int64]
_SHIFT_TOLD_NS = 100_000
# Between neighbors in a stream: a trace has microseconds as doubles, where the end of one may else come after the next begins.
APART_NS = 2
_UNKNOWN, _OTHERS = -1, -2  # in place of a launch: without a number, and launched by a call that is none of ours


class Launch(NamedTuple):
    """A call that put work into a stream, by the recording's clock. `first` is a mark before it, if there is one."""

    kind: str
    name: str
    thread: int
    stream: Any
    began: int
    first: Any
    nbytes: int


class Launched(NamedTuple):
    """A launch that has returned."""

    launch: Launch
    returned: int
    last: Any


class Work(NamedTuple):
    """What ran on a device. `launch` is its place among the launches, or -1."""

    kind: int
    name: str
    device: int
    stream: int
    start: int
    end: int
    launch: int
    details: dict[str, Any]


class Call(NamedTuple):
    """A call of the driver that launched nothing, such as a wait."""

    name: str
    thread: int
    start: int
    end: int


class Joined(NamedTuple):
    """Everything that a device told, each with its launch."""

    work: list[Work]
    calls: list[Call]
    notes: list[str]


def join(
    launched: Sequence[Launched],
    records: observer.ActivityRecords,
    host_times: Callable[[Times], Times],
    began: int = 0,
    ended: int | None = None,
) -> Joined:
    """Join records to launches; `host_times` gives times of the wall clock on the recording's.

    Records come late: calls from before `began` or after `ended`, and work that none of the others launched, are left out.
    """
    calls = records.calls
    start, end = host_times(calls["start"]), host_times(calls["end"])
    inside = np.flatnonzero((start >= began) & (end <= (np.iinfo(np.int64).max if ended is None else ended)))
    start, end = start[inside], end[inside]
    calls = {key: [values[at] for at in inside] if key == "name" else values[inside] for key, values in calls.items()}
    owner = _launch_around(launched, calls["thread"], (start + end) // 2)
    lanes = _Lanes(launched, owner, calls["correlation"])
    work: list[Work] = []
    notes = list(records.notes)
    for kind, columns in ((observer.KERNEL, records.kernels), (observer.KERNEL, records.collectives)):
        if len(columns["start"]):
            work += lanes.linked(kind, columns, host_times)
    told = {each.launch for each in work}
    missing = sum(each.launch.kind == "kernel" and at not in told for at, each in enumerate(launched))
    unlinked = sum(each.launch < 0 for each in work)
    if missing:
        notes.append(f"the device told nothing of {missing} of {len(launched)} launches")
    if unlinked:
        notes.append(f"{unlinked} of {len(work)} kernels could not be linked to the call that launched them")
    work, shift = _after_launches(work, launched)
    if shift > _SHIFT_TOLD_NS:
        notes.append(f"the device's times are moved by {shift / 1e6:.1f} ms: kernels began before their launch")
    ranges = records.ranges
    told_ranges = zip(
        ranges["name"], ranges["device"].tolist(), ranges["stream"].tolist(),
        (host_times(ranges["start"]) + shift).tolist(), (host_times(ranges["end"]) + shift).tolist(), strict=True,
    )  # fmt: skip
    work += [
        Work(observer.SCOPE, name, device, stream, began, ended, -1, {}) for name, device, stream, began, ended in told_ranges
    ]
    free = np.flatnonzero(owner < 0).tolist()
    others = [Call(calls["name"][at], int(calls["thread"][at]), int(start[at]), int(end[at])) for at in free]
    return Joined(work, others, notes)


def _launch_around(launched: Sequence[Launched], thread: Times, middle: Times) -> NDArray[np.int64]:
    """For each call the launch of its thread in which its middle lies, or -1: a thread launches one thing at a time."""
    owner = np.full(len(thread), -1, np.int64)
    threads = np.array([each.launch.thread for each in launched], np.int64)
    began = np.array([each.launch.began for each in launched], np.int64)
    returned = np.array([each.returned for each in launched], np.int64)
    for one in distinct_values(thread).tolist():
        own = np.flatnonzero(threads == one)
        if not len(own):
            continue
        own = own[np.argsort(began[own], kind="stable")]
        asked = np.flatnonzero(thread == one)
        place = np.searchsorted(began[own], middle[asked], side="right") - 1
        inside = (place >= 0) & (middle[asked] <= returned[own[place]])
        owner[asked[inside]] = own[place[inside]]
    return owner


class _Lanes:
    """The launches of each stream in their order, and the correlation numbers of the calls inside of each."""

    def __init__(self, launched: Sequence[Launched], owner: NDArray[np.int64], correlation: Times) -> None:
        self._launched = launched
        self._order: dict[tuple[int, int], list[int]] = {}
        for at, each in enumerate(launched):
            self._order.setdefault((each.launch.stream.device_index, each.launch.stream.number), []).append(at)
        rank = {at: place for order in self._order.values() for place, at in enumerate(order)}
        self._numbers = {0, *correlation.tolist()}  # 0 is none
        self._by_number: dict[tuple[tuple[int, int], int], list[int]] = {}
        found = owner >= 0
        for at, number in zip(owner[found].tolist(), correlation[found].tolist(), strict=True):
            stream = launched[at].launch.stream
            self._by_number.setdefault(((stream.device_index, stream.number), number), []).append(rank[at])
        for places in self._by_number.values():
            places.sort()

    def linked(self, kind: int, columns: dict[str, Any], host_times: Callable[[Times], Times]) -> list[Work]:
        """Work with its launches, in order of time on each stream."""
        start, end = host_times(columns["start"]), host_times(columns["end"])
        numbers: list[int] = columns["correlation"].tolist()
        order = np.lexsort((end, start, columns["stream"], columns["device"])).tolist()
        order = [row for row in order if numbers[row] in self._numbers]
        places = list(zip(columns["device"].tolist(), columns["stream"].tolist(), strict=True))
        work: list[Work] = []
        begin = 0
        while begin < len(order):
            lane = places[order[begin]]
            stop = begin
            while stop < len(order) and places[order[stop]] == lane:
                stop += 1
            rows = order[begin:stop]
            names = [columns["name"][row] for row in rows]
            launches = self._launches(lane, names, [numbers[row] for row in rows])
            for row, name, launch in zip(rows, names, launches, strict=True):
                work.append(Work(kind, name, lane[0], lane[1], int(start[row]), int(end[row]), launch, columns["details"][row]))
            begin = stop
        return work

    def _launches(self, lane: tuple[int, int], names: list[str], numbers: list[int]) -> list[int]:
        """The launch of each piece of one stream's work."""
        order = self._order.get(lane, [])
        places: list[int] = []
        reached, last = 0, 0
        for number in numbers:
            known = self._by_number.get((lane, number))
            if known is None:
                places.append(_UNKNOWN if number == 0 else _OTHERS)
                continue
            if number != last or not places:  # the same call's next kernel, or that of a later call with its number
                at = bisect_left(known, reached + (1 if last else 0))
                reached = known[min(at, len(known) - 1)]
                last = number
            places.append(reached)
        return [order[place] if place >= 0 else -1 for place in self._filled(order, names, places)]

    def _filled(self, order: list[int], names: list[str], places: list[int]) -> list[int]:
        """Give other work the launch of its name between its neighbors', or the one of the work that follows."""
        following = len(order) - 1
        bounds = [0] * len(places)
        for at in reversed(range(len(places))):
            bounds[at] = following
            following = places[at] if places[at] >= 0 else following
        reached = 0
        for at, place in enumerate(places):
            if place == _UNKNOWN:
                between = range(reached, bounds[at] + 1)
                named = (each for each in between if names[at].startswith(f"aclnn{self._launched[order[each]].launch.name}_"))
                places[at] = next(named, _UNKNOWN)
            reached = max(reached, places[at])
        for at in reversed(range(len(places) - 1)):
            if places[at] == _UNKNOWN:
                places[at] = places[at + 1]
        return places


def _after_launches(work: list[Work], launched: Sequence[Launched]) -> tuple[list[Work], int]:
    """Work moved so that none begins before its launch or before the end of what is ahead in its stream, and by how much.

    All work moves by the same time, which is the error of the clocks.
    """
    early = [launched[each.launch].launch.began - each.start for each in work if each.launch >= 0]
    shift = max(0, max(early, default=0))
    moved = []
    floor: dict[tuple[int, int], int] = {}
    for each in sorted(work, key=lambda each: each.start):
        lane = each.device, each.stream
        start = max(each.start + shift, floor.get(lane, 0))
        end = max(each.end + shift, start)
        floor[lane] = end + APART_NS
        moved.append(each._replace(start=start, end=end))
    return moved, shift
