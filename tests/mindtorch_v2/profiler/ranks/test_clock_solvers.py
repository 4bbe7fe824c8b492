"""Conjugate gradients and the matrix give the same clocks; a solution that takes too many iterations is the matrix's."""

from __future__ import annotations

import numpy as np
import pytest
from synthetic_job import SyntheticJob

from mindtorch_v2.profiler import ranks
from mindtorch_v2.profiler.ranks import clocks
from mindtorch_v2.profiler.ranks.digest_file import encode


def _answers(world: bool) -> ranks.JobAnswers:
    job = SyntheticJob(32, events=60, world=world)
    return ranks.JobAnswers(ranks.merge(encode(ranks.make_digest(job.rows(rank), f"rank{rank:05d}.mtp")) for rank in range(32)))


@pytest.mark.parametrize("world", [True, False])
def test_both_ways_to_solve_agree(world: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = _answers(world)
    solved: list[bool] = []
    solve = clocks._System.solve

    def counted(system: clocks._System, solution: clocks.Floats) -> bool:
        solved.append(solve(system, solution))
        return solved[-1]

    monkeypatch.setattr(clocks._System, "solve", counted)
    by_gradients = clocks.solve_clocks(answers.job, answers.instances)
    assert solved and all(solved)
    monkeypatch.setattr(clocks, "_MOST_ITERATIONS", 0)
    by_matrix = clocks.solve_clocks(answers.job, answers.instances)
    assert not solved[-1]
    np.testing.assert_allclose(by_gradients.offset_ns, by_matrix.offset_ns, rtol=0, atol=0.01)
    np.testing.assert_allclose(by_gradients.error_ns, by_matrix.error_ns, rtol=1e-6)


def test_errors_are_those_of_the_whole_inverse() -> None:
    random = np.random.default_rng(0).normal(size=(24, 24))
    matrix = random @ random.T + np.eye(24)
    inverse = np.linalg.inv(matrix)
    wanted = np.diagonal(inverse)[:12], np.diagonal(inverse)[12:], np.diagonal(inverse[:12, 12:])
    for found, expected in zip(clocks._inverse_diagonals(matrix), wanted, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
