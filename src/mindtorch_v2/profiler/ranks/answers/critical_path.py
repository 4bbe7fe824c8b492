"""The chain of work that a step had to wait for: from its end back through the rank that came last to each collective."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..collectives import KINDS
from ..job import Job, Numbers
from ..matching import Instances

MOST_SEGMENTS = 1000  # of a step
_LEAST_EXPOSED = 128  # of EXPOSED_SCALE: a communication that is mostly hidden stops no one


@dataclass(frozen=True)
class Segment:
    """Time that a rank worked by itself, and the transfer that ended it ("" at the end of a step)."""

    rank: int
    own_ns: int
    transfer: str
    transfer_ns: int


@dataclass(frozen=True)
class CriticalPath:
    """The path of one step in order of time."""

    step: int
    segments: list[Segment]

    @property
    def length_ns(self) -> int:
        """How long the path is: about the time of the step."""
        return sum(segment.own_ns + segment.transfer_ns for segment in self.segments)

    def by_rank(self) -> dict[int, int]:
        """Nanoseconds of each rank's own work on the path, largest first."""
        sums: dict[int, int] = {}
        for segment in self.segments:
            sums[segment.rank] = sums.get(segment.rank, 0) + segment.own_ns
        return dict(sorted(sums.items(), key=lambda pair: (-pair[1], pair[0])))

    def to_dict(self, most: int = 8) -> dict[str, Any]:
        """The path for JSON: what it consists of, and its longest segments."""
        longest = sorted(self.segments, key=lambda segment: -segment.own_ns)[:most]
        return {
            "step": self.step,
            "length_ns": self.length_ns,
            "transfer_ns": sum(segment.transfer_ns for segment in self.segments),
            "segments_in_all": len(self.segments),
            "ranks": [{"rank": rank, "own_ns": ns} for rank, ns in list(self.by_rank().items())[:most]],
            "longest": [asdict(segment) for segment in longest],
        }


class PathFinder:
    """Finds paths of a job; made once, since the order of communications is the same for all steps."""

    def __init__(self, job: Job, instances: Instances) -> None:
        messages = job.messages
        self._job, self._instances = job, instances
        self._instance_of = np.empty(len(messages), np.int64)
        self._instance_of[instances.rows] = instances.number
        self._end = messages.start + messages.length
        blocking = (messages.exposed >= _LEAST_EXPOSED) & instances.synchronous[self._instance_of]
        rows = np.flatnonzero(blocking)
        # One key that orders by rank, then by end: each rank's clock counts from its first step here.
        self._origin = job.steps["start"][:, 0]
        last = job.steps["start"][:, -1] + job.steps["length"][:, -1]
        self._span = int((last - self._origin).max()) + 2
        key = self._key(messages.rank[rows].astype(np.int64), self._end[rows])
        order = np.argsort(key, kind="stable")
        self._rows, self._keys = rows[order], key[order]

    def _key(self, rank: Numbers, time: Numbers) -> Numbers:
        key: Numbers = rank * self._span + np.clip(time - self._origin[rank], 0, self._span - 1)
        return key

    def path(self, step: int) -> CriticalPath:
        """The path of a step, by its index."""
        job, messages, instances = self._job, self._job.messages, self._instances
        begin, length = job.steps["start"][:, step], job.steps["length"][:, step]
        rank = self._last_rank(step)
        now = int(begin[rank] + length[rank])
        segments: list[Segment] = []
        transfer, transfer_ns = "", 0
        while len(segments) < MOST_SEGMENTS:
            row = int(self._before(np.array([rank]), np.array([now]), begin[[rank]])[0])
            earliest = int(begin[rank]) if row < 0 else int(self._end[row])
            segments.append(Segment(int(job.ranks[rank]), max(now - earliest, 0), transfer, transfer_ns))
            if row < 0:
                break
            instance = int(self._instance_of[row])
            last = int(instances.rows[instances.last[instance]])
            transfer = f"{KINDS[int(messages.kind[row])]} {job.groups[int(messages.group[row])].name}".rstrip()
            transfer_ns = int(instances.transfer[instance])
            rank = int(messages.rank[last])
            now = int(messages.start[last])
            if now <= begin[rank]:
                break
        return CriticalPath(int(job.step_numbers[step]), segments[::-1])

    def _last_rank(self, step: int) -> int:
        """The rank to begin at: the one that worked longest after the last collective of the step."""
        begin, length = self._job.steps["start"][:, step], self._job.steps["length"][:, step]
        rows = self._before(np.arange(len(begin)), begin + length, begin)
        return int(np.argmax(begin + length - np.where(rows < 0, begin, self._end[rows])))

    def _before(self, rank: Numbers, now: Numbers, begin: Numbers) -> Numbers:
        """The row of the last communication that each rank waited for between two moments, -1 if there is none."""
        if not len(self._rows):
            return np.full(len(rank), -1, np.int64)
        at = np.searchsorted(self._keys, self._key(rank, now), side="right") - 1
        rows = self._rows[np.maximum(at, 0)]
        known = (at >= 0) & (self._job.messages.rank[rows] == rank) & (self._end[rows] > begin)
        return np.where(known, rows, -1)
