"""Streams and events: order, overlap, waiting, times, and copies that outlive their callers' variables."""

from __future__ import annotations

import gc
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mindtorch_v2._backends.npu import devices, errors, events, launch, memory, streams
from mindtorch_v2._dispatch import observer


class Work:
    """Something to do for a stream. (A plain device array would be printed when a test fails, which ends the process.)"""

    def __init__(self, a: np.ndarray) -> None:
        self._a, self._out = a, memory.empty(a.shape, a.dtype)

    def queue(self, times: int) -> None:
        for _ in range(times):
            launch.launch("Mm", self._a, self._a, self._out, 0)


@pytest.fixture
def work(on_device: Any) -> Work:
    """Products of matrices that take the device a while."""
    return Work(on_device(np.full((256, 256), 1 / 256, "f4")))


def test_streams_come_from_a_pool(npu: Any) -> None:
    made = [streams.Stream(0) for _ in range(33)]
    assert any(made[32] is stream for stream in made[:32])
    assert len({stream.handle for stream in made}) == 32
    assert len({stream.number for stream in made}) == 32


def test_the_current_stream_is_the_threads(npu: Any) -> None:
    default = streams.default_stream(0)
    assert streams.current_stream(0) is default
    other = streams.Stream(0)
    streams.set_current_stream(other)
    try:
        seen: list[Any] = []
        thread = threading.Thread(target=lambda: seen.append(streams.current_stream(0)))
        thread.start()
        thread.join()
        assert streams.current_stream(0) is other and seen == [default]
    finally:
        streams.set_current_stream(default)


def test_launching_does_not_wait(in_process: Any) -> None:
    shown = in_process(
        """
        a, stream, mark = ones(4), streams.default_stream(0), events.Event()
        stream.synchronize()
        print(stream.query(), mark.query())  # nothing to do, nothing recorded
        for _ in range(5):
            launch.launch("InplaceAdds", a, 1, 1)
        mark.record()
        print(stream.query(), mark.query())
        mark.synchronize()
        stream.synchronize()  # the mark is passed a moment before the stream is idle
        print(stream.query(), mark.query())
    """,
        ASCEND_SIM_DELAY_US="100000",
    )
    assert shown.stdout.splitlines() == ["True True", "False False", "True True"], shown.stderr


def test_work_of_one_stream_is_in_order(npu: Any, on_device: Any, on_host: Any) -> None:
    a = on_device(np.ones(1000, "f4"))
    for _ in range(10):
        launch.launch("InplaceMuls", a, 2)
        launch.launch("InplaceAdds", a, 1, 1)
    np.testing.assert_array_equal(on_host(a), np.full(1000, 2047, "f4"))


def test_streams_overlap_and_events_measure(in_process: Any) -> None:
    shown = in_process(
        """
        one, other = streams.default_stream(0), streams.Stream(0)
        a, b = ones(4), ones(4)
        streams.synchronize(0)
        marks = []
        for stream, array in ((one, a), (other, b)):
            start, end = events.Event(enable_timing=True), events.Event(enable_timing=True)
            start.record(stream)
            for _ in range(3):
                launch.launch("InplaceAdds", array, 1, 1, stream=stream)
            end.record(stream)
            marks.append((start, end))
        streams.synchronize(0)
        (a0, a1), (b0, b1) = [(s.timestamp_ns(), e.timestamp_ns()) for s, e in marks]
        elapsed = marks[0][0].elapsed_time(marks[0][1])
        print(a0 < b1 and b0 < a1, min(a1 - a0, b1 - b0) >= 60e6, abs(elapsed - (a1 - a0) / 1e6) < 0.01)
    """,
        ASCEND_SIM_DELAY_US="20000",
    )
    assert shown.stdout.strip() == "True True True", shown.stderr


def test_a_stream_waits_for_an_event_of_another(in_process: Any) -> None:
    shown = in_process(
        """
        one, other = streams.default_stream(0), streams.Stream(0)
        a, b = ones(4), ones(4)
        streams.synchronize(0)
        launch.launch("InplaceAdds", a, 1, 1, stream=one)
        other.wait_stream(one)
        launch.launch("InplaceAdd", b, a, 1, stream=other)
        other.synchronize()
        print(values(b))
    """,
        ASCEND_SIM_DELAY_US="20000",
    )
    assert shown.stdout.strip() == "[3. 3. 3. 3.]", shown.stderr


def test_times_need_timing(npu: Any) -> None:
    plain, timed = events.Event(), events.Event(enable_timing=True)
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.elapsed_time(timed)
    with pytest.raises(ValueError, match="must be recorded"):
        timed.elapsed_time(events.Event(enable_timing=True))
    with pytest.raises(ValueError, match="enable_timing=True"):
        plain.timestamp_ns()


def test_events_that_only_the_host_waits_for(npu: Any) -> None:
    event = events.Event(enable_timing=True, waitable=False)
    event.record()
    event.synchronize()
    assert event.timestamp_ns() > 0
    with pytest.raises(errors.NPUError, match="aclrtStreamWaitEvent"):
        streams.Stream(0).wait_event(event)


def test_device_time_on_the_hosts_clock(npu: Any, work: Work) -> None:
    stream = streams.default_stream(0)
    offset = events.host_offset_ns(time.perf_counter_ns, stream)
    before = time.perf_counter_ns()
    start, end = events.Event(enable_timing=True), events.Event(enable_timing=True)
    start.record()
    work.queue(1)
    end.record()
    end.synchronize()
    after = time.perf_counter_ns()
    slack = 20_000_000  # half of the window in which the offset was found may be as much on a busy machine
    assert before - slack <= start.timestamp_ns() + offset <= end.timestamp_ns() + offset <= after + slack


@pytest.mark.parametrize("brackets, offset", [([(0, 9000), (4000, 30000)], 6000), ([(0, 2000), (90000, 92000)], 90500)])
def test_the_offset_lies_where_the_brackets_overlap(monkeypatch, brackets, offset) -> None:
    """Each is when the host began and when it saw the mark, which the device passed at 0; the newest if they contradict."""
    readings = iter([time for bracket in brackets for time in bracket])
    mark = SimpleNamespace(record=lambda stream: None, query=lambda: True, timestamp_ns=lambda: 0)
    monkeypatch.setattr(events, "Event", lambda **options: mark)
    stream = SimpleNamespace(synchronize=lambda: None)
    assert events.host_offset_ns(lambda: next(readings), stream, tries=len(brackets)) == offset


def test_events_are_used_again(npu: Any, counter: Any) -> None:
    def once() -> None:
        event = events.Event()
        event.record()
        event.synchronize()

    once()
    before = counter("events")
    for _ in range(5):
        once()
    assert counter("events") == before


def test_a_copy_takes_the_values_of_pageable_memory_at_once(npu: Any, work: Work, on_host: Any) -> None:
    work.queue(10)  # the copy has to wait behind these
    source = np.arange(8, dtype="f4")
    target = memory.empty((8,), source.dtype)
    memory.to_device(target, source)
    source[:] = -1
    np.testing.assert_array_equal(on_host(target), np.arange(8))


def test_the_source_of_a_copy_stays_alive(npu: Any, work: Work, on_host: Any) -> None:
    work.queue(10)
    source = memory.pinned_empty((1000,), np.dtype("f4"))
    source[:] = 5
    target = memory.empty((1000,), source.dtype)
    memory.to_device(target, source)
    del source
    gc.collect()
    memory.pinned_empty((1000,), np.dtype("f4"))[:] = 6  # would be the same memory if it had been let go
    np.testing.assert_array_equal(on_host(target), np.full(1000, 5))


def test_pinned_arrays_are_copied_to_directly(npu: Any, on_device: Any) -> None:
    device = on_device(np.arange(6, dtype="f4").reshape(2, 3))
    target = memory.pinned_empty((2, 3), np.dtype("f4"))
    assert memory.is_pinned(target) and memory.is_pinned(target[1:]) and not memory.is_pinned(np.ones(2))
    memory.to_host(target, device, non_blocking=True)
    streams.default_stream(0).synchronize()
    np.testing.assert_array_equal(target, np.arange(6).reshape(2, 3))


def test_empty_arrays_and_fills(npu: Any, on_device: Any, on_host: Any) -> None:
    assert on_host(on_device(np.empty((0, 3), "f4"))).shape == (0, 3)
    device = on_device(np.ones(100, "i4"))
    memory.fill_bytes(device, 1)
    np.testing.assert_array_equal(on_host(device), np.full(100, 0x01010101))


@pytest.mark.parametrize(("host", "message"), [(np.ones(4, "f8"), "float32.*float64"), (np.ones(5, "f4"), r"\(4,\).*\(5,\)")])
def test_copies_do_not_convert(on_device: Any, host: np.ndarray, message: str) -> None:
    device = on_device(np.ones(4, "f4"))
    with pytest.raises(ValueError, match=message):
        memory.to_device(device, host)
    with pytest.raises(ValueError, match=message):
        memory.to_host(host, device)
    with pytest.raises(ValueError, match="contiguous"):
        memory.to_host(np.ones(2, "f4"), device[::2])


def test_a_device_listener_sees_what_enters_a_stream(npu: Any, on_device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Listener:
        def launch_started(self, kind: str, name: str, stream: Any, nbytes: int) -> int:
            seen.append((kind, name, stream.number == streams.default_stream(0).number, nbytes))
            return len(seen)

        def launch_ended(self, started: int) -> None:
            seen.append(started)

        def memory_changed(self, block: Any, change: int) -> None:
            pass

    monkeypatch.setattr(observer.listeners, "device", Listener())
    a = on_device(np.ones(4, "f4"))
    launch.launch("InplaceMuls", a, 2)
    memory.to_host(np.empty(4, "f4"), a)
    memory.fill_bytes(a, 0)
    assert seen == [
        ("copy", "HtoD", True, 16),
        1,
        ("kernel", "InplaceMuls", True, 0),
        3,
        ("copy", "DtoH", True, 16),
        5,
        ("fill", "Memset", True, 16),
        7,
    ]


def test_two_devices(in_process: Any) -> None:
    shown = in_process("""
        devices.set_device(1)
        a = ones(3)
        launch.launch("InplaceMuls", a, 4)
        print(values(a), memory.block_of(a).device_index, streams.current_stream().device_index)
        mark = events.Event()
        mark.record()
        try:
            mark.record(streams.default_stream(0))
        except RuntimeError as error:
            print(error)
        print(allocator.allocator_of(0).statistics().allocated, allocator.allocator_of(1).statistics().allocated)
    """)
    assert shown.stdout.splitlines() == [
        "[4. 4. 4.] 1 1",
        "Event device index 1 does not match recording stream's device index 0.",
        "0 512",
    ], shown.stderr


def test_threads_with_streams_of_their_own(npu: Any, on_device: Any, counter: Any) -> None:
    results: list[float] = []

    def work(stream: Any) -> None:
        streams.set_current_stream(stream)
        total = on_device(np.zeros(64, "f4"))
        for i in range(100):
            part = memory.empty((64,), np.dtype("f4"))
            launch.launch("InplaceFillScalar", part, i)
            launch.launch("InplaceAdd", total, part, 1)
        host = np.empty(64, "f4")
        memory.to_host(host, total)
        results.append(float(host.sum()))

    threads = [threading.Thread(target=work, args=(streams.Stream(0),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [64 * 4950.0] * 4
    assert (counter("descriptors"), counter("executors")) == (0, 0)


def test_timeout_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, expected in ((None, 600_000), ("2.5", 2500), ("0", -1)):
        if given is None:
            monkeypatch.delenv("MINDTORCH_NPU_TIMEOUT_S", raising=False)
        else:
            monkeypatch.setenv("MINDTORCH_NPU_TIMEOUT_S", given)
        assert devices.timeout_ms() == expected
