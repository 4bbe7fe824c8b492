"""Kineto's categories, past and present, and the kind of row that each becomes."""

from __future__ import annotations

import re
from typing import Any

from ...._dispatch import observer
from ...store.categories import FIRST_USE

# The name of a module's call ends in the module's number.
MODULE_NAME = re.compile(r"nn\.Module: .*_[0-9]+", re.DOTALL)

MEMORY_NAME = "[memory]"
# Category -> kind of row. Spans of other categories become ops.
HOST_KINDS = {
    "cpu_op": observer.OP,
    "user_annotation": observer.SCOPE,
    "python_function": observer.PYTHON,
    "cuda_runtime": observer.RUNTIME,
    "cuda_driver": observer.RUNTIME,
    "privateuse1_runtime": observer.RUNTIME,
    "privateuse1_driver": observer.RUNTIME,
    "xpu_runtime": observer.RUNTIME,
    "xpu_driver": observer.RUNTIME,
    "mtia_runtime": observer.RUNTIME,
    "glow_runtime": observer.RUNTIME,
    FIRST_USE: observer.FIRST_USE,
}
MTIA_EVENTS = "mtia_ccp_events"
DEVICE_KINDS = {
    "kernel": observer.KERNEL,
    "gpu_memcpy": observer.COPY,
    "gpu_memset": observer.FILL,
    "gpu_user_annotation": observer.SCOPE,
    MTIA_EVENTS: observer.KERNEL,
    "hpu_op": observer.KERNEL,
}
# Categories that a row's kind and device imply: they need not be stored.
IMPLIED = frozenset(
    {"cpu_op", "user_annotation", "python_function", "kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation", FIRST_USE}
)
# Spans that are neither work of the host nor of a device: they are kept as they are.
NOT_ROWS = frozenset(
    {"overhead", "cuda_sync", "cuda_profiler_range", "ac2g", "gpu_pm_counter", "mtia_insight", "npu_task", "npu_overlap"}
)
_MTIA_WAITS = ("event_wait", "event_record")
_MTIA_COPY = "dma_request"

# What the categories were called until 2021, when ranges of record_function had that of ops.
_OLD = {
    "Operator": "cpu_op",
    "Kernel": "kernel",
    "Memcpy": "gpu_memcpy",
    "Memset": "gpu_memset",
    "Runtime": "cuda_runtime",
    "Python": "python_function",
    "python": "python_function",
    "operator": "cpu_op",
    "runtime": "cuda_runtime",
    "memcpy": "gpu_memcpy",
    "memset": "gpu_memset",
}
# One of these is in the text of every batch that has events in an old form.
OLD_MARKS = tuple(f'"{name}"'.encode() for name in _OLD)
_OP_NAME = re.compile(r"[\w.]*::.*|\w*Backward\d*", re.DOTALL)
_OLD_ARGUMENTS = {"external id": "External id", "Input dims": "Input Dims"}


def in_present_form(event: Any) -> Any:
    """An event of an old trace with the category, thread and arguments that Kineto writes today."""
    if not isinstance(event, dict):
        return event
    changed = dict(event)
    tid, category, args = event.get("tid"), event.get("cat"), event.get("args")
    if isinstance(tid, str) and tid.isascii() and tid.isdecimal() and len(tid) < 19:
        changed["tid"] = int(tid)
    if isinstance(category, str) and category in _OLD:
        changed["cat"] = _OLD[category]
        name = event.get("name")
        if changed["cat"] == "cpu_op" and isinstance(name, str) and not _OP_NAME.fullmatch(name):
            changed["cat"] = "user_annotation"
    if isinstance(args, dict) and not args.keys().isdisjoint(_OLD_ARGUMENTS):
        changed["args"] = {_OLD_ARGUMENTS.get(key, key): value for key, value in args.items()}
    return changed


def is_row(event: Any) -> bool:
    """Whether a span of a device or its runtime is a row: waits and records of events on MTIA's lanes are none."""
    category = event.get("cat")
    if category == MTIA_EVENTS:
        return event["name"] not in _MTIA_WAITS
    if category == "mtia_runtime":  # what a device's own lane tells of the runtime
        return bool(event["pid"] != (event.get("args") or {}).get("device"))
    return category not in NOT_ROWS


def device_kind(event: Any) -> int:
    """The kind of a row on a device; MTIA has one category for all that it does."""
    if event["cat"] == MTIA_EVENTS and event["name"] == _MTIA_COPY:
        return observer.COPY
    return DEVICE_KINDS[event["cat"]]
