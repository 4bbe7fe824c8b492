"""The CSV tables of a folder: kernels with their inputs and counters, and memory."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from .._recovery import Recovery
from ..trace.times import LATEST_NS

_KB, _MB = 1024, 1024 * 1024
# Columns that a row of the trace has anyway.
_KNOWN = frozenset({"Name", "Start Time(us)", "Duration(us)", "Step Id", "Device_id", "Model ID", "Task ID", "Stream ID"})
_TEXTS = frozenset({"Type", "OP State", "Accelerator Core", "HF32 Eligible", "Context ID"})
_NPU = 20  # torch's number of the device type


def kernels(path: str, recovery: Recovery) -> dict[int, dict[str, Any]]:
    """The kernels of kernel_details.csv by their start in nanoseconds: `duration` (microseconds) and `details`."""
    found: dict[int, dict[str, Any]] = {}
    for row in _rows(path, recovery):
        start, duration = _nanoseconds(row.get("Start Time(us)")), _number(row.get("Duration(us)"))
        if start is None or duration is None or duration < 0:
            recovery.skip(f"line of {os.path.basename(path)} without a time")
            continue
        found[start] = {"duration": duration, "details": dict(_details(row))}
    return found


def _details(row: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    for key, text in row.items():
        if key in _KNOWN or not text or text == "N/A":
            continue
        if key in _TEXTS or key.endswith(("Shapes", "Types", "Formats")):
            yield key, text.strip('"')
        else:
            number = _number(text)
            yield key, text if number is None else int(number) if number == number.to_integral_value() else float(number)


def memory(path: str, process: int, recovery: Recovery) -> Iterator[dict[str, Any]]:
    """Blocks of operator_memory.csv as Kineto's memory events. The table has no addresses: a block's number stands for one."""
    for block, row in enumerate(_rows(path, recovery), 1):
        size = _number(row.get("Size(KB)"))
        device = (row.get("Device Type") or "").strip().partition(":")[2]
        if size is None or not device.isdecimal() or len(device) > 4:
            recovery.skip(f"line of {os.path.basename(path)} without a size or device")
            continue
        size_bytes = int(size * _KB)
        for kind, change in (("Allocation", size_bytes), ("Release", -size_bytes)):
            time = _number(row.get(f"{kind} Time(us)"))
            if time is None:
                continue
            yield {
                "ph": "i",
                "name": "[memory]",
                "cat": "cpu_instant_event",
                "pid": process,
                "tid": process,
                "ts": time,
                "args": {
                    "Bytes": change,
                    "Addr": block,
                    "Device Type": _NPU,
                    "Device Id": int(device),
                    "Total Allocated": _bytes(row.get(f"{kind} Total Allocated(MB)")),
                    "Total Reserved": _bytes(row.get(f"{kind} Total Reserved(MB)")),
                },
            }


def _rows(path: str, recovery: Recovery) -> Iterator[dict[str, str]]:
    """The lines of a table; what is damaged is counted. A file that is not there has none."""
    if not os.path.exists(path):
        return
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        table = csv.DictReader((line.replace("\0", "") for line in file), restkey="", restval="")
        try:
            for row in table:
                yield {key.strip(): value.strip() for key, value in row.items() if key and isinstance(value, str)}
        except csv.Error as error:
            recovery.complete = False
            recovery.note(f"{os.path.basename(path)} is damaged: {error}")


def _number(text: str | None) -> Decimal | None:
    try:
        number = Decimal((text or "").strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number) * 1000 < LATEST_NS else None


def _nanoseconds(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else round(number * 1000)


def _bytes(text: str | None) -> int:
    number = _number(text)
    return 0 if number is None else int(number * _MB)
