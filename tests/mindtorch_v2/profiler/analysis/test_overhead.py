"""What recording costs: the estimate's arithmetic, and that a calibration is measured where the recording was made."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import profile, record_function
from mindtorch_v2.profiler.analysis.overhead import Calibration, calibration_of, estimate
from mindtorch_v2.profiler.recording.recorder import Options
from mindtorch_v2.profiler.session import calibration
from mindtorch_v2.profiler.store.store import EventStore

COST = Calibration(op=10.0, scope=20.0, python=5.0, inside=2.0)


def test_times_without_the_cost_of_the_events_below():
    rows = [
        {"name": "inner", "start": 10, "end": 40},
        {"name": "outer", "start": 0, "end": 100},
        {"name": "range", "start": 0, "end": 200, "kind": observer.SCOPE},
    ]
    overhead = estimate(EventStore.from_rows(rows), COST)
    by_name = dict(zip(("range", "outer", "inner"), overhead.duration_ns.tolist(), strict=True))
    assert by_name == {"inner": 28, "outer": 100 - 10 - 2, "range": 200 - 20 - 2}
    assert overhead.self_ns.tolist() == [178 - 88, 88 - 28, 28]
    assert (overhead.events, overhead.total_ns, overhead.covered_ns) == (3, 40, 200)
    assert overhead.share == pytest.approx(0.2)
    assert "3 events" in str(overhead)


def test_times_never_become_negative_and_the_share_stays_below_one():
    rows = [*({"name": "inner", "start": n, "end": n + 1} for n in range(8)), {"name": "outer", "start": 0, "end": 9}]
    overhead = estimate(EventStore.from_rows(rows), COST)
    assert overhead.duration_ns.min() == 0
    assert overhead.share == 1.0
    assert estimate(EventStore.from_rows([]), COST).share == 0


def test_device_rows_and_loose_memory_cost_nothing():
    rows = [{"name": "k", "start": 0, "end": 9, "kind": observer.KERNEL, "device_type": 1}]
    assert estimate(EventStore.from_rows(rows, [{"time": 5, "bytes": 8}]), COST).total_ns == 0


@pytest.mark.parametrize("options", [{}, {"with_stack": True, "record_shapes": True, "profile_memory": True}])
def test_a_profile_measures_its_own_overhead_once(options):
    x = torch.ones(3)
    with profile(**options) as prof:
        for _ in range(50):
            x + x
    overhead = prof.overhead()
    assert overhead.calibration.op > 0
    assert overhead.calibration.inside > 0
    assert (overhead.calibration.python > 0) == bool(options)
    assert overhead.total_ns >= 50 * overhead.calibration.op * 0.9
    assert prof.overhead().calibration == overhead.calibration
    assert calibration_of(prof.profiler.store) == overhead.calibration


def test_nothing_is_measured_while_something_records():
    with profile() as prof:
        torch.ones(3)
        with pytest.raises(RuntimeError, match="while something records"):
            prof.overhead()


def test_a_recording_of_unknown_cost():
    assert calibration_of(EventStore.from_rows([])) is None
    assert calibration_of(EventStore.from_rows([], options={"calibration": {"op": 1}})) is None


def test_measuring_goes_on_until_recording_costs_something(monkeypatch):
    """The machine is faster during the first rounds with a recorder than without."""
    without, recorded = 5_000, 4_000
    times = iter([without, recorded] * 10 + [3_000, 3_500])
    monkeypatch.setattr(calibration, "_timed", lambda work: work() or next(times))
    work = {"x": torch.ones(1), "times": 1, "record_function": record_function}
    exec(calibration._WORK, work)
    assert calibration._cost_per_row(work["ops"], Options(), observer.OP, 0.0) == 3_500 - 3_000
