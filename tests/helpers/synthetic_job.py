"""Makes up the recordings of a job of many ranks, with faults and clocks that are known.

Hosts of eight ranks: a tensor-parallel group a host, data-parallel groups of the same local rank on eight hosts, messages to
the next host, one all-reduce of the world a step. All times are computed on one true clock, vectorized over the ranks, and then
read on the clock of each host.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.formats import saved
from mindtorch_v2.profiler.ranks.recorded_rows import RecordedRows
from mindtorch_v2.profiler.store.store import EventStore, InputInfo, RowDetails, ThreadInfo

LAYERS = 10
BUCKETS = 8  # data-parallel all-reduces in the backward pass
HOST = 8  # ranks on a host
BLOCK_NS = 2_000_000.0
MS = 1_000_000
_KERNELS = [f"void gemm_{n}<float, 128, {n}>(Params)" for n in range(20)]
_OPS = [f"aten::op{n}" for n in range(12)]
_CHILDREN = [f"aten::inner{n}" for n in range(10)]
_NCCL = "ncclDevKernel_{}(ncclDevKernelArgsStorage<4096ul>)"
_STEP0 = 5  # number of the first step


@dataclass
class Faults:
    """What is planted: ranks and links by number."""

    slow_rank: tuple[int, float] | None = None  # rank, factor of its compute time
    slow_link: tuple[int, int, float] | None = None  # sender, receiver, part of the bandwidth that is left
    slow_group: tuple[int, float] | None = None  # data-parallel group, part of the bandwidth
    pause: tuple[int, int, float] | None = None  # rank, index of the step, ns
    loader: tuple[int, float] | None = None  # rank, ns that each step waits for data
    slow_op: tuple[int, int, float] | None = None  # rank, number of the kernel's name, factor
    more_work: tuple[int, float] | None = None  # rank, factor of elements and time


@dataclass
class SyntheticJob:
    """A job; `rows(rank)` makes the recording of one rank."""

    ranks: int = 16
    steps: int = 10
    events: int = 20_000
    seed: int = 0
    faults: Faults = field(default_factory=Faults)
    exit_jitter_ns: float = 15_000.0
    offset_ns: float = 5e6
    drift: float = 20e-6
    host_clocks: bool = True
    world: bool = True  # whether all ranks meet once a step

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        self.hosts = -(-self.ranks // HOST)
        self.host = np.arange(self.ranks) // HOST
        self.offset = self.random.normal(0, self.offset_ns, self.hosts) if self.host_clocks else np.zeros(self.hosts)
        self.rate = self.random.normal(0, self.drift, self.hosts) if self.host_clocks else np.zeros(self.hosts)
        self.offset[0] = self.rate[0] = 0.0
        self._known: dict[tuple, str] = {}
        self._simulate()

    # ------------------------------------------------------------------ the true clock

    def _simulate(self) -> None:
        random, faults, ranks = self.random, self.faults, self.ranks
        speed = 1 + random.normal(0, 0.005, ranks)
        if faults.slow_rank:
            speed[faults.slow_rank[0]] *= faults.slow_rank[1]
        if faults.more_work:
            speed[faults.more_work[0]] *= faults.more_work[1]
        self.tp = np.arange(ranks) // HOST
        self.dp = np.arange(ranks) % HOST + HOST * (np.arange(ranks) // (HOST * HOST))
        self.blocks: list[tuple[int, int, np.ndarray, np.ndarray]] = []  # step, number, begin, end
        self.sent: list[dict] = []
        self.bounds: list[tuple[np.ndarray, np.ndarray]] = []
        self.loads: list[tuple[int, float, float]] = []
        now = np.zeros(ranks)
        counts = {"tp": 0, "dp": 0, "world": 0}
        link = np.ones(ranks)
        for step in range(self.steps):
            begin, now = now, now.copy()  # others hold on to the array
            if faults.pause and faults.pause[1] == step:
                now[faults.pause[0]] += faults.pause[2]
            if faults.loader:
                at, ns = faults.loader
                self.loads.append((step, now[at], now[at] + ns))
                now[at] += ns
            buckets = np.zeros(ranks)
            for block in range(2 * LAYERS):
                now = self._compute(step, block, now, speed)
                now = self._collective("tp", "allreduce", self.tp, step, now, 400_000.0, counts, 4 << 20)
                if LAYERS <= block < LAYERS + BUCKETS:
                    slow = np.ones(self.dp.max() + 1)
                    if faults.slow_group:
                        slow[faults.slow_group[0]] = 1 / faults.slow_group[1]
                    buckets = np.maximum(
                        buckets, self._collective("dp", "allreduce", self.dp, step, now, 900_000.0, counts, 16 << 20, slow)
                    )
            now = np.maximum(now, buckets)
            now = self._messages(step, now, link)
            if self.world:
                now = self._collective("world", "allreduce", np.zeros(ranks, int), step, now, 150_000.0, counts, 4096)
            now = self._compute(step, 2 * LAYERS, now, speed)
            self.bounds.append((begin, now.copy()))

    def _compute(self, step: int, number: int, now: np.ndarray, speed: np.ndarray) -> np.ndarray:
        end = now + BLOCK_NS * speed * (1 + self.random.normal(0, 0.01, self.ranks))
        if self.faults.slow_op:
            rank, _, factor = self.faults.slow_op
            end[rank] += (end[rank] - now[rank]) * (factor - 1) / len(_KERNELS)
        self.blocks.append((step, number, now, end))
        return end

    def _collective(self, family, name, group, step, now, transfer, counts, size, slow=None) -> np.ndarray:
        count = int(group.max()) + 1
        last = np.full(count, -np.inf)
        np.maximum.at(last, group, now)
        took = transfer * (1 + np.abs(self.random.normal(0, 0.02, count))) * (1 if slow is None else slow)
        end = (last + took)[group] + self.random.exponential(self.exit_jitter_ns, self.ranks)
        counts[family] += 1
        self.sent.append(
            dict(family=family, name=name, group=group, step=step, start=now, end=end, size=size, seq=counts[family], peer=None)
        )
        return end

    def _messages(self, step: int, now: np.ndarray, link: np.ndarray) -> np.ndarray:
        """Each rank sends to the same local rank of the next host, which waits for it."""
        ranks = self.ranks
        senders = np.arange(ranks - HOST) if ranks > HOST else np.empty(0, int)
        if not len(senders):
            return now
        took = 500_000.0 * (1 + np.abs(self.random.normal(0, 0.02, len(senders))))
        if self.faults.slow_link:
            source, target, part = self.faults.slow_link
            assert target == source + HOST
            took[source] /= part
        start_send, start_recv = now, now.copy()
        done = np.maximum(start_send[senders], start_recv[senders + HOST]) + took
        jitter = self.random.exponential(self.exit_jitter_ns, (2, len(senders)))
        for name, own, other, ends in (
            ("send", senders, senders + HOST, done + jitter[0]),
            ("recv", senders + HOST, senders, done + jitter[1]),
        ):
            start, end, peer = np.full(ranks, np.nan), np.full(ranks, np.nan), np.full(ranks, -1)
            start[own], end[own], peer[own] = now[own], ends, other
            self.sent.append(
                dict(
                    family="pp", name=name, group=np.zeros(ranks, int), step=step, start=start, end=end, size=8 << 20, seq=-1,
                    peer=peer,
                )
            )  # fmt: skip
        after = now.copy()
        after[senders] = np.maximum(after[senders], done + jitter[0])
        after[senders + HOST] = np.maximum(after[senders + HOST], done + jitter[1])
        return after

    # ------------------------------------------------------------------ the recording of a rank

    def read_clock(self, rank: int, time: np.ndarray) -> np.ndarray:
        """True times as the rank's host reads them."""
        host = self.host[rank]
        return np.rint(1e9 + self.offset[host] + (1 + self.rate[host]) * np.asarray(time)).astype(np.int64)

    def rows(self, rank: int) -> RecordedRows:
        """What a digest is made of."""
        columns, names, details = self._columns(rank)
        order = np.lexsort((-columns["end"], columns["start"]))
        columns = {name: values[order] for name, values in columns.items()}
        columns["mem_time"] = columns["mem_total"] = np.empty(0, np.int64)
        dims = [((int(1e6 * self._work(rank)),),)]
        return RecordedRows(names, details, dims, columns, self.metadata(rank), 0, 1_700_000_000_000_000_000)

    def store(self, rank: int) -> EventStore:
        """The recording."""
        columns, names, details = self._columns(rank)
        columns["correlation"] = -1
        return EventStore.freeze(
            columns,
            names=names,
            threads=[ThreadInfo(1, "thread 1"), ThreadInfo(7, "stream 7"), ThreadInfo(20, "stream 20")],
            input_infos=[InputInfo(((int(1e6 * self._work(rank)),),), ("float",), ((1,),), (None,))],
            row_details=[RowDetails(*detail) for detail in details],
            metadata=self.metadata(rank),
            clock_start_ns=0,
            wall_start_ns=1_700_000_000_000_000_000,
        )

    def save(self, folder: Path, ranks: range | None = None) -> None:
        """Write one saved profile a rank."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in ranks or range(self.ranks):
            saved.save(self.store(rank), folder / f"rank{rank:05d}.mtp")

    def metadata(self, rank: int) -> dict:
        """What the head of a recording says."""
        return {
            "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": self.ranks, "pg_count": 1, "pg_config": []},
            "host_name": f"host{self.host[rank]:04d}",
        }

    def _work(self, rank: int) -> float:
        more = self.faults.more_work
        return more[1] if more and more[0] == rank else 1.0

    def _columns(self, rank: int) -> tuple[dict[str, np.ndarray], list[str], list[tuple[str, str]]]:
        random = np.random.default_rng([self.seed, rank])
        names = [*_KERNELS, *_OPS, *_CHILDREN, *(f"ProfilerStep#{_STEP0 + n}" for n in range(self.steps))]
        names += ["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"]
        per_block = max(1, round((self.events / self.steps - 40) / (2 * LAYERS + 1) / 3))
        begin = np.array([b[2][rank] for b in self.blocks])[:, None]
        length = np.array([b[3][rank] for b in self.blocks])[:, None] - begin
        kernel = (np.arange(len(self.blocks) * per_block) % len(_KERNELS)).reshape(len(self.blocks), per_block)
        weight = 1 + 0.02 * random.normal(size=kernel.shape)
        if self.faults.slow_op and self.faults.slow_op[0] == rank:
            weight = weight * np.where(kernel == self.faults.slow_op[1], self.faults.slow_op[2], 1.0)
        edges = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
        ends = (begin + edges * length).ravel()
        starts = (begin + np.concatenate([np.zeros_like(edges[:, :1]), edges[:, :-1]], axis=1) * length).ravel()
        took = ends - starts
        count = len(starts)
        at = np.arange(count)
        parts = [
            dict(name=kernel.ravel(), kind=observer.KERNEL, tid=1, device_type=1, start=starts, end=ends - 50),
            dict(name=20 + at % 12, kind=observer.OP, tid=0, device_type=0, start=starts, end=starts + 0.8 * took, shapes=0),
            dict(name=32 + at % 10, kind=observer.OP, tid=0, device_type=0, start=starts + 0.1 * took, end=starts + 0.5 * took),
            dict(
                name=42 + np.arange(self.steps), kind=observer.STEP, tid=0, device_type=0,
                start=np.array([b[rank] for b, _ in self.bounds]), end=np.array([e[rank] for _, e in self.bounds]),
            ),
        ]  # fmt: skip
        if self.faults.loader and self.faults.loader[0] == rank:
            loads = np.array(self.loads)
            parts.append(
                dict(name=42 + self.steps, kind=observer.SCOPE, tid=0, device_type=0, start=loads[:, 1], end=loads[:, 2])
            )
        details = self._add_communications(rank, names, parts)
        total = sum(len(part["start"]) for part in parts)
        columns = {}
        for column, missing in (("name", 0), ("kind", 0), ("tid", 0), ("start", 0), ("end", 0), ("details", -1),
                                ("device_type", 0), ("shapes", -1)):  # fmt: skip
            values = np.concatenate([np.broadcast_to(part.get(column, missing), len(part["start"])) for part in parts])
            columns[column] = self.read_clock(rank, values) if column in ("start", "end") else values.astype(np.int64)
        columns["end"] = np.maximum(columns["end"], columns["start"])
        columns["step"] = np.zeros(total, np.int64)
        columns["flops"] = np.zeros(total, np.int64)
        return columns, names, details

    def _add_communications(self, rank: int, names: list[str], parts: list[dict]) -> list[tuple[str, str]]:
        details, name, start, end = [], [], [], []
        known: dict[str, int] = {}
        for sent in self.sent:
            if not np.isfinite(sent["start"][rank]):
                continue
            label = _NCCL.format("SendRecv" if sent["family"] == "pp" else "AllReduce_Sum_bf16_RING_LL")
            if label not in known:
                known[label] = len(names)
                names.append(label)
            name.append(known[label])
            start.append(sent["start"][rank])
            end.append(sent["end"][rank])
            details.append(("", self._arguments(rank, sent)))
        parts.append(
            dict(
                name=np.array(name, int), kind=observer.KERNEL, tid=2, device_type=1, start=np.array(start), end=np.array(end),
                details=np.arange(len(details)),
            )
        )  # fmt: skip
        return details

    def _arguments(self, rank: int, sent: dict) -> str:
        """torch's arguments of a communication, as JSON."""
        key = (sent["family"], int(sent["group"][rank]), sent["size"], sent["name"])
        if key not in self._known:
            self._known[key] = self._group_arguments(sent, key[1])
        more = {"Rank": rank, "Seq": sent["seq"]}
        if sent["peer"] is not None:
            peer = int(sent["peer"][rank])
            more = {"Src Rank": peer, "Dst Rank": rank} if sent["name"] == "recv" else {"Src Rank": rank, "Dst Rank": peer}
        return self._known[key] + ", " + json.dumps(more)[1:]

    def _group_arguments(self, sent: dict, group: int) -> str:
        members = np.flatnonzero(sent["group"] == group)
        text = ", ".join(map(str, members[:30].tolist())) + (", ..." if len(members) > 30 else "")
        arguments = {
            "Collective name": sent["name"],
            "In msg nelems": sent["size"] // 2,
            "Out msg nelems": sent["size"] // 2,
            "Group size": len(members),
            "dtype": "BFloat16",
            "Process Group Name": f"{sent['family']}{group}",
            "Process Group Description": sent["family"],
            "Process Group Ranks": f"[{text}]",
            "Global rank start": int(members[0]),
            "Global rank stride": int(members[1] - members[0]) if len(members) > 1 else 1,
        }
        return json.dumps(arguments)[:-1]
