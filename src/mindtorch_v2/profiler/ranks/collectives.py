"""Finds the collectives and messages among a recording's rows, with the group, number and size that match them across ranks.

Rows say what they are by torch's arguments ("Collective name", "Process Group Name", "Seq" ...). Traces without them are
matched by names of kernels and ranges, and by order within a step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from ..._dispatch import observer
from .recorded_rows import Numbers, RecordedRows

# By number: what a communication is. Those before FIRST_ONE_SIDED end on all ranks at the same moment, more or less.
KINDS = (
    "all_reduce",
    "all_gather",
    "reduce_scatter",
    "all_to_all",
    "barrier",
    "broadcast",
    "reduce",
    "gather",
    "scatter",
    "send",
    "recv",
    "other",
)
FIRST_ONE_SIDED = KINDS.index("broadcast")
SEND, RECV, OTHER = KINDS.index("send"), KINDS.index("recv"), KINDS.index("other")
# Longer names first: "allreduce" contains "reduce".
_BY_TEXT = sorted(
    ((name.replace("_", ""), number) for number, name in enumerate(KINDS[:OTHER])), key=lambda pair: -len(pair[0])
)
_DEVICE_NAME = re.compile(r"(?:nccl|rccl|hccl|oneccl|msccl)(?:dev)?kernel|^hcom_|^hccl", re.IGNORECASE)
_HOST_NAME = re.compile(r"^(?:gloo|nccl|mpi|hccl|ucc|xccl):")
# Rows of a thread that begins a communication or waits for one: neither computing nor the communication itself.
CALLER_NAME = re.compile(r"^(?:c10d::|c10d_functional::|_c10d_functional::|record_param_comms|nccl:|gloo:|hccl:|mpi:)")
# Bytes by torch's names of dtypes; others have their bits in the name.
_ITEM_BYTES = {"float": 4, "double": 8, "half": 2, "long": 8, "int": 4, "short": 2, "char": 1, "byte": 1, "bool": 1}
_BITS = re.compile(r"(\d+)")
_MOST_PER_STEP = 1 << 20
_NONE: Mapping[str, Any] = {}
_OF_GROUP = (
    "Process Group Name",
    "Process Group Description",
    "Process Group Ranks",
    "Group size",
    "Global rank start",
    "Global rank stride",
)
# By kind of row.
DEVICE_KINDS = np.isin(np.arange(observer.KIND_COUNT), (observer.KERNEL, observer.COPY, observer.FILL))
OP_KINDS = np.isin(np.arange(observer.KIND_COUNT), (observer.OP, observer.BACKWARD, observer.ENGINE))


@dataclass(frozen=True, order=True)
class Group:
    """A process group as a rank knows it. ranks: global ranks in order, () if the recording does not tell."""

    name: str
    description: str
    size: int
    ranks: tuple[int, ...]

    def __hash__(self) -> int:
        # Not of all ranks: ten thousand digests name the same group of ten thousand.
        return hash((self.name, self.description, self.size, self.ranks[:2]))


@dataclass
class Collectives:
    """Communications in order of start. `seq` numbers those of a group; `peer` is the other global rank of a message or -1."""

    rows: Numbers
    kind: Numbers
    group: Numbers
    seq: Numbers
    size: Numbers
    peer: Numbers
    groups: list[Group]
    callers: NDArray[np.bool_]  # which rows of the recording begin or wait for communications

    def __len__(self) -> int:
        return len(self.rows)


@lru_cache(1 << 12)
def kind_of(name: str) -> int:
    """The number in KINDS of a collective by any of its names: "allreduce_", "ncclDevKernel_AllReduce_Sum_f32_RING_LL"."""
    text = re.sub(r"[^a-z]", "", name.lower())
    if "sendrecv" in text:
        return OTHER
    return next((number for part, number in _BY_TEXT if part in text), OTHER)


def find_collectives(rows: RecordedRows, step: Numbers) -> Collectives:
    """The communications of a recording; `step` is the number of each row's step."""
    columns = rows.columns
    arguments = _arguments(rows)
    told = np.zeros(len(rows.details) + 1, np.bool_)
    told[list(arguments)] = True
    with_arguments = told[columns["details"]]
    on_device = device_rows(rows)
    callers = _matching(rows, CALLER_NAME) & ~on_device
    chosen = _most_exact(with_arguments & on_device, with_arguments & (columns["kind"] == observer.SCOPE), with_arguments)
    if not chosen.any():
        chosen = _most_exact(_matching(rows, _DEVICE_NAME) & on_device, _matching(rows, _HOST_NAME) & ~on_device)
    at = np.flatnonzero(chosen)
    groups: dict[Group, int] = {}
    reader = _Arguments(_group_config(rows.metadata), groups)
    pairs = zip(columns["details"][at].tolist(), columns["name"][at].tolist(), strict=True)
    infos = [reader.info(arguments.get(detail, _NONE), rows.names[name]) for detail, name in pairs]
    kind, group, seq, size, peer = np.array(infos, np.int64).reshape(len(at), 5).T
    seq = _numbered(kind, group, seq, peer, step[at])
    return Collectives(at, kind, group, seq, size, peer, list(groups), callers)


def device_rows(rows: RecordedRows) -> NDArray[np.bool_]:
    """Which rows are work of a device: kernels, copies and fills."""
    chosen: NDArray[np.bool_] = (rows.columns["device_type"] != 0) & DEVICE_KINDS[rows.columns["kind"]]
    return chosen


def _arguments(rows: RecordedRows) -> dict[int, Mapping[str, Any]]:
    """The arguments of communications, by number of the details."""
    found: dict[int, Mapping[str, Any]] = {}
    for number, (_, text) in enumerate(rows.details):
        if '"Collective name"' in text:
            values = orjson.loads(text)
            if isinstance(values, dict):
                found[number] = values
    return found


def _matching(rows: RecordedRows, pattern: re.Pattern[str]) -> NDArray[np.bool_]:
    chosen: NDArray[np.bool_] = np.array([pattern.search(name) is not None for name in rows.names] + [False])
    return chosen[rows.columns["name"]]


def _most_exact(*choices: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The first choice with a row: times of a device before those of the call that launched it."""
    return next((rows for rows in choices if rows.any()), choices[-1])


class _Arguments:
    """Reads the arguments of a recording's communications. Most name the same few groups and kinds, which are made once."""

    def __init__(self, config: Mapping[str, tuple[str, tuple[int, ...]]], groups: dict[Group, int]) -> None:
        self._config = config
        self._groups = groups
        self._group_numbers: dict[tuple[Any, ...], tuple[int, tuple[int, ...]]] = {}
        self._kinds: dict[tuple[Any, str], int] = {}

    def info(self, values: Mapping[str, Any], name: str) -> tuple[int, int, int, int, int]:
        """Kind, group, sequence number (-1: none), bytes and peer of a communication."""
        get = values.get
        kind = self._kind(get("Collective name", name), name)
        group, ranks = self._group(values)
        elements = max(_integer(get("In msg nelems"), 0), _integer(get("Out msg nelems"), 0))
        peer = -1
        if kind in (SEND, RECV):
            peer = _integer(get("Dst Rank" if kind == SEND else "Src Rank"), -1)
            if 0 <= peer < len(ranks):
                peer = ranks[peer]
        return kind, group, _integer(get("Seq"), -1), elements * item_bytes(str(get("dtype", ""))), peer

    def _kind(self, collective: Any, name: str) -> int:
        key = (collective if isinstance(collective, str) else str(collective), name)
        kind = self._kinds.get(key)
        if kind is None:
            kind = kind_of(key[0])
            kind = self._kinds[key] = kind_of(name) if kind == OTHER else kind
        return kind

    def _group(self, values: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
        """The number of the group, and its ranks."""
        key = tuple(map(values.get, _OF_GROUP))
        try:
            return self._group_numbers[key]
        except KeyError:
            known = self._group_numbers[key] = self._new_group(values)
            return known
        except TypeError:  # ranks as a list
            return self._new_group(values)

    def _new_group(self, values: Mapping[str, Any]) -> tuple[int, tuple[int, ...]]:
        own_name = str(values.get("Process Group Name", ""))
        description, ranks = self._config.get(own_name, ("", ()))
        ranks = _ranks(values) or ranks
        group = Group(
            own_name,
            str(values.get("Process Group Description", description)),
            _integer(values.get("Group size"), len(ranks)),
            ranks,
        )
        return self._groups.setdefault(group, len(self._groups)), ranks


def _ranks(values: Mapping[str, Any]) -> tuple[int, ...]:
    """The global ranks of a group; torch cuts long lists off, and has start and stride instead."""
    text = values.get("Process Group Ranks")
    if isinstance(text, str) and text.startswith("[") and "..." not in text:
        return _listed(text)
    if isinstance(text, list):
        return tuple(number for number in text if isinstance(number, int))
    first, stride, size = (_integer(values.get(key), -1) for key in ("Global rank start", "Global rank stride", "Group size"))
    return tuple(range(first, first + stride * size, stride)) if first >= 0 and stride > 0 and 0 < size < 1 << 20 else ()


@lru_cache(1 << 10)
def _listed(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text[1:-1].split(",") if part.strip().isdecimal())


def _group_config(metadata: Mapping[str, Any]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Descriptions and ranks of groups by name, from `distributedInfo`."""
    info = metadata.get("distributedInfo")
    found = {}
    for entry in info.get("pg_config", ()) if isinstance(info, dict) else ():
        if isinstance(entry, dict) and isinstance(entry.get("ranks"), list):
            ranks = tuple(number for number in entry["ranks"] if isinstance(number, int))
            found[str(entry.get("pg_name"))] = (str(entry.get("pg_desc", "")), ranks)
    return found


@lru_cache(1 << 8)
def item_bytes(dtype: str) -> int:
    """Bytes of an element by the dtype's name, torch's own or C++'s; 1 if there is none."""
    text = dtype.lower().removeprefix("c10::")
    bits = _BITS.search(text)
    return _ITEM_BYTES.get(text) or (max(int(bits[1]) // 8, 1) if bits else 1)


def _integer(value: Any, missing: int) -> int:
    return value if isinstance(value, int) and abs(value) < 1 << 62 else missing


def _numbered(kind: Numbers, group: Numbers, seq: Numbers, peer: Numbers, step: Numbers) -> Numbers:
    """Sequence numbers. Messages, and what has none, are numbered by order within the step, alike on all ranks."""
    by_order = (seq < 0) | (kind == SEND) | (kind == RECV)
    if not by_order.any():
        return seq
    numbered = seq.copy()
    rows = np.flatnonzero(by_order)
    keys = np.stack([kind[rows], group[rows], peer[rows], step[rows]])
    order = np.lexsort(keys)  # stable: rows of one key stay in order of start
    changed = np.append(True, (np.diff(keys[:, order], axis=1) != 0).any(axis=0))
    first = np.flatnonzero(changed)
    place = np.arange(len(rows)) - np.repeat(first, np.diff(np.append(first, len(rows))))
    numbered[rows[order]] = step[rows[order]] * _MOST_PER_STEP + place
    return numbered
