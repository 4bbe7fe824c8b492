"""Blocks of a convolution: what one thread works on at a time, in few long calls of NumPy."""

from __future__ import annotations

from typing import NamedTuple

# The work is split into so many blocks, but their columns have no fewer and no more elements than these: 1 to 4 MB of float32.
# Few long calls of NumPy are what threads can share; smaller blocks, though they fit into a core's cache, take longer.
_BLOCKS = 4
_SMALLEST = 1 << 18
_LARGEST = 1 << 20


class Block(NamedTuple):
    """What is worked on together: some groups of some samples, and of their output some rows (of the first spatial dim)."""

    groups: slice
    samples: slice
    rows: slice

    def channels(self, per_group: int) -> slice:
        """The channels of its groups."""
        return slice(self.groups.start * per_group, self.groups.stop * per_group)


def slices_of(count: int, step: int) -> list[slice]:
    """Slices of up to `step` that together are `slice(0, count)`."""
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def blocks_of(batch: int, groups: int, rows: int, row_elements: int) -> list[Block]:
    """Blocks of nearly equal size; `row_elements` is the size of the columns of a row of a group of one sample."""
    whole = max(rows * row_elements, 1)
    size = min(_LARGEST, max(_SMALLEST, -(-batch * groups * whole // _BLOCKS)))
    pairs = max(1, size // whole)
    # Samples first: they make the rows of a product longer.
    samples = min(batch, pairs)
    group_count = max(1, min(groups, pairs // samples))
    row_step = -(-rows // max(1, round(whole / size)))
    return [
        Block(group, some, part)
        for group in slices_of(groups, group_count)
        for some in slices_of(batch, samples)
        for part in slices_of(rows, row_step)
    ]
