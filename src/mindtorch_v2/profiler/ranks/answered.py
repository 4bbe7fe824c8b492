"""JobAnswers: all answers of a job, each computed when it is first asked for; as text and as JSON of bounded size."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from .._io.strict_json import dumps
from ..analysis.findings import Finding, duration
from . import advice
from .answers.critical_path import CriticalPath, PathFinder
from .answers.links import SlowLink, slow_links
from .answers.stragglers import Stragglers, stragglers
from .clocks import Clocks, solve_clocks
from .job import Job, Numbers
from .matching import Instances, match

SCHEMA = 1
_MOST = 20  # entries of a list
_MOST_STEPS = 100
_MOST_PATHS = 5
_SLOW_STEP = 1.2  # times the median
PARTS = ("computing", "exposed", "idle")


class JobAnswers:
    """What is known of a job."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def instances(self) -> Instances:
        """The communications of all ranks, matched."""
        return match(self.job)

    @cached_property
    def clocks(self) -> Clocks:
        """The clocks of all ranks."""
        return solve_clocks(self.job, self.instances)

    @cached_property
    def paths(self) -> list[CriticalPath]:
        """The critical path of each step."""
        finder = PathFinder(self.job, self.instances)
        return [finder.path(step) for step in range(len(self.job.step_numbers))]

    @cached_property
    def stragglers(self) -> Stragglers:
        """Slow ranks, pauses, and whether late ranks move."""
        return stragglers(self.job, self.instances, self.paths)

    @cached_property
    def links(self) -> list[SlowLink]:
        """Slow pairs and groups."""
        return slow_links(self.job, self.instances)

    @cached_property
    def findings(self) -> list[Finding]:
        """Advice."""
        return advice.findings(self)

    @cached_property
    def step_ns(self) -> Numbers:
        """The time of each step: that of the rank that took longest for it."""
        longest: Numbers = self.job.steps["length"].max(axis=0)
        return longest

    def slow_steps(self) -> list[dict[str, Any]]:
        """Steps that took longer than usual, each with the rank it waited for and why, slowest first."""
        times, job = self.step_ns, self.job
        usual = float(np.median(times))
        found = []
        for at in np.argsort(-times, kind="stable").tolist():
            if times[at] < _SLOW_STEP * usual:
                break
            number = int(job.step_numbers[at])
            pauses = [pause for pause in self.stragglers.pauses if pause.step == number]
            rank = pauses[0].rank if pauses else self.stragglers.waiting.leading[at]
            cause = pauses[0].cause if pauses else "all ranks"
            entry = {"step": number, "ns": int(times[at]), "ratio": round(float(times[at] / usual), 3), "rank": rank}
            found.append({**entry, "cause": cause, "op": pauses[0].op if pauses else ""})
        return found

    def breakdown(self) -> dict[str, Any]:
        """Computing, exposed communication and idle time as parts of all time, of all ranks and of the extreme ones."""
        job = self.job
        whole = np.maximum(job.steps["length"].sum(axis=1), 1)
        parts = {"computing": job.steps["computing"], "exposed": job.steps["exposed"], "idle": job.idle}
        parts |= {"communication": job.steps["communication"], "loader": job.steps["loader"]}
        shares = {name: matrix.sum(axis=1) / whole for name, matrix in parts.items()}
        return {
            name: {
                "share": round(float(parts[name].sum() / whole.sum()), 4),
                "least": {"rank": int(job.ranks[np.argmin(values)]), "share": round(float(values.min()), 4)},
                "most": {"rank": int(job.ranks[np.argmax(values)]), "share": round(float(values.max()), 4)},
            }
            for name, values in shares.items()
        }

    def steps(self) -> list[dict[str, Any]]:
        """Each step: its time, and medians over the ranks of what filled it."""
        job = self.job
        columns = {
            "ns": self.step_ns,
            "computing_ns": np.median(job.steps["computing"], axis=0),
            "communication_ns": np.median(job.steps["communication"], axis=0),
            "exposed_ns": np.median(job.steps["exposed"], axis=0),
            "idle_ns": np.median(job.idle, axis=0),
            "waited_ns": self.stragglers.charged.sum(axis=0),
            "rank": np.array(self.stragglers.waiting.leading),
        }
        numbers = job.step_numbers[:_MOST_STEPS].tolist()
        return [
            {"step": number, **{name: round(float(values[at])) for name, values in columns.items()}}
            for at, number in enumerate(numbers)
        ]

    def ops(self) -> list[dict[str, Any]]:
        """The ops that take longest: time in a step in the median of ranks, quantiles of calls, the slowest rank at it."""
        job = self.job
        per_rank = job.op_ns.mean(axis=2) if job.op_ns.size else job.op_ns.sum(axis=2).astype(np.float64)
        medians = np.median(per_rank, axis=0)
        order = sorted(range(len(job.ops)), key=lambda at: (-medians[at], job.ops[at]))[:_MOST]
        found = []
        for at in order:
            name, device = job.ops[at]
            calls = job.summary(job.ops[at])
            slowest = int(np.argmax(per_rank[:, at]))
            entry: dict[str, Any] = {"op": name, "device": device, "step_ns": round(float(medians[at])), "calls": calls.count}
            if calls.count:
                entry |= {f"p{round(100 * q)}_ns": round(calls.quantile(q)) for q in (0.5, 0.99)}
            entry["slowest"] = {"rank": int(job.ranks[slowest]), "step_ns": round(float(per_rank[slowest, at]))}
            found.append(entry)
        return found

    def to_dict(self) -> dict[str, Any]:
        """All answers as plain values, lists cut to their largest entries; docs/json.md describes them."""
        job, late = self.job, self.stragglers
        numbers = job.step_numbers
        return {
            "schema": SCHEMA,
            "ranks": len(job.ranks),
            "world_size": job.world_size,
            "hosts": len(set(job.hosts)),
            "events": job.events,
            "steps": {"count": len(numbers), "first": int(numbers[0]), "last": int(numbers[-1])},
            "step_ns": round(float(np.median(self.step_ns))),
            "left_out": [vars(entry) for entry in job.left_out[:_MOST]],
            "left_out_in_all": len(job.left_out),
            "notes": job.notes[:_MOST],
            "breakdown": self.breakdown(),
            "by_step": self.steps(),
            "slow_steps": self.slow_steps()[:_MOST],
            "slow_ranks": [one.to_dict() for one in late.slow[:_MOST]],
            "pauses": [one.to_dict() for one in late.pauses[:_MOST]],
            "pauses_in_all": late.pauses_in_all,
            "waiting": {
                "pattern": late.waiting.pattern,
                "lost": late.waiting.lost,
                "unexplained": late.waiting.unexplained,
            },
            "slow_links": [link.to_dict() for link in self.links[:_MOST]],
            "slow_links_in_all": len(self.links),
            "critical_paths": [path.to_dict() for path in self._longest_paths()],
            "ops": self.ops(),
            "clocks": self.clocks.to_dict(),
            "findings": [finding.to_dict() for finding in self.findings[:_MOST]],
        }

    def to_json(self) -> str:
        """The answers as JSON; of the same digests the same bytes, whatever read them."""
        return dumps(self.to_dict(), indent=1)

    def _longest_paths(self) -> list[CriticalPath]:
        order = np.argsort(-self.step_ns, kind="stable")[:_MOST_PATHS]
        return [self.paths[at] for at in sorted(order.tolist())]

    def text(self) -> str:
        """The answers in some lines, for a terminal."""
        job = self.job
        hosts = len(set(job.hosts))
        lines = [
            f"{len(job.ranks)} ranks on {hosts} host{'s' if hosts != 1 else ''}, {len(job.step_numbers)} steps, "
            f"{job.events:,} events",
            f"a step takes {duration(float(np.median(self.step_ns)))}: " + self._parts_text(),
        ]
        waiting = self.stragglers.waiting
        if waiting.pattern != "none":
            lines.append(
                f"ranks waited {waiting.lost:.1%} of all time for late ones; the one that is waited for {waiting.pattern}"
            )
        lines.append(self._clock_text())
        for entry in self.slow_steps()[:3]:
            why = f"rank {entry['rank']}, {entry['cause']}" + (f", {entry['op']}" if entry["op"] else "")
            lines.append(f"step {entry['step']} took {duration(entry['ns'])}, {entry['ratio']:.2f} times the usual: {why}")
        lines += [f"note: {note}" for note in job.notes[:_MOST]]
        if job.left_out:
            lines.append(f"left out: {len(job.left_out)} files")
            lines += [f"  {entry.source}: {entry.reason}" for entry in job.left_out[:_MOST]]
        lines.append("")
        lines += [str(finding) for finding in self.findings[:_MOST]] or ["No rank, link or step stands out."]
        return "\n".join(lines)

    def _parts_text(self) -> str:
        shares = {name: entry["share"] for name, entry in self.breakdown().items()}
        return (
            f"computing {shares['computing']:.0%}, exposed communication {shares['exposed']:.0%}, idle {shares['idle']:.0%} "
            f"(communication in all {shares['communication']:.0%})"
        )

    def _clock_text(self) -> str:
        clocks = self.clocks.to_dict()
        if not clocks["collectives"]:
            return (
                "clocks: no collective is shared by several hosts"
                if clocks["clocks_in_all"] > 1
                else "clocks: one host, one clock"
            )
        text = (
            f"clocks: {clocks['clocks_in_all']} from {clocks['collectives']} collectives, within {duration(clocks['error_ns'])}"
        )
        return text if clocks["connected"] else f"{text}; {clocks['parts']} parts that no collective connects"
