"""Checks events of a trace one by one, for batches in which something is wrong."""

from __future__ import annotations

from typing import Any

from .kinds import DEVICE_KINDS, MEMORY_NAME
from .times import is_time

_LARGEST = (1 << 63) - 1
_WHOLE_NUMBERS = (
    "Sequence number",
    "Fwd thread id",
    "correlation",
    "Bytes",
    "Addr",
    "Total Allocated",
    "Total Reserved",
    "External id",
    "Record function id",
)
_SMALL_NUMBERS = {"device": 31, "stream": 62, "Device Type": 7, "Device Id": 31}
_TEXTS = ("Module Hierarchy", "Call stack", "name")


def checked_args(args: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an event without those of a wrong type or size."""

    def fits(key: str, value: Any) -> bool:
        if key in _WHOLE_NUMBERS:
            return type(value) is int and -_LARGEST <= value <= _LARGEST
        if key in _SMALL_NUMBERS:
            return type(value) is int and -(1 << _SMALL_NUMBERS[key]) < value < 1 << _SMALL_NUMBERS[key]
        return isinstance(value, str) if key in _TEXTS else True

    return {key: value for key, value in args.items() if fits(key, value)}


def fault(event: Any) -> str | None:
    """Why an event cannot be read; None if it can."""
    if not isinstance(event, dict):
        return "not an event"
    phase, args = event.get("ph"), event.get("args")
    if not isinstance(phase, str) or not phase.isascii() or len(phase) != 1:
        return "no phase"
    if phase != "E" and not isinstance(event.get("name"), str):
        return "no name"
    if phase in "XBECiIsf" and not is_time(event.get("ts")):
        return "no time"
    if phase == "X" and not is_time(event.get("dur")):
        return "no duration"
    if phase == "X" and event["dur"] < 0:
        return "negative duration"
    if phase in "XBEsfMiI" and not (_is_place(event.get("pid")) and _is_place(event.get("tid"))):
        return "no thread"
    if phase in "sf" and event.get("cat") in ("fwdbwd", "async_npu") and not _is_whole(event.get("id")):
        return "no flow id"
    if phase in "iI" and event["name"] == MEMORY_NAME and not (isinstance(args, dict) and _is_whole(args.get("Bytes"))):
        return "no bytes"
    if phase == "M" and event["name"] == "thread_name" and not (isinstance(args, dict) and isinstance(args.get("name"), str)):
        return "no name"
    category = event.get("cat")
    if isinstance(category, str) and category in DEVICE_KINDS and not _is_device(event["pid"], args):
        return "no device"
    return None


def is_key(value: Any) -> bool:
    """Whether a table may have this key: a text, or the two parts of a lane."""
    return isinstance(value, str) or (isinstance(value, tuple) and all(map(_is_place, value)))


def _is_place(value: Any) -> bool:
    return isinstance(value, str) or _is_whole(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and -_LARGEST <= value <= _LARGEST


def _is_device(process: Any, args: Any) -> bool:
    index = args.get("device", process) if isinstance(args, dict) else process
    return type(index) is int and -(1 << 31) < index < 1 << 31
