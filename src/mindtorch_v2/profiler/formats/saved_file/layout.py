"""The layout of a saved profile's frames: numbers of tables, columns and logs, heads of bodies."""

from __future__ import annotations

import struct

# Numbers of tables and columns in a file. They never change; new ones are added at the end.
TABLES = (
    "names",
    "threads",
    "input_infos",
    "frames",
    "stacks",
    "modules",
    "overloads",
    "calls",
    "module_infos",
    "tasks",
    "row_details",
    "other_events",
    "stack_nodes",
)
ROW_COLUMNS = (
    "name",
    "kind",
    "tid",
    "start",
    "end",
    "seq",
    "step",
    "shapes",
    "stack",
    "flops",
    "module",
    "fwd_tid",
    "op",
    "device_type",
    "device_index",
    "correlation",
    "launch_tid",
    "launch_ns",
    "parent",
    "launcher",
    "details",
)
MEMORY_ROW_COLUMNS = (
    "mem_time",
    "mem_bytes",
    "mem_addr",
    "mem_tid",
    "mem_total",
    "mem_device_type",
    "mem_device_index",
    "mem_event",
    "mem_reserved",
)
# Logs of a streamed recording beside its rows, and how many columns of whole numbers each has.
PYTHON_LOG, MODULE_LOG, TOUCHED_LOG, PARAMETER_LOG, GC_LOG, OUT_LOG, STEP_LOG, TASK_LOG = range(8)
LOG_WIDTHS = {PYTHON_LOG: 3, MODULE_LOG: 2, TOUCHED_LOG: 4, PARAMETER_LOG: 1, GC_LOG: 3, OUT_LOG: 2, STEP_LOG: 2, TASK_LOG: 2}
# Tables that only logs refer to.
LOG_TABLES = ("calls", "module_infos", "tasks")
# In logs of calls and modules, in place of a callee: a return; the thread's tracing began; it stopped.
ENDS, BEGINS, STOPS = -1, -2, -3
FOREIGN = -2  # `correlation` of a row of another process, in a streamed file
# Damage costs a frame, so frames are small; smaller ones take more bytes per event. A finished recording has about FRAMES
# frames of rows, with at least LEAST_ROWS_PER_FRAME and at most ROWS_PER_FRAME rows. Readers accept MOST_ROWS_PER_FRAME.
FRAMES, LEAST_ROWS_PER_FRAME, ROWS_PER_FRAME = 32, 1 << 8, 1 << 12
MOST_ROWS_PER_FRAME = 1 << 16
ENTRIES_PER_FRAME = 1 << 12
TABLE_HEAD = struct.Struct("<BII")  # table, first entry, entries
ROWS_HEAD = struct.Struct("<II")  # first row, rows
LOG_HEAD = struct.Struct("<BII")  # log, thread, rows
COLUMN_HEAD = struct.Struct("<BI")  # column, bytes
# The order of rows: that of a store, or that in which they were recorded.
IN_ROW_ORDER, AS_RECORDED = "rows", "recorded"
