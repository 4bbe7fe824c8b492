"""A graph for gradients is recorded and never differentiated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store import tree
from ...store.store import EventStore
from ..findings import Finding, duration
from ..source.places import places
from ..steps import step_of, steps
from ._evidence import Rows, top_names, undisturbed_self_ns

_FEWEST = 20
_LEAST = 0.05
_REPEATS = 3
_CANDIDATES = 64  # of periods: the first so many places where the first op comes up again


def rule(store: EventStore) -> list[Finding]:
    """Fires when ops leave nodes in a graph, pass after pass, and no backward of the recording uses them.

    Of a single pass nothing is said: its backward may have come after the recording.
    """
    backward = store.kind == observer.BACKWARD
    if not backward.any() and any("Backward" in name for name in store.names):
        return []  # a trace that has no numbers to join them with
    left = _nodes_left(store)
    rows = left[~np.isin(store.seq[left], store.seq[backward])]
    # What follows the last backward may have its own after the recording, unless it is many passes.
    at = step_of(store, steps(store))
    spent = int(undisturbed_self_ns(store, rows).sum())
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    if len(rows) < _FEWEST or spent < _LEAST * int(undisturbed_self_ns(store, ops).sum()):
        return []
    if len(np.unique(at[rows])) < 2 and not _is_repeated_pass(store, rows):
        return []
    seen = places(store, rows)
    return [
        Finding(
            "unused_graph",
            "Gradients could be computed here, but never are",
            "These ops noted how to differentiate them and kept their inputs alive, and no backward() followed. Evaluation "
            "under torch.no_grad() or torch.inference_mode() needs less memory and time.",
            (
                f"{len(rows):,} ops, {duration(spent)}",
                *(f"{name}: {count:,} calls" for name, count, _ in top_names(store, rows, 3)),
            ),
            seen[0][0] if seen else None,
        )
    ]


def _nodes_left(store: EventStore) -> Rows:
    """The innermost ops that left a node in the graph.

    An op's sequence number is the one that the next node of its thread gets, whether or not the op leaves one: it did if the
    number had grown when the next op began.
    """
    found = []
    ops = np.flatnonzero((store.kind == observer.OP) & (store.seq >= 0) & (store.device_type == 0))
    for thread in np.unique(store.tid[ops]).tolist():
        rows = ops[store.tid[ops] == thread]
        following = np.searchsorted(store.start[rows], store.end[rows], side="left")
        known = following < len(rows)
        grown = np.zeros(len(rows), np.bool_)
        grown[known] = store.seq[rows[following[known]]] > store.seq[rows[known]]
        found.append(rows[grown])
    left = np.concatenate(found) if found else np.empty(0, np.intp)
    around = np.zeros(len(store) + 1, np.bool_)
    around[store.parent[left]] = True  # of a composite op the ops below it are named
    chosen: Rows = left[~around[left]]
    return chosen


def _is_repeated_pass(store: EventStore, rows: Rows) -> bool:
    """Whether the ops that the program called are one sequence over and over, in which some op leaves no node.

    Equal layers of one pass are such a sequence, too, but all of them leave nodes; a pass begins with its input and ends
    with what is made of the result.
    """
    ops = np.flatnonzero((store.kind == observer.OP) & (store.device_type == 0))
    called = ops[(store.parent[ops] < 0) | (store.kind[store.parent[ops]] != observer.OP)]
    called = called[(called >= rows.min()) & (called <= rows.max())]
    left = np.zeros(len(store), np.bool_)
    left[rows] = True
    within = tree.subtree_sums(store.parent, left.astype(np.int64))[called] > 0
    period = _period(store.label[called])
    return period > 0 and not within[:period].all()


def _period(labels: NDArray[np.integer]) -> int:
    """The length of the sequence that this one repeats several times; 0 if it does not."""
    again: list[int] = np.flatnonzero(labels == labels[0])[1 : _CANDIDATES + 1].tolist()
    for period in again:
        if _REPEATS * period > len(labels):
            return 0
        if np.array_equal(labels[period:], labels[:-period]):
            return period
    return 0
