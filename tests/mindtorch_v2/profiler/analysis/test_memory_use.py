"""What was in use at the start, at the peak and at the end, and who held it, with what was there before the recording."""

from __future__ import annotations

import numpy as np
import pytest

from mindtorch_v2.profiler.analysis.memory.categories import CATEGORIES, UNKNOWN, Uses, uses
from mindtorch_v2.profiler.analysis.memory.use import EARLIER, Holder, memory_use
from mindtorch_v2.profiler.store.memory_profile import MemoryBlocks, StorageNotes
from mindtorch_v2.profiler.store.store import EventStore

PARAMETER = CATEGORIES.index("PARAMETER")
OP = {"name": "aten::add", "start": 0, "end": 100}


def recording(*changes: tuple[int, int, int], **fields: object) -> EventStore:
    """An op during which memory changed: (time, bytes, address)."""
    return EventStore.from_rows([OP], [{"time": t, "bytes": size, "addr": at, **fields} for t, size, at in changes])


def test_what_was_there_before_is_in_use():
    store = recording((10, 500, 1), (20, -300, 2), (30, 700, 3), (40, -500, 1))
    known = Uses(np.full(4, UNKNOWN), [300, 1000], [UNKNOWN, PARAMETER], [1, -1])
    (use,) = memory_use(store, known)
    assert (use.before, use.before_known, use.peak, use.peak_before, use.left) == (1300, True, 2200, 1000, 1700)
    assert use.peak_ns == 30
    assert use.holders == [Holder("aten::add", None, 2, 1200), Holder(EARLIER, None, 1, 1000)]
    assert use.categories == {"UNKNOWN": 1200, "PARAMETER": 1000}


def test_of_what_nobody_noted_as_much_is_known_as_was_freed():
    (use,) = memory_use(recording((10, 500, 1), (20, -600, 2), (30, 50, 3)))
    assert (use.before, use.before_known, use.peak, use.peak_before, use.left) == (100, False, 600, 100, 50)
    assert use.holders == [Holder("aten::add", None, 1, 500), Holder(EARLIER, None, 0, 100)]
    assert use.categories == {}


def test_the_most_may_have_been_in_use_at_the_start():
    (use,) = memory_use(recording((10, -600, 2), (20, 50, 3)))
    assert (use.peak, use.peak_before, use.peak_ns, use.holders) == (600, 600, 0, [Holder(EARLIER, None, 0, 600)])


def test_blocks_that_share_an_address_count_as_often_as_in_the_total():
    (use,) = memory_use(recording((10, 500, 1), (20, 500, 1), (30, -500, 1), (40, 100, 2)))
    assert use.peak == 1000 == sum(holder.bytes for holder in use.holders)
    assert use.peak_before == 0


@pytest.mark.parametrize("device", [0, 1])
def test_a_device_has_no_part_in_what_the_cpu_had_before(device):
    store = recording((10, 500, 1), (20, -300, 2), device_type=device, device_index=-1 if device == 0 else 0)
    notes = StorageNotes(np.array([[5, 9, 64, 0]]), frozenset())
    categories = uses(store, MemoryBlocks(store, notes))
    assert categories.before_bytes == ([64, 300] if device == 0 else [64])
    (use,) = memory_use(store, categories)
    assert use.before_known == (device == 0) and bool(use.categories) == (device == 0)
