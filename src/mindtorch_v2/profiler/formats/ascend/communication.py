"""What Ascend's files tell of collectives beside their times: communication.json, its matrix, and the tables of analysis.db.

The parts of a collective (transit, waits, bytes by link) are known of folders that CANN's tools made; there they are details of
the collective's row and the matrix is metadata. Other recordings have the time of each collective: as CANN does where it saw
none of a collective's transfers, all of that is written as idle, and no links.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

from ..._io.strict_json import dumps
from .._recovery import Recovery
from .contents import Contents

TIMES, LINKS = "Communication Time Info", "Communication Bandwidth Info"
MATRIX = "ascend_communication_matrix"  # of a recording's metadata
_TOTAL = "Total Op Info"
_SIZES = "Size Distribution"
_START, _ELAPSED = "Start Timestamp(us)", "Elapse Time(ms)"
_TRANSIT = "Transit Time(ms)"
_RATIOS = {"Wait Time Ratio": "Wait Time(ms)", "Synchronization Time Ratio": "Synchronization Time(ms)"}
_KINDS = ("p2p", "collective")
_MESSAGES = ("hcom_send", "hcom_receive", "hcom_batchsendrecv")

# Columns of analysis.db under the names that the text files have.
_TIME_COLUMNS = {
    "start_timestamp": _START,
    "elapse_time": _ELAPSED,
    "transit_time": _TRANSIT,
    "wait_time": "Wait Time(ms)",
    "synchronization_time": "Synchronization Time(ms)",
    "idle_time": "Idle Time(ms)",
}
_LINK_COLUMNS = {
    "transit_size": "Transit Size(MB)",
    "transit_time": _TRANSIT,
    "bandwidth": "Bandwidth(GB/s)",
    "large_packet_ratio": "Large Packet Ratio",
}
_MATRIX_COLUMNS = {
    "transport_type": "Transport Type",
    "transit_size": "Transit Size(MB)",
    "transit_time": _TRANSIT,
    "bandwidth": "Bandwidth(GB/s)",
    "op_name": "Op Name",
}

Row = tuple[Any, ...]
Steps = dict[str, dict[str, dict[str, Any]]]  # "step7" -> "p2p" or "collective" -> name@group -> figures


# ---------------------------------------------------------------------- reading


def details_by_name(communication: Any) -> dict[str, dict[str, Any]]:
    """Details of each collective by its name, from a communication.json or what `from_database` makes of tables."""
    found: dict[str, dict[str, Any]] = {}
    for _, _, key, figures in _entries(communication):
        name, _, group = key.rpartition("@")
        if name:
            told = figures if isinstance(figures, dict) else {}
            parts = {TIMES: _numbers(told.get(TIMES)), LINKS: _links(told.get(LINKS))}
            found[name] = {"Process Group Name": group, **{part: known for part, known in parts.items() if known}}
    return found


def matrix_of(document: Any) -> Steps:
    """What has the form of a communication_matrix.json in a document."""
    matrix: Steps = {}
    for step, kind, key, links in _entries(document):
        known = {
            ranks: {name: link[name] for name in _MATRIX_COLUMNS.values() if isinstance(link.get(name), str | int | float)}
            for ranks, link in (links.items() if isinstance(links, dict) else ())
            if isinstance(link, dict)
        }
        if any(known.values()):
            matrix.setdefault(step, {}).setdefault(kind, {})[key] = known
    return matrix


def _numbers(value: Any) -> dict[str, Any]:
    """The numbers among figures."""
    named = value.items() if isinstance(value, dict) else ()
    return {name: number for name, number in named if type(number) in (int, float)}


def _links(value: Any) -> dict[str, dict[str, Any]]:
    """The figures of each kind of link."""
    links: dict[str, dict[str, Any]] = {}
    for transport, link in value.items() if isinstance(value, dict) else ():
        if isinstance(link, dict):
            sizes = link.get(_SIZES)
            counted = {
                size: counts
                for size, counts in (sizes.items() if isinstance(sizes, dict) else ())
                if isinstance(counts, list) and len(counts) == 2 and all(type(count) in (int, float) for count in counts)
            }
            links[transport] = {**_numbers(link), _SIZES: counted}
    return links


def from_database(path: str, recovery: Recovery) -> tuple[Steps, Steps]:
    """What the tables of an analysis.db tell, as communication.json and communication_matrix.json have it."""
    collectives: Steps = {}
    matrix: Steps = {}
    if not os.path.isfile(path):
        return collectives, matrix
    try:
        with closing(sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            for row in _table(connection, "CommAnalyzerTime"):
                times = {name: row[column] for column, name in _TIME_COLUMNS.items() if row.get(column) is not None}
                _place(collectives, row)[TIMES] = times
            for row in _table(connection, "CommAnalyzerBandwidth"):
                links = _place(collectives, row).setdefault(LINKS, {})
                figures = {name: row.get(column) or 0 for column, name in _LINK_COLUMNS.items()}
                link = links.setdefault(str(row.get("transport_type")), {**figures, _SIZES: {}})
                if row.get("count"):
                    link[_SIZES][str(row.get("package_size"))] = [row["count"], row.get("total_duration") or 0]
            for row in _table(connection, "CommAnalyzerMatrix"):
                link = {name: row.get(column) for column, name in _MATRIX_COLUMNS.items()}
                _place(matrix, row)[f"{row.get('src_rank')}-{row.get('dst_rank')}"] = link
    except sqlite3.DatabaseError as error:
        recovery.note(f"{os.path.basename(path)} cannot be read: {error}")
    return collectives, matrix


def _table(connection: sqlite3.Connection, name: str) -> Iterator[dict[str, Any]]:
    if connection.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,)).fetchone():
        yield from map(dict, connection.execute(f"SELECT * FROM {name}"))


def _place(steps: Steps, row: Mapping[str, Any]) -> dict[str, Any]:
    """Where the figures of a row belong."""
    kind = steps.setdefault(str(row.get("step")), {}).setdefault(str(row.get("type")), {})
    figures: dict[str, Any] = kind.setdefault(f"{row.get('hccl_op_name')}@{row.get('group_name')}", {})
    return figures


def _entries(document: Any) -> Iterator[tuple[str, str, str, Any]]:
    """Step, kind, name@group and figures of everything in a document."""
    for step, kinds in document.items() if isinstance(document, dict) else ():
        for kind, named in kinds.items() if isinstance(kinds, dict) else ():
            for key, figures in named.items() if isinstance(named, dict) else ():
                yield step, kind, key, figures


# ---------------------------------------------------------------------- writing


def text_files(contents: Contents) -> dict[str, Iterable[bytes]]:
    """communication.json, and communication_matrix.json where links are known; nothing without collectives."""
    steps = _collectives(contents)
    if not steps:
        return {}
    for kinds in steps.values():
        for named in kinds.values():
            if named:
                named[_TOTAL] = _total(named.values())
    files: dict[str, Iterable[bytes]] = {"communication.json": [dumps(steps).encode()]}
    matrix = matrix_of(contents.store.metadata.get(MATRIX))
    if matrix:
        for kinds in matrix.values():
            kinds |= {kind: kinds.get(kind, {}) for kind in _KINDS}
        files["communication_matrix.json"] = [dumps(matrix).encode()]
    return files


def table_rows(contents: Contents) -> dict[str, list[Row]]:
    """The rows of the tables of analysis.db; there are no such tables without collectives."""
    if not len(contents.collectives):
        return {}
    times: list[Row] = []
    links: list[Row] = []
    matrix: list[Row] = []
    for step, kind, key, figures in _entries(_collectives(contents)):
        name, _, group = key.rpartition("@")
        times.append((name, group, *(figures[TIMES].get(column) for column in _TIME_COLUMNS.values()), step, kind))
        for transport, link in figures[LINKS].items():
            known = tuple(link.get(column, 0) for column in _LINK_COLUMNS.values())
            sizes = [(size, *counted) for size, counted in link.get(_SIZES, {}).items()]
            if known[0] or sizes:
                links += [(name, group, transport, *known, *each, step, kind) for each in sizes or [(0, 0, 0)]]
    for step, kind, key, between in _entries(matrix_of(contents.store.metadata.get(MATRIX))):
        name, _, group = key.rpartition("@")
        for ranks, link in between.items():
            source, _, target = ranks.partition("-")
            transport, *figures, op = (link.get(column) for column in _MATRIX_COLUMNS.values())
            matrix.append((name, group, source, target, transport, *figures, step, kind, op))
    return {"CommAnalyzerTime": times, "CommAnalyzerBandwidth": links, "CommAnalyzerMatrix": matrix}


def _collectives(contents: Contents) -> Steps:
    store = contents.store
    steps: Steps = {}
    for row in contents.collectives.tolist():
        details, name = contents.details(row), contents.collective_name(row)
        start, elapsed = contents.wall(store.start[row]) / 1000, int(store.duration[row]) / 1_000_000
        kinds = steps.setdefault(f"step{int(store.step[row])}", {kind: {} for kind in _KINDS})
        kind = _KINDS[not name.lower().startswith(_MESSAGES)]
        kinds[kind][f"{name}@{contents.group_name(row)}"] = {
            TIMES: _numbers(details.get(TIMES))
            or dict(zip(_TIME_COLUMNS.values(), (start, elapsed, 0, 0, 0, elapsed), strict=True)),
            LINKS: _links(details.get(LINKS)),
        }
    return steps


def _total(collectives: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """The sums of one kind of a step."""
    times: dict[str, float] = {}
    links: dict[str, dict[str, Any]] = {}
    for figures in collectives:
        for name, value in figures[TIMES].items():
            if name != _START and name not in _RATIOS:
                times[name] = times.get(name, 0) + value
        for transport, link in figures[LINKS].items():
            total = links.setdefault(transport, {"Transit Size(MB)": 0, _TRANSIT: 0, _SIZES: {}})
            for name in ("Transit Size(MB)", _TRANSIT):
                total[name] += link.get(name) or 0
            for size, (count, spent) in link.get(_SIZES, {}).items():
                before = total[_SIZES].get(size, (0, 0))
                total[_SIZES][size] = [before[0] + count, before[1] + spent]
    if _TRANSIT in times:
        for ratio, name in _RATIOS.items():
            both = times.get(name, 0) + times[_TRANSIT]
            times[ratio] = round(times.get(name, 0) / both, 4) if both else 0
    for total in links.values():
        spent = total[_TRANSIT]
        total["Bandwidth(GB/s)"] = round(total["Transit Size(MB)"] / spent, 4) if spent else 0
    return {TIMES: times, LINKS: links}
