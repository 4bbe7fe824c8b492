"""The caching allocator: blocks, pools per stream, figures, and what happens when the device is full."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mindtorch_v2._backends.errors import OutOfMemoryError
from mindtorch_v2._backends.npu import allocator, launch, memory, streams
from mindtorch_v2._dispatch import observer

KB, MB = 1 << 10, 1 << 20


@pytest.fixture
def fresh(npu: Any) -> Iterator[allocator.Allocator]:
    """An allocator of its own on device 0, whose segments are gone afterwards."""
    streams.default_stream(0)
    made = allocator.Allocator(0)
    yield made
    made.empty_cache()
    assert made.statistics().reserved == 0


def figures(of: allocator.Allocator) -> tuple[int, int]:
    statistics = of.statistics()
    return statistics.allocated, statistics.reserved


def test_sizes_are_rounded_and_small_blocks_share_a_segment(fresh: allocator.Allocator) -> None:
    stream = streams.default_stream(0)
    a, b, c = fresh.allocate(1, stream), fresh.allocate(513, stream), fresh.allocate(0, stream)
    assert [block.size for block in (a, b, c)] == [512, 1024, 512]
    assert [block.nbytes for block in (a, b, c)] == [1, 513, 0]
    assert (b.address - a.address, c.address - b.address) == (512, 1024)
    assert figures(fresh) == (2048, 2 * MB)


@pytest.mark.parametrize(
    ("request_size", "reserved"), [(MB, 2 * MB), (MB + 1, 20 * MB), (10 * MB, 10 * MB), (11 * MB - 1, 12 * MB)]
)
def test_segments(fresh: allocator.Allocator, request_size: int, reserved: int) -> None:
    block = fresh.allocate(request_size, streams.default_stream(0))
    assert figures(fresh) == (block.size, reserved)


def test_a_block_comes_back_and_is_used_again(fresh: allocator.Allocator, counter: Any) -> None:
    stream = streams.default_stream(0)
    block = fresh.allocate(3000, stream)
    address, segments = block.address, counter("blocks")
    del block
    assert figures(fresh) == (0, 2 * MB)
    block = fresh.allocate(3000, stream)
    assert (block.address, counter("blocks")) == (address, segments)


def test_free_neighbours_join(fresh: allocator.Allocator) -> None:
    stream = streams.default_stream(0)
    blocks = [fresh.allocate(512 * KB, stream) for _ in range(4)]
    assert figures(fresh) == (2 * MB, 2 * MB)
    first = blocks[0].address
    del blocks[1], blocks[1]  # the second and third
    middle = fresh.allocate(MB, stream)
    assert (middle.address, figures(fresh)) == (first + 512 * KB, (2 * MB, 2 * MB))
    del middle, blocks
    whole = fresh.allocate(MB, stream)
    assert (whole.address, figures(fresh)) == (first, (MB, 2 * MB))


def test_each_stream_has_its_own_blocks(fresh: allocator.Allocator) -> None:
    one, other = streams.default_stream(0), streams.Stream(0)
    block = fresh.allocate(512, one)
    address = block.address
    del block
    assert fresh.allocate(512, other).address != address


def test_peaks(fresh: allocator.Allocator) -> None:
    stream = streams.default_stream(0)
    blocks = [fresh.allocate(512, stream) for _ in range(4)]
    del blocks[1:]
    statistics = fresh.statistics()
    assert (statistics.allocated, statistics.peak_allocated, statistics.peak_reserved) == (512, 2048, 2 * MB)
    statistics.reset_peaks()
    assert (statistics.peak_allocated, statistics.peak_reserved) == (512, 2 * MB)


def test_empty_cache_keeps_segments_in_use(fresh: allocator.Allocator, counter: Any) -> None:
    stream = streams.default_stream(0)
    small, large = fresh.allocate(512, stream), fresh.allocate(30 * MB, stream)
    before = counter("bytes")
    del large
    fresh.empty_cache()
    assert counter("bytes") == before - 30 * MB
    assert figures(fresh) == (small.size, 2 * MB)


def test_a_block_that_another_stream_uses_waits_for_it(npu: Any, on_device: Any) -> None:
    main, side = streams.default_stream(0), streams.Stream(0)
    own = allocator.Allocator(0)
    a = on_device(np.ones((400, 400), "f4"))
    out = memory.empty((400, 400), np.dtype("f4"))
    main.synchronize()
    block = own.allocate(512, main)
    address = block.address
    for _ in range(20):
        launch.launch("Mm", a, a, out, 0, stream=side)
    block.record_stream(side)
    busy = not side.query()
    del block
    again = own.allocate(512, main)
    assert not busy or again.address != address
    side.synchronize()
    del again
    assert own.allocate(512, main).address == address
    own.empty_cache()


def test_blocks_may_end_in_any_thread(fresh: allocator.Allocator) -> None:
    stream = streams.default_stream(0)
    blocks = [fresh.allocate(512, stream) for _ in range(100)]
    thread = threading.Thread(target=blocks.clear)
    thread.start()
    thread.join()
    assert figures(fresh) == (0, 2 * MB)


def test_changes_are_told(fresh: allocator.Allocator, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[int, int]] = []
    listener = SimpleNamespace(memory_changed=lambda block, change: told.append((block.nbytes, change)))
    monkeypatch.setattr(observer.listeners, "device", listener)
    block = fresh.allocate(700, streams.default_stream(0))
    del block
    assert told == [(700, 1024), (700, -1024)]


def test_a_finaliser_may_ask_for_the_figures(fresh: allocator.Allocator) -> None:
    with fresh._lock:  # as in the midst of an allocation of this thread
        assert fresh.statistics().allocated == 0


def test_arrays_own_their_block(npu: Any) -> None:
    before = allocator.allocator_of(0).statistics().allocated
    array = memory.empty((3, 4), np.dtype("f4"))
    view = array.T[1:].reshape(-1, 3)[::2]
    block = memory.block_of(view)
    assert block.nbytes == 48 and memory.block_of(array) is block
    assert view.__array_interface__["data"][0] == block.address + 4
    with pytest.raises(TypeError, match="not in NPU memory"):
        memory.block_of(np.ones(3))
    del array, block
    assert allocator.allocator_of(0).statistics().allocated == before + 512  # the view still holds it
    del view
    assert allocator.allocator_of(0).statistics().allocated == before


def test_a_full_device_gives_its_cache_back_and_tries_again(in_process: Any) -> None:
    shown = in_process(
        """
        kept = ones(1024)
        big = memory.empty((24 << 20,), np.dtype("u1"))
        del big
        again = memory.empty((30 << 20,), np.dtype("u1"))
        statistics = allocator.allocator_of(0).statistics()
        print(statistics.retries, statistics.ooms, counter("blocks"), statistics.reserved == counter("bytes"))
    """,
        ASCEND_SIM_FAULT=f"oom:{40 * MB}",
    )
    assert shown.stdout.strip() == "1 0 2 True", shown.stderr


def test_out_of_memory_says_how_much(in_process: Any) -> None:
    shown = in_process(
        """
        kept = memory.empty((30 << 20,), np.dtype("u1"))
        try:
            memory.empty((20 << 20,), np.dtype("u1"))
        except OutOfMemoryError as error:
            print(error)
        del kept
        print(memory.empty((20 << 20,), np.dtype("u1")).shape)
    """,
        ASCEND_SIM_FAULT=f"oom:{40 * MB}",
    )
    message, shape = shown.stdout.splitlines()
    assert message == (
        "NPU out of memory. Tried to allocate 20.00 MiB. NPU 0 has a total capacity of 40.00 MiB of which "
        "10.00 MiB is free. 30.00 MiB is allocated, and 0 bytes is reserved but unallocated."
    )
    assert shape == "(20971520,)"
    assert issubclass(OutOfMemoryError, RuntimeError) and OutOfMemoryError.__module__ == "torch"
