"""The stacks of `with_stack="sampled"` as texts, and the rows that have one."""

from __future__ import annotations

from types import CodeType

import numpy as np
from numpy.typing import NDArray

from ..recording.stack_samples import WIDTH, StackSamples
from ..store.store import EventStore
from .python_rows import LineNumbers, Shortener, target_of


def describe(store: EventStore, per_second: float) -> str:
    """How many ops have a stack, for people."""
    is_op = store.op >= 0
    with_stack, ops = int((store.stack[is_op] >= 0).sum()), int(is_op.sum())
    return f"stacks of {with_stack} of {ops} ops, sampled at most {per_second:g} times a second"


def stack_column(samples: StackSamples, op: NDArray[np.int32], start: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the number of its stack in `samples.stacks`, -1 for rows of which none was taken."""
    numbers = np.full(len(start), -1, np.int64)
    sampled = np.fromiter(samples.rows[:], np.int64).reshape(-1, WIDTH)
    known = {(of, began): number for of, began, number in sampled.tolist()}
    for row in np.flatnonzero(np.isin(start, sampled[:, 1])).tolist():
        numbers[row] = known.get((int(op[row]), int(start[row])), -1)
    return numbers


def stack_texts(samples: StackSamples) -> list[tuple[str, ...]]:
    """Each stack as `file(line): function`, innermost frame first, without this runtime's inside."""
    shorten, lines = Shortener(), LineNumbers()
    return [_texts(stack, shorten, lines) for stack in list(samples.stacks)]


def _texts(stack: tuple[tuple[CodeType, int], ...], shorten: Shortener, lines: LineNumbers) -> tuple[str, ...]:
    texts: list[str] = []
    hidden = False
    for code, place in reversed(stack):
        target = target_of(code, shorten)
        hidden = target.inside or (target.library and hidden)
        if not hidden:
            texts.append(f"{target.file}({lines(code, place)}): {code.co_name}")
    return tuple(reversed(texts))
