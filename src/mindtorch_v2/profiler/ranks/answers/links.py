"""Slow links: pairs of ranks whose messages, and groups whose collectives, take longer than others of the same size."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..collectives import KINDS
from ..job import Job, Numbers
from ..matching import Instances
from .peers import FEWEST, spread

LEAST_SLOW = 1.25  # times what others take
_LEAST_SIGMAS = 6.0
_LEAST_SPREAD = 0.03
MOST_RANKS = 16  # of a group, listed


@dataclass(frozen=True)
class SlowLink:
    """A pair (source, target) or a group (ranks) that is slower than others of its kind.

    ratio: its transfers over those of the others, in the median. transfer_ns: its own, of `size` bytes. compared: others.
    """

    kind: str
    source: int
    target: int
    group: str
    description: str
    ranks: tuple[int, ...]
    group_size: int
    size: int
    transfer_ns: int
    ratio: float
    sigmas: float
    compared: int
    hosts: tuple[str, ...]

    @property
    def is_pair(self) -> bool:
        """Whether these are messages of two ranks."""
        return self.source >= 0

    def to_dict(self) -> dict[str, Any]:
        """All fields as plain values."""
        values = asdict(self)
        values["ranks"] = list(self.ranks[:MOST_RANKS])
        values["hosts"] = list(self.hosts[:MOST_RANKS])
        return values


def slow_links(job: Job, instances: Instances) -> list[SlowLink]:
    """Links that are slower than their like, slowest first; each once, with the size where it shows most."""
    if not len(instances):
        return []
    host_of = dict(zip(job.ranks.tolist(), job.hosts, strict=True))
    found: dict[tuple[int, int, int], SlowLink] = {}
    pairs = instances.pair[:, 0] >= 0
    for chosen, by_pair in ((pairs & (instances.count == 2), True), (~pairs & instances.synchronous, False)):
        for link in _compared(job, instances, np.flatnonzero(chosen), by_pair, host_of):
            key = (link.source, link.target, -1) if by_pair else (-1, -1, hash((link.group, link.ranks)))
            if key not in found or link.ratio > found[key].ratio:
                found[key] = link
    return sorted(found.values(), key=lambda link: (-link.ratio, link.source, link.target, link.group))


def _compared(job: Job, instances: Instances, chosen: Numbers, by_pair: bool, host_of: dict[int, str]) -> list[SlowLink]:
    """Links of one kind, size of message and of group, beside each other."""
    if not len(chosen):
        return []
    base = int(instances.pair.max()) + 2
    pair = instances.pair[chosen]
    link = pair[:, 0] * base + pair[:, 1] if by_pair else instances.group[chosen].astype(np.int64)
    # By the number of participants recorded: half of a group would be compared with whole ones otherwise.
    kind = np.zeros(len(chosen), np.int64) if by_pair else instances.kind[chosen].astype(np.int64)
    alike = np.stack([kind, instances.size[chosen], instances.count[chosen]])
    order = np.lexsort(alike[::-1])
    first = np.flatnonzero(np.append(True, (np.diff(alike[:, order], axis=1) != 0).any(axis=0)))
    transfer = instances.transfer[chosen]
    slow: list[SlowLink] = []
    for mine in np.split(order, first[1:]):
        of_kind, size, count = alike[:, mine[0]].tolist()
        links, medians = _medians(link[mine], transfer[mine])
        if len(links) < FEWEST:
            continue
        usual = float(np.median(medians))
        relative = medians / max(usual, 1.0)
        sigma = spread(relative - 1, _LEAST_SPREAD)
        for place in np.flatnonzero((relative >= LEAST_SLOW) & (relative - 1 >= _LEAST_SIGMAS * sigma)).tolist():
            source, target = divmod(int(links[place]), base) if by_pair else (-1, -1)
            group = None if by_pair else job.groups[int(links[place])]
            ranks = (source, target) if group is None else group.ranks
            slow.append(
                SlowLink(
                    kind="message" if by_pair else KINDS[of_kind],
                    source=source,
                    target=target,
                    group="" if group is None else group.name,
                    description="" if group is None else group.description,
                    ranks=ranks,
                    group_size=count,
                    size=size,
                    transfer_ns=round(float(medians[place])),
                    ratio=round(float(relative[place]), 3),
                    sigmas=round(float((relative[place] - 1) / sigma), 1),
                    compared=len(links) - 1,
                    hosts=tuple(sorted({host_of.get(rank, "") for rank in ranks})),
                )
            )
    return slow


def _medians(link: Numbers, transfer: Numbers) -> tuple[Numbers, NDArray[np.float64]]:
    """Each link once, and the median of its transfers."""
    order = np.lexsort((transfer, link))
    first = np.flatnonzero(np.append(True, np.diff(link[order]) != 0))
    count = np.diff(np.append(first, len(order)))
    ordered = transfer[order]
    medians = (ordered[first + (count - 1) // 2] + ordered[first + count // 2]) / 2
    return link[order][first], medians
