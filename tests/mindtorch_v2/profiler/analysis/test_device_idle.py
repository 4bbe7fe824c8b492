"""Why a device idles: recordings put together by hand, so that every gap has a known cause."""

import pytest

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.device import idle, summary
from mindtorch_v2.profiler.store.store import EventStore

from .test_device_time import CUDA, NPU, host, two_steps, work


def launched(name, start, end, at, number, **more):
    return work(name, start, end, correlation=number, launch_ns=at, launch_thread=1, **more)


def call(name, start, end, number=-1):
    return host(name, start, end, observer.RUNTIME, correlation=number)


@pytest.mark.parametrize(("device", "text"), [(CUDA, "cuda:0"), (NPU, "npu:0")])
def test_computing_communication_and_free_time_of_steps(device, text):
    first, second = idle.step_overlap(two_steps(device))
    assert first == idle.StepOverlap(text, 4, 1000, 200, 150, 100, 700, 110)
    assert second == idle.StepOverlap(text, 5, 1000, 0, 0, 0, 1000, 100)


def store_with_gaps():
    """Kernels with four gaps: a wait, a loader, Python, and one that was launched in time."""
    return EventStore.from_rows(
        [
            host("aten::mm", 0, 20),
            call("cudaLaunchKernel", 5, 15, 1),
            launched("mm", 20, 100, 5, 1),
            host("aten::item", 110, 400),
            call("cudaStreamSynchronize", 120, 390),
            host("aten::add", 400, 420),
            call("cudaLaunchKernel", 405, 410, 2),
            launched("add", 420, 500, 405, 2),
            host("enumerate(DataLoader)#_Iter.__next__", 450, 900, observer.SCOPE),
            host("aten::neg", 900, 930),
            call("cudaLaunchKernel", 905, 910, 3),
            launched("neg", 930, 1000, 905, 3),
            host("aten::exp", 1400, 1420),
            call("cudaLaunchKernel", 1405, 1410, 4),
            launched("exp", 1420, 1500, 1405, 4),
            host("aten::log", 1425, 1440),
            call("cudaLaunchKernel", 1430, 1435, 5),
            launched("log", 1550, 1600, 1430, 5, stream=8),
        ]
    )


def test_gaps_have_the_host_op_that_caused_them():
    causes = {cause.cause: cause for cause in idle.idle_causes(store_with_gaps())}
    assert {name: (cause.gaps, cause.total_ns, cause.then) for name, cause in causes.items()} == {
        "aten::item (cudaStreamSynchronize)": (1, 320, "aten::add"),
        "enumerate(DataLoader)#_Iter.__next__": (1, 430, "aten::neg"),
        idle.BETWEEN_OPS: (1, 420, "aten::exp"),
        idle.DEVICE_SIDE: (1, 50, "aten::log"),
    }


def test_a_gap_without_a_launch_says_so():
    store = EventStore.from_rows([work("a", 0, 10), work("b", 50, 60)])
    (cause,) = idle.idle_causes(store)
    assert cause.cause.startswith("unknown") and cause.total_ns == 40


def test_what_limits():
    (limit,) = idle.limits(store_with_gaps())
    assert limit.limit == "host"
    assert limit.busy_share == pytest.approx(360 / 1580)
    assert limit.idle_by_host_share == pytest.approx(1170 / 1220)
    busy = EventStore.from_rows([launched("a", 10, 500, 0, 1), launched("b", 510, 1000, 1, 2)])
    assert [limit.limit for limit in idle.limits(busy)] == ["device"]
    talking = EventStore.from_rows([work("mm", 0, 500), work("ncclDevKernel_AllReduce", 500, 1000)])
    assert [limit.limit for limit in idle.limits(talking)] == ["communication"]
    waiting = EventStore.from_rows([launched("a", 10, 100, 0, 1), launched("b", 500, 600, 1, 2)])
    assert [limit.limit for limit in idle.limits(waiting)] == ["neither"]


def test_copies_that_block_are_counted():
    rows = [
        call("cudaMemcpyAsync", 0, 5, 1),
        call("cudaStreamSynchronize", 6, 60),
        launched("Memcpy DtoH", 20, 50, 0, 1, kind=observer.COPY),
        call("cudaMemcpyAsync", 70, 75, 2),
        launched("Memcpy HtoD", 80, 90, 70, 2, kind=observer.COPY),
        call("cudaMemcpy", 100, 160, 3),
        launched("Memcpy HtoD", 110, 150, 100, 3, kind=observer.COPY),
    ]
    groups = {group.name: (group.calls, group.blocking) for group in summary.copy_groups(EventStore.from_rows(rows))}
    assert groups == {"Memcpy DtoH": (1, 1), "Memcpy HtoD": (2, 1)}
