"""What a trace leaves to its reader: the Python stack of an op, the thread of its forward op, the launch of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..._dispatch import observer
from ..store import tree
from ._nested import call_paths
from ._recovery import Recovery

Columns = dict[str, NDArray[Any]]

# Frames of all stacks together: what is beyond makes stacks shorter, not memory larger.
_MOST_FRAMES = 1 << 24
_MOST_DEPTH = 1024
_LEFT_OUT = (("autograd/__init__", "_make_grads"), ("autograd/__init__", "backward"), ("torch/tensor", "backward"))


def python_stacks(
    host: Columns, python: Columns, names: list[str], written: list[str], recovery: Recovery
) -> tuple[NDArray[np.int32], NDArray[np.int32], list[tuple[str, ...]]]:
    """For each host row and each Python row a number into the stacks, and the stacks, innermost frame first.

    A stack is written with the event, or it is the Python functions that were running when it began. Python
    functions themselves have stacks where events have written ones: that is when PyTorch gives them any.
    """
    found = host["stack"].astype(np.int32)
    own = np.full(len(python["start"]), -1, np.int32)
    stacks = [_written(text) for text in written]
    silent = np.flatnonzero(found < 0)
    if not len(own):
        return found, own, stacks
    # Of equal times the first in the file is the outer one: _tree wants that one last.
    order = len(own) - 1 - tree.row_order(python["start"][::-1], python["end"][::-1])
    tid, start, end, name = (python[column][order] for column in ("tid", "start", "end", "name"))
    parent = tree.parents(tid, start, end)
    call = tree.enclosing(tid, start, end, parent, host["tid"][silent], host["start"][silent])
    if written:
        call = np.concatenate([call, parent])
    path = np.append(call_paths(parent, name)[0], -1)
    used, first, which = np.unique(path[call], return_index=True, return_inverse=True)
    depth = min(_MOST_DEPTH, max(8, _MOST_FRAMES // max(len(used), 1)))
    if int(tree.depths(parent).max()) >= depth:
        recovery.note(f"stacks of more than {depth} frames are cut")
    numbers = np.full(len(used), -1, np.int32)
    above, frame = parent.tolist(), name.tolist()
    for place, row in enumerate(call[first].tolist()):
        if row >= 0:
            numbers[place] = len(stacks)
            stacks.append(_frames(row, above, frame, names, depth))
    found[silent] = numbers[which[: len(silent)]]
    if written:
        own[order] = numbers[which[len(silent) :]]
    return found, own, stacks


def _written(text: str) -> tuple[str, ...]:
    """A stack, innermost first, from its text: so it is when every frame ends in a semicolon, else root first."""
    frames = text.split(";")
    ordered = frames[:-1] if text.endswith(";") else reversed(frames)
    return tuple(frame for frame in ordered if not _is_left_out(frame))


def _is_left_out(frame: str) -> bool:
    """Whether PyTorch leaves a frame out of its stacks: the entries of its own backward()."""
    return any(file in frame and function in frame for file, function in _LEFT_OUT)


def _frames(row: int, above: list[int], frame: list[int], names: list[str], depth: int) -> tuple[str, ...]:
    made: list[str] = []
    while row >= 0 and len(made) < depth:
        if not _is_left_out(text := names[frame[row]]):
            made.append(text)
        row = above[row]
    return tuple(made)


def forward_threads(host: Columns, flows: Columns) -> NDArray[np.int32]:
    """fwd_tid of backward rows. A trace counts forward threads from 1; the arrows between ops tell which are meant."""
    kind, tid, seq, fwd = host["kind"], host["tid"], host["seq"], host["fwd"]
    found = np.full(len(kind), -1, np.int32)
    rows = np.flatnonzero((fwd > 0) & np.isin(kind, (observer.BACKWARD, observer.ENGINE)) & (seq >= 0))
    if not len(rows):
        return found
    forward = np.flatnonzero((kind == observer.OP) & (seq >= 0))
    if len(np.unique(tid[forward])) <= 1:
        found[rows] = tid[forward[0]] if len(forward) else tid[rows]
        return found
    threads = _counted_threads(host, flows)
    last = {int(s): int(t) for s, t in zip(seq[forward].tolist(), tid[forward].tolist(), strict=True)}
    for row, number, own, sequence in zip(
        rows.tolist(), fwd[rows].tolist(), tid[rows].tolist(), seq[rows].tolist(), strict=True
    ):
        found[row] = threads.get(number, last.get(sequence, own))
    return found


def _counted_threads(host: Columns, flows: Columns) -> dict[int, int]:
    """Lane by the number that a trace has for a forward thread, where an arrow tells."""
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
    meant: dict[int, int] = {}
    for flow, tid, time in zip(
        flows["flow"][~begins].tolist(), flows["tid"][~begins].tolist(), flows["time"][~begins].tolist(), strict=True
    ):
        number, lane = number_at.get((tid, time)), lane_of_flow.get(flow)
        if number is not None and lane is not None:
            meant.setdefault(number, lane)
    return meant


def launches(device: Columns, host: Columns) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Thread and time of the host's call that each device row was launched by, -1 where no call has its number."""
    tid = np.full(len(device["start"]), -1, np.int32)
    time = np.full(len(device["start"]), -1, np.int64)
    calls = np.flatnonzero((host["kind"] == observer.RUNTIME) & (host["correlation"] >= 0))
    if len(calls):
        calls = calls[np.argsort(host["correlation"][calls], kind="stable")]
        numbers = host["correlation"][calls]
        at = np.minimum(np.searchsorted(numbers, device["correlation"]), len(calls) - 1)
        known = np.flatnonzero((numbers[at] == device["correlation"]) & (device["correlation"] >= 0))
        tid[known], time[known] = host["tid"][calls[at[known]]], host["start"][calls[at[known]]]
    return tid, time
