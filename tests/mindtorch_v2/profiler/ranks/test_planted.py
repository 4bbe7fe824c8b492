"""Faults that were planted in made-up jobs are named exactly, with their cause; `make ranks` does it for hundreds of jobs."""

import numpy as np
import pytest
from synthetic_job import MS, Faults, SyntheticJob

from mindtorch_v2.profiler.ranks import JobAnswers, make_digest, merge
from mindtorch_v2.profiler.ranks.digest_file import encode

RANKS = 24


def answers_of(job):
    return JobAnswers(merge(encode(make_digest(job.rows(rank), f"rank{rank:05d}.mtp")) for rank in range(job.ranks)))


def planted(faults, events=500, steps=6, **options):
    return answers_of(SyntheticJob(RANKS, steps=steps, events=events, seed=3, faults=faults, **options))


def named(answers):
    """All that is named: slow ranks with their cause, pauses, links."""
    return (
        [(one.rank, one.cause) for one in answers.stragglers.slow],
        [(one.rank, one.step, one.cause) for one in answers.stragglers.pauses],
        [(link.source, link.target, link.group) for link in answers.links],
    )


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        (Faults(), ([], [], [])),
        (Faults(slow_rank=(13, 1.05)), ([(13, "computing")], [], [])),
        (Faults(slow_link=(5, 13, 0.6)), ([], [], [(5, 13, "")])),
        (Faults(slow_group=(6, 0.6)), ([], [], [(-1, -1, "dp6")])),
        (Faults(pause=(20, 4, 25 * MS)), ([], [(20, 9, "idle")], [])),
        (Faults(loader=(2, 6 * MS)), ([(2, "data loader")], [], [])),
        (Faults(more_work=(9, 1.08)), ([(9, "more work")], [], [])),
    ],
    ids=["nothing", "rank", "link", "group", "pause", "loader", "work"],
)
def test_what_is_planted_is_named_and_nothing_else(faults, expected):
    assert named(planted(faults)) == expected


def test_the_op_that_makes_a_rank_slow_is_named():
    answers = planted(Faults(slow_op=(9, 3, 2.5)), events=8_000, steps=3)
    (slow,) = answers.stragglers.slow
    assert (slow.rank, slow.op) == (9, "void gemm_3<float, 128, 3>(Params)")
    assert 2 < slow.op_ratio < 3


def test_a_slow_step_leads_to_the_rank_it_waited_for():
    answers = planted(Faults(pause=(20, 4, 25 * MS)))
    (slow,) = answers.slow_steps()
    assert (slow["step"], slow["rank"], slow["cause"]) == (9, 20, "idle")
    path = answers.paths[4]
    assert next(iter(path.by_rank())) == 20
    assert path.length_ns == pytest.approx(answers.step_ns[4], rel=0.05)


def test_parts_of_a_step_add_up_and_hidden_communication_is_not_exposed():
    job = planted(Faults()).job
    assert (job.steps["computing"] + job.steps["exposed"] + job.idle == job.steps["length"]).all()
    assert (job.steps["communication"] > job.steps["exposed"] * 1.2).all()  # buckets hide behind the backward pass
    assert (job.idle < 0.02 * job.steps["length"]).all()


def test_clocks_within_the_stated_error():
    covered = 0
    for seed in range(2):
        job = SyntheticJob(64, steps=6, events=60, seed=seed)
        answers = answers_of(job)
        clocks = answers.clocks
        assert clocks.connected
        moments = np.linspace(0, job.bounds[-1][1].max(), 11)
        reference = job.read_clock(0, moments) + answers.job.to_wall[0]
        errors = [
            np.abs(clocks.to_reference(rank, job.read_clock(rank, moments) + answers.job.to_wall[rank]) - reference).max()
            for rank in range(8, 64, 8)
        ]
        assert max(errors) < 5_000
        covered += sum(error <= clocks.error_ns[rank] for error, rank in zip(errors, range(8, 64, 8), strict=True))
    assert covered >= 13  # of 14


def test_clocks_that_nothing_connects_are_said_to_be_so():
    answers = answers_of(SyntheticJob(128, events=20, steps=1, world=False))
    assert not answers.clocks.connected
    assert answers.clocks.to_dict()["parts"] == 2
    assert "2 parts that no collective connects" in answers.text()


def test_a_clock_that_contradicts_its_host_is_reported_not_averaged():
    job = SyntheticJob(16, events=200, steps=4)
    blocks = []
    for rank in range(16):
        rows = job.rows(rank)
        if rank == 11:
            rows.wall_start_ns += 3 * MS
        blocks.append(encode(make_digest(rows, f"rank{rank}.mtp")))
    clocks = JobAnswers(merge(blocks)).clocks
    assert [(one.rank, round(one.by_ns / MS)) for one in clocks.contradictions] == [(11, 3)]
    assert clocks.offset_ns[11] - clocks.offset_ns[10] == pytest.approx(3 * MS, abs=30_000)
    assert abs(clocks.offset_ns[10] - job.offset[1]) < 30_000
