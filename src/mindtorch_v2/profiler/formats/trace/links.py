"""Infers what a trace does not spell out: the Python stack of an op, the thread of its forward op, the launch of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from .._nested import call_paths
from .._recovery import Recovery

Columns = dict[str, NDArray[Any]]

# Frames of all stacks together: with more, stacks are cut.
_MOST_FRAMES = 1 << 24
_MOST_DEPTH = 1024
_MOST_PATH = 1 << 12
_MODULE_PREFIX = "nn.Module: "
_ROOT = ": <module>"
_LEFT_OUT_FRAMES = (("autograd/__init__", "_make_grads"), ("autograd/__init__", "backward"), ("torch/tensor", "backward"))


def python_stacks(
    host: Columns, python: Columns, names: list[str], written: list[str], recovery: Recovery
) -> tuple[NDArray[np.int32], NDArray[np.int32], list[tuple[str, ...]]]:
    """For each host row and each Python row a number into the stacks, and the stacks, innermost frame first.

    An event has its stack in the file, or else the Python functions that ran when it began. As in PyTorch, Python
    functions have stacks only if some event has one in the file.
    """
    host_stack = host["stack"].astype(np.int32)
    python_stack = np.full(len(python["start"]), -1, np.int32)
    stacks = [_written(text) for text in written]
    inferred = np.flatnonzero(host_stack < 0)
    if not len(python_stack):
        return host_stack, python_stack, stacks
    # Of equal times the first in the file is the outer one: row_order() expects that one last.
    order = len(python_stack) - 1 - tree.row_order(python["start"][::-1], python["end"][::-1])
    tid, start, end, name = (python[column][order] for column in ("tid", "start", "end", "name"))
    parent = tree.parents(tid, start, end)
    call = tree.enclosing(tid, start, end, parent, host["tid"][inferred], host["start"][inferred])
    if written:
        call = np.concatenate([call, parent])
    path = np.append(call_paths(parent, name)[0], -1)
    used, first, which = np.unique(path[call], return_index=True, return_inverse=True)
    depth = min(_MOST_DEPTH, max(8, _MOST_FRAMES // max(len(used), 1)))
    if int(tree.depths(parent).max()) >= depth:
        recovery.note(f"stacks of more than {depth} frames are cut")
    numbers = np.full(len(used), -1, np.int32)
    above, frame = parent.tolist(), name.tolist()
    for path_number, row in enumerate(call[first].tolist()):
        if row >= 0:
            numbers[path_number] = len(stacks)
            stacks.append(_frames(row, above, frame, names, depth))
    host_stack[inferred] = numbers[which[: len(inferred)]]
    if written:
        python_stack[order] = numbers[which[len(inferred) :]]
    return host_stack, python_stack, stacks


def _written(text: str) -> tuple[str, ...]:
    """A stack, innermost frame first, from its text: in that order if it ends in a semicolon or in a root."""
    frames = text.split(";")
    if text.endswith(";"):
        frames.pop()
    elif not (frames[-1].endswith(_ROOT) and not frames[0].endswith(_ROOT)):  # until 2021 stacks ended in the root
        frames.reverse()
    ordered = frames
    return tuple(frame for frame in ordered if not _is_left_out(frame))


def _is_left_out(frame: str) -> bool:
    """Whether PyTorch leaves a frame out of its stacks: the entries of its own backward()."""
    return any(file in frame and function in frame for file, function in _LEFT_OUT_FRAMES)


def _frames(row: int, above: list[int], frame: list[int], names: list[str], depth: int) -> tuple[str, ...]:
    stack: list[str] = []
    while row >= 0 and len(stack) < depth:
        if not _is_left_out(text := names[frame[row]]):
            stack.append(text)
        row = above[row]
    return tuple(stack)


def forward_threads(host: Columns, flows: Columns) -> NDArray[np.int32]:
    """fwd_tid of backward rows. A trace numbers forward threads from 1; its flows tell which lanes these are."""
    kind, tid, seq, fwd = host["kind"], host["tid"], host["seq"], host["fwd"]
    fwd_tid = np.full(len(kind), -1, np.int32)
    rows = np.flatnonzero((fwd > 0) & np.isin(kind, (observer.BACKWARD, observer.ENGINE)) & (seq >= 0))
    if not len(rows):
        return fwd_tid
    forward = np.flatnonzero((kind == observer.OP) & (seq >= 0))
    if len(np.unique(tid[forward])) <= 1:
        fwd_tid[rows] = tid[forward[0]] if len(forward) else tid[rows]
        return fwd_tid
    threads = _counted_threads(host, flows)
    last = {int(s): int(t) for s, t in zip(seq[forward].tolist(), tid[forward].tolist(), strict=True)}
    for row, number, own, sequence in zip(
        rows.tolist(), fwd[rows].tolist(), tid[rows].tolist(), seq[rows].tolist(), strict=True
    ):
        fwd_tid[row] = threads.get(number, last.get(sequence, own))
    return fwd_tid


def _counted_threads(host: Columns, flows: Columns) -> dict[int, int]:
    """The lane of each forward thread's number that a flow leads to."""
    begins = flows["begins"]
    lane_of_flow = dict(zip(flows["flow"][begins].tolist(), flows["tid"][begins].tolist(), strict=True))
    backward = np.flatnonzero(host["fwd"] > 0)
    number_at = dict(
        zip(
            zip(host["tid"][backward].tolist(), host["start"][backward].tolist(), strict=True),
            host["fwd"][backward].tolist(),
            strict=True,
        )
    )
    lanes: dict[int, int] = {}
    for flow, tid, time in zip(
        flows["flow"][~begins].tolist(), flows["tid"][~begins].tolist(), flows["time"][~begins].tolist(), strict=True
    ):
        number, lane = number_at.get((tid, time)), lane_of_flow.get(flow)
        if number is not None and lane is not None:
            lanes.setdefault(number, lane)
    return lanes


def launches(device: Columns, host: Columns, flows: Columns) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Thread and time of the host call that launched each device row, -1 where that is not known.

    `flows` lead from ops to device rows whose external id is theirs: where ops are handed to another thread that calls the
    runtime, only they tell. Else it is the call of the runtime with its correlation number. Without one (traces of graphs and
    of ranges on a device), or where it is on another thread, it is the op or range with its external id.
    """
    tid = np.full(len(device["start"]), -1, np.int32)
    time = np.full(len(device["start"]), -1, np.int64)
    if len(flows["flow"]):
        order = np.argsort(flows["flow"], kind="stable")
        numbers = flows["flow"][order]
        at = np.minimum(np.searchsorted(numbers, device["external"]), len(order) - 1)
        known = np.flatnonzero((numbers[at] == device["external"]) & (device["external"] >= 0))
        tid[known], time[known] = flows["tid"][order[at[known]]], flows["time"][order[at[known]]]
    calls = host["kind"] == observer.RUNTIME
    called = np.zeros(len(tid), bool)
    for key, chosen in (("correlation", calls), ("external", ~calls)):
        rows = np.flatnonzero(chosen & (host[key] >= 0))
        if not len(rows):
            continue
        rows = rows[np.argsort(host[key][rows], kind="stable")]
        numbers = host[key][rows]
        at = np.minimum(np.searchsorted(numbers, device[key]), len(rows) - 1)
        found = (numbers[at] == device[key]) & (device[key] >= 0)
        elsewhere = called & (host["tid"][rows[at]] != tid)
        known = np.flatnonzero(found & ((time < 0) | elsewhere))
        if key == "correlation":
            called[known] = True
        tid[known], time[known] = host["tid"][rows[at[known]]], host["start"][rows[at[known]]]
    return tid, time


def module_paths(
    host: Columns, python: Columns, names: list[str], modules: dict[str, int], recovery: Recovery
) -> NDArray[np.int32]:
    """For each host row a number into `modules`, which grows: the modules whose calls enclose it, outermost first.

    A trace has the calls of modules, numbered within their class, and not their attribute names: `Net_0.Linear_1`.
    """
    paths = host["module"].astype(np.int32)
    calls = np.flatnonzero(python["kind"] == observer.MODULE)
    missing = np.flatnonzero(paths < 0)
    if not len(calls) or not len(missing):
        return paths
    order = calls[len(calls) - 1 - tree.row_order(python["start"][calls][::-1], python["end"][calls][::-1])]
    tid, start, end, name = (python[column][order] for column in ("tid", "start", "end", "name"))
    parent = tree.parents(tid, start, end)
    number = np.full(len(order) + 1, -1, np.int32)
    texts: list[str] = []
    cut = False
    for row, (above, which) in enumerate(zip(parent.tolist(), name.tolist(), strict=True)):
        label = names[which].removeprefix(_MODULE_PREFIX).replace(".", "_")
        path = f"{texts[above]}.{label}" if above >= 0 else label
        if len(path) > _MOST_PATH:
            path, cut = texts[above], True
        texts.append(path)
        number[row] = modules.setdefault(path, len(modules))
    if cut:
        recovery.note(f"paths of modules of more than {_MOST_PATH} characters are cut")
    paths[missing] = number[tree.enclosing(tid, start, end, parent, host["tid"][missing], host["start"][missing])]
    return paths
