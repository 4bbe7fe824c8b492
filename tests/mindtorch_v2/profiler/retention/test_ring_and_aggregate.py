"""profile(max_memory_mb=...): a ring keeps the newest events, an aggregate keeps exact totals, both in bounded memory."""

from __future__ import annotations

import json
import threading

import numpy as np
import pytest
from retention_cases import ALL, ByHand, train

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler import _ExperimentalConfig as Config
from mindtorch_v2.profiler import load, profile, record_function, schedule, validate
from mindtorch_v2.profiler.assembly.freeze import freeze
from mindtorch_v2.profiler.retention import folding as _folding
from mindtorch_v2.profiler.retention.aggregate import OTHER, Aggregator
from mindtorch_v2.profiler.retention.ring import Ring
from mindtorch_v2.profiler.retention.stats import RELATIVE_ERROR, AggregateStats, Summary

SMALL = 0.05  # MB


def names(store):
    return [store.names[name] for name in store.name.tolist()]


def errors(what):
    return [problem for problem in validate(what) if problem.severity == "error"]


# ------------------------------------------------------------------------------ ring


def test_ring_keeps_the_newest():
    hand = ByHand(Ring(SMALL))
    rows = 40_000
    for number in range(rows):
        hand.op(number % 7, 10_000 + 10 * number, 10_000 + 10 * number + 5)
        if number % 1000 == 999:
            hand.flush()
    hand.stop()
    store, dropped = freeze(hand.recorder), hand.retention.dropped_events
    assert len(store) + dropped == rows
    assert 0.7 * SMALL * (1 << 20) < len(store) * 32 <= SMALL * (1 << 20)
    assert store.start.tolist() == [10_000 + 10 * number for number in range(dropped, rows)]


def test_ring_takes_more_than_fits_at_once():
    hand = ByHand(Ring(SMALL))
    for number in range(100_000):
        hand.op(0, 10_000 + 10 * number, 10_005 + 10 * number)
    hand.stop()
    store = freeze(hand.recorder)
    assert len(store) + hand.retention.dropped_events == 100_000 and len(store) > 1000
    assert store.end[-1] == 10_005 + 10 * 99_999


def test_ring_that_nothing_left():
    with profile(max_memory_mb=50, mode="ring") as prof, profile() as plain:
        train(prof, 3)
    assert prof.dropped_events == 0
    assert names(prof.profiler.store)[-50:] == names(plain.profiler.store)[-50:]
    assert "Dropped" not in prof.key_averages().table()
    assert "dropped_events" not in prof.profiler.store.metadata


def test_ring_is_the_default_mode():
    with profile(max_memory_mb=5) as prof:
        torch.empty(1)
    assert isinstance(prof._retention, Ring) and names(prof.profiler.store) == ["aten::empty"]


def test_dropped_events_are_told_everywhere(tmp_path):
    with profile(max_memory_mb=0.02, mode="ring") as prof:
        for _ in range(20):
            for _ in range(100):
                torch.empty(2) + 1
            prof._retention.flush()
    count = prof.dropped_events
    assert count + len(prof.profiler.store) == 4000 and count > 2000
    assert prof.key_averages().table().endswith(f"Dropped events: {count}\n")
    assert prof.events().table().endswith(f"Dropped events: {count}\n")
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["dropped_events"] == count
    prof.save(tmp_path / "saved.mtp")
    for path in (tmp_path / "trace.json", tmp_path / "saved.mtp"):
        loaded = load(path)
        assert loaded.dropped_events == count
        assert loaded.key_averages().table().endswith(f"Dropped events: {count}\n")
        assert any(f"{count} events were dropped" in str(problem) for problem in validate(loaded))


@pytest.mark.parametrize("options", [{}, {"with_stack": True}, {"with_modules": True}, ALL], ids=str)
def test_ring_with_every_option(options):
    with profile(max_memory_mb=0.4 if options.get("with_stack") else 0.1, mode="ring", **options) as prof:
        train(prof, 60, prof._retention.flush, every=3)
    store = prof.profiler.store
    assert prof.dropped_events > 0 and not errors(prof)
    assert store.step.max() == 59 and len(store) > 50
    last = [name for name in names(store) if name.startswith("Optimizer.step")]
    assert last
    if options.get("with_stack"):
        ops = [at for at in np.flatnonzero(store.kind == observer.OP).tolist() if store.start[at] > store.start[-1] - 1000]
        assert all("train" in " ".join(store.stacks[store.stack[at]]) for at in ops if store.stack[at] >= 0)
        assert any(name.endswith(": train") for name in names(store))
    if options.get("with_modules"):
        assert {"Net", "Net.first"} <= {store.modules[at] for at in store.module.tolist() if at >= 0}
    if options.get("profile_memory"):
        assert len(store.mem_time) > 0 and store.mem_total.min() >= 0


def test_ring_bounds_logs_without_ops():
    def call():
        return len("x")

    with profile(max_memory_mb=0.05, mode="ring", with_stack=True) as prof:
        for _ in range(20):
            for _ in range(200):
                call()
            prof._retention.flush()
        (window,) = prof.profiler._recorder.thread_recordings[0].windows
        assert window.entries * 36 < 0.06 * (1 << 20)
    assert prof.dropped_events > 1000


def test_ring_of_many_steps_forgets_their_names():
    from mindtorch_v2.profiler import ProfilerAction

    with profile(max_memory_mb=0.02, mode="ring", schedule=lambda step: ProfilerAction.RECORD) as prof:
        for number in range(1500):
            torch.empty(1)
            prof.step()
            if number % 50 == 0:
                prof._retention.flush()
        (recording,) = prof.profiler._recorder.thread_recordings
        prof._retention.flush()
        assert len(recording.spans) < 1000 and len(prof.profiler._recorder.steps) < 1000
    assert names(prof.profiler.store)[-2:] == ["aten::empty", "ProfilerStep#1500"] or prof.dropped_events


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_every_window_has_its_own_ring():
    counts = []
    with profile(
        max_memory_mb=0.02,
        mode="ring",
        schedule=schedule(wait=1, warmup=0, active=1),
        on_trace_ready=lambda p: counts.append((p.dropped_events, len(p.events()))),
    ) as prof:
        for size in (0, 3000, 0, 5, 0, 3000):
            for _ in range(size):
                torch.empty(1)
            prof.step()
    assert [count == 0 for count, _ in counts] == [False, True, False]
    assert all(dropped + left == 3001 for dropped, left in (counts[0], counts[2])) and counts[1][1] == 6


# ------------------------------------------------------------------------------ aggregate


def exact(store, by=("label",)):
    """Count, sum, self time, least, most and FLOPs of what views show, by name (and shapes, module)."""
    shown, found = store.visible, {}
    for row in range(len(shown)):
        key = [shown.labels[shown.label[row]]]
        if "shapes" in by:
            at = int(shown.shapes[row])
            key.append(
                str([list(d) if not d or not isinstance(d[0], tuple) else [] for d in shown.input_infos[at].dims])
                if at >= 0
                else ""
            )
        if "module" in by:
            key.append(shown.modules[shown.module[row]] if shown.module[row] >= 0 else "")
        took = int(shown.duration[row])
        total = found.setdefault(tuple(key), [0, 0, 0, 1 << 62, 0, 0])
        total[0] += 1
        total[1] += took
        total[2] += int(shown.self_ns[row])
        total[3], total[4] = min(total[3], took), max(total[4], took)
        total[5] += int(shown.flops[row])
    return found


def counted(stats, by=("label",)):
    totals = {}
    for row in stats.rows:
        key = (row.name, *([row.shapes] if "shapes" in by else []), *([row.module] if "module" in by else []))
        before = totals.get(key)
        now = [row.count, row.sum_ns, row.self_ns, row.min_ns, row.max_ns, row.flops]
        totals[key] = (
            now
            if before is None
            else [
                *(a + b for a, b in zip(before[:3], now[:3], strict=True)),
                min(before[3], now[3]),
                max(before[4], now[4]),
                before[5] + now[5],
            ]
        )
    return totals


@pytest.mark.parametrize(
    ("options", "by"),
    [
        ({}, ("label",)),
        ({"record_shapes": True}, ("label", "shapes")),
        ({"with_modules": True}, ("label", "module")),
        ({"record_shapes": True, "with_modules": True, "with_flops": True}, ("label", "shapes", "module")),
        ({"with_flops": True}, ("label",)),
    ],
    ids=str,
)
@pytest.mark.parametrize("pending", [64, 1 << 14])
def test_totals_are_exact(monkeypatch, options, by, pending):
    monkeypatch.setattr(_folding, "_MOST_PENDING", pending)
    monkeypatch.setattr(_folding, "_MOST_REMAINDERS", 8)
    with profile(max_memory_mb=20, mode="aggregate", **options) as prof, profile(**options) as plain:
        with record_function("all of it"):
            train(prof, 12, prof._retention.flush, every=2)
        middle = prof.aggregate()
    stats = prof.aggregate()
    assert counted(stats, by) == exact(plain.profiler.store, by)
    assert counted(middle, by) == counted(stats, by)
    assert stats.steps == 12


@pytest.mark.parametrize("seed", range(8))
def test_totals_in_any_chunks(monkeypatch, seed):
    """Fed by hand with a fake clock: self times across chunks, only children with their parent's name, long ranges."""
    monkeypatch.setattr(_folding, "_MOST_PENDING", 40)
    monkeypatch.setattr(_folding, "_MOST_REMAINDERS", 4)
    chance = np.random.default_rng(seed)
    hand = ByHand(Aggregator(10), twin=True)

    def op(depth):
        start = hand.clock()
        for _ in range(int(chance.integers(0, 3)) if depth else 0):
            op(depth - 1)
        hand.op(int(chance.integers(0, 4)), start, hand.clock())
        if chance.random() < 0.15:
            hand.flush()

    scopes = [record_function(f"range {n}") for n in range(3)]
    for at, scope in enumerate(scopes):
        scope.__enter__()
        scope.began = hand.clock()
        for _ in range(30 * at):
            op(3)
    for scope in reversed(scopes):
        for _ in range(40):
            op(2)
        recorders, scope.recorders = scope.recorders, None
        recorders.close(scope, hand.clock())
    hand.stop()
    assert counted(hand.retention.stats()) == exact(freeze(hand.twin))
    assert hand.retention.stats().self_ns == int(freeze(hand.twin).self_ns.sum())


def test_pending_rows_and_remainders_are_bounded():
    hand = ByHand(Aggregator(10))
    scope = record_function("always open")
    scope.__enter__()
    scope.began = 2000
    for number in range(60_000):
        hand.op(0, 10_000 + 10 * number, 10_005 + 10 * number)
        if number % 2000 == 0:
            hand.flush()
    folding = next(iter(hand.retention._threads.values())).folding
    assert len(folding._pending["start"]) <= _folding._MOST_PENDING
    assert len(folding._remainders["start"]) <= _folding._MOST_REMAINDERS
    recorders, scope.recorders = scope.recorders, None
    recorders.close(scope, 10_000_000)
    hand.stop()
    row = hand.retention.stats().by_name()["always open"]
    assert (row.sum_ns, row.self_ns) == (10_000_000 - 2000, 10_000_000 - 2000 - 5 * 60_000)


def test_all_threads():
    def work():
        for _ in range(100):
            torch.empty(3) + 1

    config = Config(profile_all_threads=True)
    with profile(max_memory_mb=10, mode="aggregate", experimental_config=config) as prof:
        workers = [threading.Thread(target=work) for _ in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert prof.aggregate().by_name()["aten::add"].count == 300


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
def test_windows_add_up():
    with profile(max_memory_mb=10, mode="aggregate", schedule=schedule(wait=1, warmup=0, active=1)) as prof:
        for _ in range(6):
            torch.empty(1)
            prof.step()
    stats = prof.aggregate().by_name()
    assert stats["aten::empty"].count == 3 and stats["ProfilerStep*"].count == 3
    assert prof.aggregate().steps == 3


def test_more_groups_than_there_is_room_for():
    with profile(max_memory_mb=0.1, mode="aggregate", record_shapes=True) as prof:
        for size in range(1, 50):
            torch.empty(size) + 1
    stats = prof.aggregate()
    assert len(stats) <= 9 and stats.by_name()[OTHER].count > 30
    assert stats.count == 98


def test_per_step_statistics():
    hand = ByHand(Aggregator(10))
    for step in range(1, 5):
        for _ in range(step):
            start = hand.clock()
            hand.clock.now += 999
            hand.op(0, start, hand.clock())
        hand.flush()
        hand.recorder.step(step)
    hand.stop()
    (row,) = hand.retention.stats().rows
    assert (row.count, row.sum_ns, row.min_ns, row.max_ns) == (10, 10_000, 1000, 1000)
    assert (row.steps.count, row.steps.sum_ns, row.steps.min_ns, row.steps.max_ns) == (4, 10_000, 1000, 4000)


@pytest.mark.parametrize("durations", [[1], [5, 5, 5], list(range(1, 2000)), [10**k for k in range(13)], [0, 1, 2]])
def test_quantiles(durations):
    hand = ByHand(Aggregator(10))
    start = 10_000
    for took in durations:
        hand.op(0, start, start + took)
        start += took + 1
    hand.stop()
    stats = hand.retention.stats()
    (row,) = stats.rows
    for q in (0, 0.1, 0.5, 0.9, 0.99, 1):
        want = float(np.quantile(durations, q, method="inverted_cdf" if q else "linear"))
        near = [float(np.quantile(durations, q, method=m)) for m in ("lower", "higher")]
        got = row.quantile(q)
        assert min(want, *near) * (1 - RELATIVE_ERROR) - 1 <= got <= max(want, *near) * (1 + RELATIVE_ERROR) + 1
    assert stats.quantile(0.5, row.name) == row.quantile(0.5)
    with pytest.raises(ValueError, match="between 0 and 1"):
        row.quantile(1.5)
    with pytest.raises(KeyError):
        stats.quantile(0.5, "no such op")
    with pytest.raises(ValueError, match="nothing"):
        Summary().quantile(0.5)


def test_merge_table_and_dict():
    parts = []
    for count in (3, 5):
        with profile(max_memory_mb=10, mode="aggregate", record_shapes=True, with_modules=True) as prof:
            for _ in range(count):
                nn.Linear(2, 2)(torch.empty(1, 2))
        parts.append(prof.aggregate())
    merged = parts[0].merge(AggregateStats.from_dict(json.loads(json.dumps(parts[1].to_dict()))))
    assert merged.by_name()["aten::addmm"].count == 8 and merged.count == parts[0].count + parts[1].count
    assert merged.self_ns == parts[0].self_ns + parts[1].self_ns
    first, second = (part.by_name()["aten::addmm"] for part in parts)
    both = merged.by_name()["aten::addmm"]
    assert both.max_ns == max(first.max_ns, second.max_ns) and both.min_ns == min(first.min_ns, second.min_ns)
    assert sum(both.calls.bins.values()) == 8
    for key in ("self", "sum", "count", "mean", "min", "max", "p50", "p99", "flops"):
        lines = merged.table(sort_by=key).splitlines()
        assert "Shapes" in lines[1] and "Module" in lines[1] and any("aten::addmm" in line for line in lines)
    assert merged.table(row_limit=1).count("aten::") == 1
    with pytest.raises(ValueError, match="sort_by"):
        merged.table(sort_by="name")
    assert "2 steps" in repr(merged) or "events" in repr(merged)


def test_events_are_refused_by_name(tmp_path):
    with profile(max_memory_mb=5, mode="aggregate") as prof:
        torch.empty(1)
    for ask in (
        prof.events,
        prof.key_averages,
        lambda: prof.export_chrome_trace(tmp_path / "x.json"),
        lambda: prof.save(tmp_path / "x.mtp"),
    ):
        with pytest.raises(RuntimeError, match=r"aggregate\(\)"):
            ask()
    assert prof.dropped_events == 0
    for other in (profile(), profile(max_memory_mb=5, mode="ring")):
        with pytest.raises(RuntimeError, match="mode='aggregate'"):
            other.aggregate()
