"""Statistics of all ranks of a process group, added up over the group itself every so many steps and written by rank 0.

    statistics = GroupStatistics(prof.aggregate, every=100, write=json_lines("statistics.jsonl"))
    for batch in loader:
        ...
        prof.step()
        statistics.step()

Ranks form a binomial tree: each sends what it and those below it counted to one other rank, once. So N ranks send N - 1
messages, a rank receives at most log2(N) of them, and each is as large as the statistics of one rank.
"""

from __future__ import annotations

import os
import struct
import time
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import orjson

from .._io.files import write_file
from .._io.strict_json import dumps
from ..retention.stats import AggregateRow, AggregateStats
from .meter import largest
from .metrics import MOST_OPS, otlp, prometheus
from .push import post

SLOWEST = 8  # ranks that are named
_LENGTH = struct.Struct("<q")
_LEVEL = 3


@dataclass(frozen=True)
class GroupSummary:
    """What the ranks counted together since the start. slowest: (nanoseconds of self time, rank), largest first."""

    stats: AggregateStats
    ranks: int
    slowest: tuple[tuple[int, int], ...]

    def merged(self, other: GroupSummary) -> GroupSummary:
        """The summary of both groups of ranks; in any order the same."""
        slowest = sorted((*self.slowest, *other.slowest), key=lambda pair: (-pair[0], pair[1]))[:SLOWEST]
        stats = self.stats.merge(other.stats)
        return GroupSummary(
            AggregateStats(sorted(stats.rows, key=lambda row: row.key), stats.steps), self.ranks + other.ranks, tuple(slowest)
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain values."""
        return {"ranks": self.ranks, "slowest": [list(pair) for pair in self.slowest], "stats": self.stats.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> GroupSummary:
        """The summary that to_dict() was called on."""
        slowest = tuple((int(ns), int(rank)) for ns, rank in values["slowest"])
        return cls(AggregateStats.from_dict(values["stats"]), int(values["ranks"]), slowest)

    def encode(self) -> bytes:
        """The summary as the bytes of a message."""
        return zlib.compress(orjson.dumps(self.to_dict()), _LEVEL)

    @classmethod
    def decode(cls, data: bytes) -> GroupSummary:
        """The summary of a message."""
        return cls.from_dict(orjson.loads(zlib.decompress(data)))


class Transport(Protocol):
    """How a rank sends bytes to another one and receives them."""

    rank: int
    size: int

    def send(self, data: bytes, rank: int) -> None:
        """Send bytes to a rank."""

    def receive(self, rank: int) -> bytes:
        """The bytes that a rank sent here."""


def summarize(stats: AggregateStats, rank: int) -> GroupSummary:
    """The summary of one rank; ops beyond the MOST_OPS largest are one row, so that a message has a bounded size."""
    rows: list[AggregateRow] = sorted(largest(stats, MOST_OPS), key=lambda row: row.key)
    return GroupSummary(AggregateStats(rows, stats.steps), 1, ((stats.self_ns, rank),))


def reduce_summary(own: GroupSummary, transport: Transport) -> GroupSummary | None:
    """Add up the summaries of all ranks; all of them call this. Only rank 0 gets the result."""
    distance = 1
    while distance < transport.size:
        if transport.rank & distance:
            transport.send(own.encode(), transport.rank - distance)
            return None
        if transport.rank + distance < transport.size:
            own = own.merged(GroupSummary.decode(transport.receive(transport.rank + distance)))
        distance *= 2
    return own


class GroupTransport:
    """Messages of a process group of torch.distributed; None is the default one. A length, then the bytes."""

    def __init__(self, group: Any = None) -> None:
        from ... import distributed  # most processes have no group

        self._distributed, self._group = distributed, group
        self.rank, self.size = distributed.get_rank(group), distributed.get_world_size(group)
        # Of the CPU, unless the group serves another kind of device alone.
        self._device = "npu" if distributed.get_backend(group) == "hccl" else "cpu"

    def send(self, data: bytes, rank: int) -> None:
        """Send bytes to a rank of the group."""
        self._send(np.frombuffer(_LENGTH.pack(len(data)), np.uint8), rank)
        self._send(np.frombuffer(data, np.uint8), rank)

    def receive(self, rank: int) -> bytes:
        """The bytes that a rank of the group sent here."""
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size, rank))
        return self._receive(length, rank)

    def _send(self, data: np.ndarray[Any, Any], rank: int) -> None:
        from ... import from_numpy

        self._distributed.send(from_numpy(data.copy()).to(self._device), group=self._group, group_dst=rank)

    def _receive(self, length: int, rank: int) -> bytes:
        from ... import empty, uint8

        buffer = empty(length, dtype=uint8, device=self._device)
        self._distributed.recv(buffer, group=self._group, group_src=rank)
        return bytes(buffer.cpu().numpy())


class GroupStatistics:
    """Adds up the statistics of all ranks every `every` calls of step(), which all ranks make alike.

    aggregate: `profile.aggregate` of a profile with mode="aggregate", or `Meter.stats`. write: called on rank 0 with the
    GroupSummary: `json_lines`, `prometheus_file` or `send_otlp` make one. A group whose ranks do not answer is told of by one
    warning, and training goes on without statistics.
    """

    def __init__(
        self,
        aggregate: Callable[[], AggregateStats],
        every: int,
        write: Callable[[GroupSummary], object],
        *,
        group: Any = None,
        transport: Transport | None = None,
    ) -> None:
        if every < 1:
            raise ValueError(f"statistics are added up every so many steps, at least 1, not {every}")
        self._aggregate, self._every, self._write = aggregate, every, write
        self._transport: Transport | None = transport if transport is not None else GroupTransport(group)
        self._steps = 0

    def step(self) -> None:
        """Count a step; every so many of them, add up and write."""
        self._steps += 1
        if self._steps % self._every == 0:
            self.reduce()

    def reduce(self) -> GroupSummary | None:
        """Add up now; all ranks call this. Returns what rank 0 wrote."""
        transport = self._transport
        if transport is None:
            return None
        try:
            result = reduce_summary(summarize(self._aggregate(), transport.rank), transport)
            if result is not None:
                self._write(result)
            return result
        except (OSError, RuntimeError) as error:
            self._transport = None
            warnings.warn(f"statistics of the group are given up: {error}", RuntimeWarning, stacklevel=3)
            return None


def json_lines(path: str | os.PathLike[str]) -> Callable[[GroupSummary], None]:
    """Append each summary to a file as a line of JSON, with the time."""

    def write(summary: GroupSummary) -> None:
        with open(path, "a", encoding="utf-8") as file:
            file.write(dumps({"time_ns": time.time_ns(), **summary.to_dict()}) + "\n")

    return write


def prometheus_file(path: str | os.PathLike[str]) -> Callable[[GroupSummary], None]:
    """Replace a file of Prometheus' text format, as node_exporter's textfile collector reads it."""

    def write(summary: GroupSummary) -> None:
        head = "# HELP mtprof_ranks Ranks that were added up.\n# TYPE mtprof_ranks gauge\n" + f"mtprof_ranks {summary.ranks}\n"
        slow = "# HELP mtprof_rank_self_seconds Self time of the ranks with most.\n# TYPE mtprof_rank_self_seconds gauge\n"
        slow += "".join(f'mtprof_rank_self_seconds{{rank="{rank}"}} {ns / 1e9:.9f}\n' for ns, rank in summary.slowest)
        write_file(path, [(head + slow + prometheus(summary.stats)).encode()])

    return write


def send_otlp(url: str) -> Callable[[GroupSummary], None]:
    """Send each summary to the metrics address of an OpenTelemetry collector."""
    started = time.time_ns()

    def write(summary: GroupSummary) -> None:
        post(url, dumps(otlp(summary.stats, started, time.time_ns())).encode(), "application/json")

    return write
