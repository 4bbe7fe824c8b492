"""A job as tables for questions of one's own: ranks, steps, ops and communications, as columns or as Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..views.tabular import import_extra
from .answered import JobAnswers
from .collectives import KINDS
from .digest import EXPOSED_SCALE

DESCRIPTION = (
    "tables of a job: ranks (one row a rank), steps (a rank and step), ops (a rank, op and step), communications (a rank and "
    "collective or message); times in ns, of each rank's own clock but for aligned_ns"
)


def job_columns(answers: JobAnswers) -> dict[str, dict[str, Any]]:
    """The tables as columns by name."""
    return {
        "ranks": _ranks(answers),
        "steps": _steps(answers),
        "ops": _ops(answers),
        "communications": _communications(answers),
    }


def job_tables(answers: JobAnswers) -> dict[str, Any]:
    """The tables as Arrow tables; ImportError names the extra."""
    arrow = import_extra("pyarrow", "sql", "tables of a job")
    return {name: arrow.table(columns) for name, columns in job_columns(answers).items()}


def _ranks(answers: JobAnswers) -> dict[str, Any]:
    job, clocks = answers.job, answers.clocks
    return {
        "rank": job.ranks,
        "host": job.hosts,
        "source": job.sources,
        "clock_offset_ns": clocks.offset_ns,
        "clock_rate": clocks.rate,
        "clock_error_ns": clocks.error_ns,
        "clock_part": clocks.part,
        "waited_for_ns": answers.stragglers.charged.sum(axis=1),
    }


def _steps(answers: JobAnswers) -> dict[str, Any]:
    job = answers.job
    shape = job.own.shape
    columns = {f"{name}_ns": job.steps[name].ravel() for name in ("length", "computing", "communication", "exposed", "loader")}
    return {
        "rank": np.repeat(job.ranks, shape[1]),
        "step": np.tile(job.step_numbers, shape[0]),
        "start_ns": job.steps["start"].ravel(),
        **columns,
        "idle_ns": job.idle.ravel(),
        "waited_for_ns": answers.stragglers.charged.ravel(),
        **{name: job.steps[name].ravel() for name in ("memory", "elements", "flops")},
    }


def _ops(answers: JobAnswers) -> dict[str, Any]:
    job = answers.job
    rank, op, step = np.nonzero(job.op_calls)
    names = [name for name, _ in job.ops]
    return {
        "rank": job.ranks[rank],
        "step": job.step_numbers[step],
        "op": [names[at] for at in op.tolist()],
        "device": np.array([device for _, device in job.ops], np.bool_)[op],
        "calls": job.op_calls[rank, op, step],
        "self_ns": job.op_ns[rank, op, step],
    }


def _communications(answers: JobAnswers) -> dict[str, Any]:
    job, instances, clocks = answers.job, answers.instances, answers.clocks
    messages, rows = job.messages, instances.rows
    rank = messages.rank[rows].astype(np.int64)
    wall = messages.start[rows] + job.to_wall[rank]
    shift = np.rint(clocks.offset_ns[rank] + clocks.rate[rank] * (wall - clocks.middle)).astype(np.int64)
    return {
        "instance": instances.number,
        "rank": job.ranks[rank],
        "step": job.step_numbers[messages.step[rows]],
        "kind": [KINDS[at] for at in messages.kind[rows].tolist()],
        "group_name": [job.groups[at].name for at in messages.group[rows].tolist()],
        "seq": messages.seq[rows],
        "start_ns": messages.start[rows],
        "aligned_ns": wall - shift,
        "length_ns": messages.length[rows],
        "wait_ns": instances.wait,
        "transfer_ns": instances.transfer[instances.number] if len(instances) else instances.wait,
        "exposed": messages.exposed[rows] / EXPOSED_SCALE,
        "bytes": messages.size[rows],
        "peer": messages.peer[rows],
    }
