"""Which communications of different ranks are one and the same, and what that tells without any clock.

All ranks of a collective leave it together, more or less. So the rank that spent the least time in it came last: that time is
the transfer itself, and what the others spent beyond it they waited.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .collectives import FIRST_ONE_SIDED, RECV, SEND
from .digest import EXPOSED_SCALE
from .job import Job, Numbers

_MOST_KEY = 1 << 62


@dataclass
class Instances:
    """Communications with all their participants. `rows` are rows of the job's messages, instance by instance, by rank.

    A message between two ranks is an instance of two rows, and `pair` its (sender, receiver) as global ranks, else (-1, -1).
    Columns of instances are kept; those of rows are made when they are asked for: of ten thousand ranks each is 25 MB.
    """

    job: Job
    rows: Numbers
    first: Numbers  # of each instance, among `rows`
    count: Numbers
    pair: Numbers  # instances x 2

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def number(self) -> Numbers:
        """The instance of each of `rows`."""
        return np.repeat(np.arange(len(self.first)), self.count)

    @cached_property
    def kind(self) -> NDArray[np.int8]:
        """Of each instance, an index of KINDS; a message has that of its first row."""
        return self.job.messages.kind[self.rows[self.first]]

    @cached_property
    def group(self) -> NDArray[np.int32]:
        """The group of each instance."""
        return self.job.messages.group[self.rows[self.first]]

    @cached_property
    def step(self) -> Numbers:
        """The step of each instance: the earliest that a rank had it in."""
        return _reduced(np.minimum, self.job.messages.step[self.rows], self.first)

    @cached_property
    def size(self) -> Numbers:
        """Bytes of each instance: of the rank that has most."""
        return _reduced(np.maximum, self.job.messages.size[self.rows], self.first)

    @property
    def length(self) -> Numbers:
        """What each of `rows` took."""
        return self.job.messages.length[self.rows]

    @cached_property
    def transfer(self) -> Numbers:
        """The least time of an instance."""
        return _reduced(np.minimum, self.length, self.first)

    @cached_property
    def synchronous(self) -> NDArray[np.bool_]:
        """Which instances end on all ranks together, and have been recorded by several."""
        return (self.kind < FIRST_ONE_SIDED) & (self.count > 1)

    @cached_property
    def last(self) -> Numbers:
        """Of each instance, the place among `rows` of the rank that came last; of equal ones the lowest rank."""
        return _first_where(self.length == self.transfer[self.number], self.first)

    @property
    def wait(self) -> Numbers:
        """What each of `rows` waited for the last rank, only in collectives that end together."""
        waited = self.length - self.transfer[self.number]
        waited[~self.synchronous[self.number]] = 0
        return waited

    @property
    def exposed_wait(self) -> Numbers:
        """The part of `wait` in which the rank had nothing to compute."""
        return self.wait * self.job.messages.exposed[self.rows].astype(np.int64) // EXPOSED_SCALE


def match(job: Job) -> Instances:
    """The instances of all communications."""
    messages = job.messages
    if not len(messages):
        none = np.empty(0, np.int64)
        return Instances(job, none, none, none, none.reshape(0, 2))
    family, pair = _families(job)
    seq = messages.seq - int(messages.seq.min())
    span = int(seq.max()) + 1
    if (int(family.max()) + 1) * span < _MOST_KEY:
        key = family * span + seq
        order = np.argsort(key, kind="stable")
        changed = np.diff(key[order]) != 0
    else:
        order = np.lexsort((seq, family))
        changed = (np.diff(family[order]) != 0) | (np.diff(seq[order]) != 0)
    first = np.flatnonzero(np.append(True, changed))
    count = np.diff(np.append(first, len(order)))
    return Instances(job, order, first, count, pair[order[first]])


def _families(job: Job) -> tuple[Numbers, Numbers]:
    """A number of what sequence numbers count within: a group and kind, or a pair of ranks; and the pairs."""
    messages = job.messages
    family = messages.group.astype(np.int64) * 16 + messages.kind
    pair = np.full((len(messages), 2), -1, np.int64)
    single = ((messages.kind == SEND) | (messages.kind == RECV)) & (messages.peer >= 0)
    if single.any():
        own, other = job.ranks[messages.rank[single]], messages.peer[single].astype(np.int64)
        sends = messages.kind[single] == SEND
        pair[single, 0] = np.where(sends, own, other)
        pair[single, 1] = np.where(sends, other, own)
        base = int(pair.max()) + 1
        _, number = np.unique(pair[single, 0] * base + pair[single, 1], return_inverse=True)
        family[single] = int(family.max()) + 1 + number
    return family, pair


def _reduced(function: np.ufunc, values: NDArray[Any], first: Numbers) -> Numbers:
    return np.asarray(function.reduceat(values, first) if len(first) else values[:0], np.int64)


def _first_where(chosen: NDArray[np.bool_], first: Numbers) -> Numbers:
    """The first chosen place of each run; each has one."""
    places = np.flatnonzero(chosen)
    return places[np.searchsorted(places, first)]
