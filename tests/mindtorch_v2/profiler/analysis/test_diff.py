"""diff: a change that is there is found, and only that one; noise is not called a change."""

from __future__ import annotations

import noisy_recordings
import numpy as np
import pytest
from noisy_recordings import NOISE

from mindtorch_v2._dispatch import observer
from mindtorch_v2.profiler.analysis.comparison.diff import BETWEEN_EVENTS, diff
from mindtorch_v2.profiler.analysis.comparison.evidence import student_quantile
from mindtorch_v2.profiler.store.store import EventStore, InputInfo

OPS = {f"aten::op{n}": 20_000 * (n + 1) for n in range(15)}


def recording(seed, slower=None, factor=1.0, steps=60, machine=1.0, without=None, uneven=0.0):
    """Steps of made-up ops whose times spread by 8 % and are now and then disturbed for several steps.

    `uneven`: by how much more the machine moved each op during this recording, as a standard deviation.
    """
    rng = np.random.default_rng(seed)
    moved = dict(zip(OPS, np.exp(uneven * rng.standard_normal(len(OPS))), strict=True)) if uneven else dict.fromkeys(OPS, 1.0)
    rows, now = [], 0
    disturbed = 0
    for step in range(steps):
        begin = now
        if disturbed == 0 and rng.random() < 0.05:
            disturbed = int(rng.integers(2, 6))
        load = 1.6 if disturbed else 1.0
        disturbed = max(0, disturbed - 1)
        for name, ns in OPS.items():
            if name == without:
                continue
            usual = ns * machine * moved[name] * load * (factor if name == slower else 1.0)
            length = usual * (1 + 0.08 * abs(rng.standard_normal()))
            rows.append({"name": name, "start": now, "end": now + int(length)})
            now += int(length) + 500
        rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now})
        now += 100
    return EventStore.from_rows(rows)


def test_a_run_with_itself_shows_nothing():
    recorded = recording(1)
    comparison = diff(recorded, recorded)
    assert comparison.found == []
    assert comparison.step.verdict == "no evidence"
    assert comparison.drift == 1.0
    assert "no op changed" in str(comparison)


@pytest.mark.parametrize("seed", range(20))
def test_a_planted_slow_down_is_named_and_nothing_else(seed):
    changes = diff(recording(2 * seed), recording(2 * seed + 1, slower="aten::op7", factor=1.15)).found
    assert [(change.key.name, change.verdict) for change in changes] == [("aten::op7", "slower")]
    assert changes[0].low < 1.15 < changes[0].high
    assert changes[0].relative == pytest.approx(1.15, abs=0.04)


@pytest.mark.parametrize("seed", range(20))
def test_two_runs_of_the_same_code_differ_in_nothing(seed):
    assert diff(recording(100 + seed), recording(200 + seed)).found == []


@pytest.mark.parametrize("seed", range(20))
def test_a_machine_that_moves_ops_apart_is_no_evidence(seed):
    """What other work did to one run and not to the other moves every op a little, and the steps do not tell."""
    assert diff(recording(300 + seed, uneven=0.06), recording(400 + seed, uneven=0.06)).found == []


# ------------------------------------------------------------------------------ several recordings on each side


def side(seed, count=5, **planted):
    """Recordings on a machine that moves as a whole, and each op by 2 % more, from one to the next."""
    speeds = np.random.default_rng(seed).uniform(0.9, 1.3, count)
    return [recording(1000 * seed + n, uneven=0.02, steps=24, machine=speed, **planted) for n, speed in enumerate(speeds)]


@pytest.mark.parametrize("seed", range(20))
def test_several_recordings_see_through_an_uneven_machine(seed):
    before = side(2 * seed)
    assert diff(before, side(2 * seed + 1)).found == []
    changes = diff(before, side(2 * seed + 1, slower="aten::op7", factor=1.15)).found
    assert [(change.key.name, change.verdict) for change in changes] == [("aten::op7", "slower")]
    assert changes[0].low < 1.15 < changes[0].high
    assert changes[0].relative == pytest.approx(1.15, abs=0.04)


def test_the_step_of_several_recordings():
    before, after = side(1), [recording(50 + n, machine=3.0, steps=24) for n in range(3)]
    comparison = diff(before, after)
    assert comparison.step.verdict == "slower" and 1 < comparison.step.low < comparison.step.ratio < comparison.step.high
    assert (comparison.recordings, comparison.a_steps, comparison.b_steps) == ((5, 3), 120, 72)
    assert "steps compared: 120 and 72 of 5 and 3 recordings;" in str(comparison)
    assert comparison.to_dict()["recordings"] == {"a": 5, "b": 3}


def test_ops_that_some_recordings_have_are_neither_new_nor_gone():
    before = side(1, count=3)
    after = [*side(2, count=2, without="aten::op2"), recording(9, steps=24)]
    assert not {"new", "gone"} & {change.verdict for change in diff(before, after).changes}
    without = side(2, count=3, without="aten::op2")
    assert [(c.key.name, c.verdict) for c in diff(before, without).found] == [("aten::op2", "gone")]


def test_one_recording_against_several_is_refused():
    with pytest.raises(ValueError, match="at least two on each, got 1 and 3"):
        diff(recording(1), side(1, count=3))
    with pytest.raises(ValueError, match="got 0 and 3"):
        diff([], side(1, count=3))


@pytest.mark.parametrize(
    "p, freedom, exact", [(0.975, 6, 2.4469), (0.9995, 6, 5.9588), (0.9995, 8, 5.0413), (0.9999, 12, 5.2633)]
)
def test_student_quantiles(p, freedom, exact):
    assert student_quantile(p, freedom) == pytest.approx(exact, rel=0.01)


def test_a_faster_op_is_named():
    (change,) = diff(recording(1), recording(2, slower="aten::op3", factor=0.7)).found
    assert (change.key.name, change.verdict) == ("aten::op3", "faster")


def test_a_slower_machine_is_told_apart_from_a_slower_op():
    comparison = diff(recording(1), recording(2, machine=1.3))
    assert comparison.found == []
    assert comparison.drift == pytest.approx(1.3, abs=0.05)
    # One recording on each side does not tell a slower machine from slower code.
    assert comparison.step.ratio == pytest.approx(1.3, abs=0.05)
    assert comparison.step.verdict == "no evidence" and comparison.step.low < 1 < comparison.step.high
    assert not comparison.slower_by(comparison.step, 0.05)
    assert ["may be the machine as well as the code" in note for note in comparison.notes] == [True]
    assert diff(recording(1), recording(2)).notes == []
    # An op that changes the step by more than the others is the code's.
    large = diff(recording(1), recording(2, machine=1.1, slower="aten::op14", factor=3.0))
    assert large.step.verdict == "slower" and large.slower_by(large.step, 0.05)


def test_an_op_that_does_not_drift_with_the_others_has_not_changed():
    """Other work on the machine slows Python down and leaves large matrix products alone."""
    comparison = diff(recording(1), recording(2, machine=1.3, slower="aten::op14", factor=1 / 1.3))
    assert comparison.drift == pytest.approx(1.3, abs=0.05)
    assert comparison.found == []


def test_ops_of_one_recording_only_are_new_or_gone():
    there, missing = recording(1), recording(2, without="aten::op2")
    assert [(c.key.name, c.verdict) for c in diff(there, missing).found] == [("aten::op2", "gone")]
    assert [(c.key.name, c.verdict) for c in diff(missing, there).found] == [("aten::op2", "new")]


def test_an_op_of_a_few_steps_is_neither_new_nor_gone():
    def every(nth, skipped):
        rows = []
        for step in range(40):
            rows.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": step * 1000, "end": step * 1000 + 900})
            rows.append({"name": "aten::mm", "start": step * 1000 + 10, "end": step * 1000 + 500})
            if (step % nth != 0) == skipped:
                rows.append({"name": "aten::copy_", "start": step * 1000 + 600, "end": step * 1000 + 800})
        return EventStore.from_rows(rows)

    seldom, mostly = every(8, skipped=False), every(8, skipped=True)
    for comparison in (diff(seldom, mostly), diff(mostly, seldom)):
        assert {change.key.name: change.verdict for change in comparison.changes}["aten::copy_"] == "no evidence"


def test_a_limit_below_what_is_named_counts_too():
    comparison = diff(recording(1), recording(2, slower="aten::op14", factor=1.15), least=0.3)
    (change,) = (change for change in comparison.changes if change.key.name == "aten::op14")
    assert (change.verdict, comparison.slower_by(change, 0.01), comparison.slower_by(change, 0.2)) == (
        "no evidence",
        True,
        False,
    )
    few = diff(recording(1, steps=3), recording(2, slower="aten::op14", factor=2, steps=3))
    assert not any(few.slower_by(change, 0.01) for change in few.changes)


def test_the_table_is_cut_and_says_so():
    comparison = diff(recording(1, steps=8), EventStore.from_rows([]))
    assert len(comparison.found) == len(OPS)
    assert str(comparison.table(3)).splitlines()[-1] == f"... and {len(OPS) - 3} more"
    assert len(comparison.table(-1).splitlines()) == 4 + len(OPS)
    assert comparison.table(0).splitlines()[-1] == f"... and {len(OPS)} more"


def test_steps_that_nothing_marks_go_from_one_step_of_an_optimizer_to_the_next():
    def trained(steps, forward):
        rows, now = [{"name": "aten::randn", "start": 0, "end": 900_000}], 1_000_000
        for at in range(steps):
            noise = at % 3 * 100
            rows.append({"name": "aten::mm", "start": now, "end": now + forward + noise})
            rows.append({"name": "aten::copy", "start": now + 2 * forward, "end": now + 2 * forward + 30_000 + noise})
            end = now + 2 * forward + 50_000
            rows.append({"name": "Optimizer.step#Own.step", "kind": observer.SCOPE, "start": end, "end": end + 10_000})
            rows.append(rows[-1] | {"name": "Optimizer.step#SGD.step", "start": end + 1000, "end": end + 9000})
            now = end + 20_000
        return EventStore.from_rows(rows)

    comparison = diff(trained(20, 10_000), trained(20, 90_000))
    assert (comparison.a_steps, comparison.b_steps, comparison.enough) == (19, 19, True)
    assert ("aten::mm", "slower") in [(change.key.name, change.verdict) for change in comparison.found]
    assert comparison.step.a_ns == pytest.approx(90_000)  # without what came before the first
    assert "19 and 19, from one step of an optimizer to the next;" in str(comparison)
    assert comparison.to_dict()["steps_by_optimizer"] is True
    marked = recording(1, steps=20)
    assert "optimizer" not in str(diff(marked, marked)) and diff(marked, marked).to_dict()["steps_by_optimizer"] is False
    few = diff(trained(3, 1000), trained(3, 1000))
    assert (few.a_steps, few.enough) == (1, False) and "or else those of an optimizer" in str(few)


def test_few_steps_are_no_evidence_and_it_says_so():
    comparison = diff(recording(1, steps=3), recording(2, slower="aten::op7", factor=2.0, steps=3))
    assert comparison.found == []
    assert comparison.step.verdict == "no evidence"
    assert (comparison.enough, comparison.step.interval, comparison.to_dict()["enough_steps"]) == (False, "unknown", False)
    printed = str(comparison)
    assert "too few steps for any verdict: at least 5 are needed" in printed and "no op changed" not in printed
    # What differs most is named all the same, as measured.
    (line,) = [line for line in printed.splitlines() if line.startswith("aten::op7")]
    assert line.endswith("unknown  no evidence") and comparison.listed[0].key.name == "aten::op7"
    assert diff(recording(1, steps=5), recording(1, steps=5)).notes == []


@pytest.mark.parametrize(
    "what, column", [("shapes", {"inputs": InputInfo(((4,),), ("float",), ((1,),), (None,))}), ("modules", {"module": "Net"})]
)
def test_what_one_side_does_not_know_tells_nothing_apart(what, column):
    def rows(more):
        return EventStore.from_rows(
            [
                row
                for step in range(6)
                for row in (
                    {"name": "aten::relu", "start": 100 * step, "end": 100 * step + 50, **more},
                    {"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": 100 * step, "end": 100 * step + 60},
                )
            ]
        )

    for comparison in (diff(rows(column), rows({})), diff(rows({}), rows(column))):
        verdicts = {str(change.key): change.verdict for change in comparison.changes}
        assert verdicts == {"aten::relu": "no evidence", "(between events)": "no evidence"}
        assert comparison.notes == [f"not every recording has {what}: ops are compared without"]
    assert diff(rows(column), rows(column)).notes == []


def test_shapes_and_modules_are_kept_apart():
    def rows(long_shape):
        events, now = [], 0
        for step in range(20):
            begin = now
            for shape, module in (((4,), "Net.a"), ((8,), "Net.a"), ((8,), "Net.b")):
                length = 10_000 + 37 * step + (5000 if shape == (8,) and module == "Net.b" and long_shape else 0)
                info = InputInfo((shape,), ("float",), (shape,), (None,))
                events.append({"name": "aten::relu", "start": now, "end": now + length, "inputs": info, "module": module})
                now += length + 10
            events.append({"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now})
        return EventStore.from_rows(events)

    (change,) = diff(rows(False), rows(True)).found
    assert str(change.key) == "aten::relu [[8]] in Net.b"
    assert change.verdict == "slower"


def test_to_dict_is_plain():
    import json

    comparison = diff(recording(1, steps=8), recording(2, steps=8, without="aten::op2"))
    assert json.loads(json.dumps(comparison.to_dict(), allow_nan=False))["steps"] == {"a": 8, "b": 8}


def test_bad_arguments():
    recorded = recording(1, steps=5)
    with pytest.raises(ValueError, match="confidence must be"):
        diff(recorded, recorded, confidence=95)
    with pytest.raises(ValueError, match="least must not be negative"):
        diff(recorded, recorded, least=-1)
    empty = EventStore.from_rows([])
    assert diff(empty, empty).found == []
    assert diff(empty, empty).step.verdict == diff(recorded, empty).step.verdict == "no evidence"


def test_profiles_and_files_are_compared(tmp_path):
    import mindtorch_v2 as torch
    from mindtorch_v2.profiler import diff as public_diff
    from mindtorch_v2.profiler import profile

    with profile() as prof:
        for _ in range(6):
            torch.ones(3) + 1
            prof.step()
    prof.save(tmp_path / "run.mtp")
    assert public_diff(prof, tmp_path / "run.mtp").found == []
    assert public_diff(str(tmp_path / "run.mtp"), prof).step.verdict == "no evidence"
    assert public_diff([prof, prof], [tmp_path / "run.mtp", prof]).recordings == (2, 2)
    with pytest.raises(TypeError, match="not int"):
        public_diff(prof, 3)
    with pytest.raises(TypeError, match="not int"):
        public_diff([prof, 3], [prof, prof])


# ------------------------------------------------------------------------------ a noisy machine, by a counted clock


@pytest.mark.parametrize("ops", [1, 3, 12])
@pytest.mark.parametrize("model", NOISE)
def test_no_noise_is_a_change_however_few_ops_there_are(model, ops):
    for seed in range(3):
        a, b = (noisy_recordings.recording(NOISE[model], 2 * seed + n, ops=ops, steps=30) for n in (0, 1))
        comparison = diff(a, b)
        assert comparison.found == []
        assert comparison.step.verdict == "no evidence"


@pytest.mark.parametrize("model", ["log_normal", "bursts", "outliers"])
def test_a_slow_down_is_found_and_its_parent_and_neighbors_are_not(model):
    """The self time of the op changes, that of the op around it does not, although its whole time does."""
    found = []
    for seed in range(8):
        a = noisy_recordings.recording(NOISE[model], 100 + 2 * seed)
        b = noisy_recordings.recording(NOISE[model], 101 + 2 * seed, slower=9, factor=1.5)
        found += [(change.key.name, change.verdict) for change in diff(a, b).found]
    assert set(found) == {("aten::op9", "slower")}
    assert len(found) >= 7


def test_the_only_op_of_a_program_may_have_changed_with_the_machine():
    """With one or two kinds of op there is nothing to tell the machine's speed by."""
    one = [noisy_recordings.recording(NOISE["log_normal"], 1, ops=1, slower=0, factor=factor) for factor in (1.0, 1.5, 4.0)]
    assert diff(one[0], one[1]).found == []
    assert [change.key.name for change in diff(one[0], one[2]).found] == ["aten::op0"]


def stepped(between: int, marked: bool, stack: bool = False) -> EventStore:
    """Ten steps of two ops and an optimizer, with time between them; the optimizer alone, or ProfilerStep, marks the steps."""
    rows, now = [], 0
    for step in range(10):
        begin = now
        for name, took in (("aten::mm", 900 + step), ("aten::relu", 500), ("Optimizer.step#SGD.step", 300)):
            rows.append({"name": name, "start": now, "end": now + took})
            now += took
        if stack:
            rows.append({"name": "train.py(3): load", "kind": observer.PYTHON, "start": now, "end": now + between})
        now += between
        rows += [{"name": f"ProfilerStep#{step}", "kind": observer.STEP, "start": begin, "end": now}] * marked
    return EventStore.from_rows(rows)


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("stack", [True, False])
def test_time_that_a_step_spends_in_no_op_is_compared(marked, stack):
    """With stacks it is that of Python calls, which belong to the row around them, as without."""
    comparison = diff(stepped(100, marked, stack), stepped(3000, marked))
    assert [(str(change.key), change.verdict) for change in comparison.found] == [("(between events)", "slower")]
    (change,) = comparison.found
    assert (change.a_ns, change.b_ns) == pytest.approx((100, 3000)) and change.low < 30 < change.high
    assert diff(stepped(100, marked), stepped(100, marked)).found == []


def test_time_between_events_that_only_the_ops_speed_would_change_is_no_evidence():
    """A sleep takes as long on a slow machine, where ops take longer: neither is a change of the program."""

    def on_machine(speed: float) -> EventStore:
        rows = []
        for start in range(0, 40_000, 4000):
            ops = [(f"aten::op{number}", start + 400 * number) for number in range(4)]
            rows += [{"name": name, "start": begin, "end": begin + int(200 * speed)} for name, begin in ops]
            end = start + 2400 + int(800 * speed)
            rows += [{"name": f"ProfilerStep#{start // 4000}", "kind": observer.STEP, "start": start, "end": end}]
        return EventStore.from_rows(rows)

    (change,) = (each for each in diff(on_machine(1.0), on_machine(1.8)).changes if each.key == BETWEEN_EVENTS)
    assert change.verdict == "no evidence" and (change.a_ns, change.b_ns) == pytest.approx((2400, 2400))
