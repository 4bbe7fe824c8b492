"""Advice from many ranks: one function a rule, each with the rank or link it is about."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.findings import Finding, duration, size
from .answers.links import SlowLink
from .answers.stragglers import SlowRank, moves

if TYPE_CHECKING:
    from .answered import JobAnswers

MOST = 20  # findings of a rule
_LEAST_EXPOSED = 0.3
_LEAST_MEMORY = 1.25

_CAUSES = {
    "computing": "Its ops take longer than the same ops elsewhere: look at the machine (clock, temperature, power limit, other "
    "processes), or exchange it to see whether the slowness moves with it.",
    "more work": "It gets more to do than its peers: balance tokens, sequence lengths or experts between ranks.",
    "data loader": "Its data loader is slower than the others': look at its disk, its network and the workers of its host.",
    "idle": "It begins late: its ops take as long as elsewhere, but there is time between them. Look at Python, garbage "
    "collection, other processes and the launching thread of that rank: `mtprof report` of its recording shows where.",
}


def findings(answers: JobAnswers) -> list[Finding]:
    """What all rules found, the costliest first."""
    every = [finding for rule in RULES for finding in rule(answers)]
    return sorted(every, key=lambda finding: (-(finding.gain_ns or 0), finding.rule, finding.title))


def slow_rank(answers: JobAnswers) -> list[Finding]:
    """A rank is slower than its peers in nearly every step."""
    return [_slow(answers, one) for one in answers.stragglers.slow[:MOST]]


def _slow(answers: JobAnswers, one: SlowRank) -> Finding:
    name = {"data loader": "data_loader_of_rank", "more work": "unbalanced_work"}.get(one.cause, "slow_rank")
    what = f"Rank {one.rank}" + (f" on {one.host}" if one.host else "")
    evidence = [
        f"its own time is {one.ratio:.3f} times that of its peers, {one.sigmas:.0f} standard deviations away",
        f"{duration(one.excess_ns)} more in a step; the others waited {duration(one.lost_ns)} for it in all",
    ]
    if one.op:
        evidence.append(f"most of it is {one.op}, which takes {one.op_ratio:.2f} times as long")
    elif one.cause == "computing":
        evidence.append("all its ops are slower alike")
    if one.cause == "more work":
        evidence.append(f"its ops take {one.work_ratio:.3f} times the elements")
    gain = one.excess_ns * len(answers.job.step_numbers)
    return _finding(answers, name, f"{what} is slow: {one.cause}", _CAUSES[one.cause], evidence, gain)


def pauses(answers: JobAnswers) -> list[Finding]:
    """A rank stops for a while in single steps."""
    by_rank: dict[int, list[int]] = {}
    for at, pause in enumerate(answers.stragglers.pauses):
        by_rank.setdefault(pause.rank, []).append(at)
    found = []
    for rank, places in list(by_rank.items())[:MOST]:
        own = [answers.stragglers.pauses[at] for at in places]
        total = sum(pause.excess_ns for pause in own)
        steps = ", ".join(str(pause.step) for pause in own[:8]) + (", ..." if len(own) > 8 else "")
        causes = sorted({pause.cause for pause in own})
        evidence = [
            f"in step{'s' if len(own) > 1 else ''} {steps}: {duration(total)} beyond what the rank usually takes",
            f"in {' and '.join(causes)} time",
        ]
        title = f"Rank {rank} pauses in {len(own)} of {len(answers.job.step_numbers)} steps"
        detail = "All ranks wait for it then. Garbage collection, checkpoints, logging and other processes do this."
        found.append(_finding(answers, "pause_of_rank", title, detail, evidence, total))
    return found


def slow_link(answers: JobAnswers) -> list[Finding]:
    """A pair or a group takes longer for the same bytes than others."""
    links = answers.links
    hosts = _shared_host(links)
    found = []
    for link in links[:MOST]:
        what = f"from rank {link.source} to rank {link.target}" if link.is_pair else f"of group {link.group}"
        evidence = [
            f"{link.kind} of {size(link.size)} takes {duration(link.transfer_ns)}, {link.ratio:.2f} times the median of "
            f"{link.compared} others",
            f"hosts: {', '.join(link.hosts[:8])}",
        ]
        if hosts:
            evidence.append(f"all {len(links)} slow links have {hosts} in common")
        detail = "The last rank to come waits as long, so it is the transfer itself: look at the NIC, the cable and the switch."
        found.append(_finding(answers, "slow_link", f"The link {what} is slow", detail, evidence, None))
    return found


def _shared_host(links: list[SlowLink]) -> str:
    common = set.intersection(*(set(link.hosts) for link in links)) if len(links) > 1 else set()
    return ", ".join(sorted(common))


def moving_stragglers(answers: JobAnswers) -> list[Finding]:
    """Each step waits for another rank."""
    waiting = answers.stragglers.waiting
    if not moves(waiting):
        return []
    names = sorted(set(waiting.leading))
    evidence = [
        f"ranks waited {waiting.unexplained:.1%} of all time for late ones",
        f"{len(names)} different ranks lead the critical paths of {len(waiting.leading)} steps: "
        + ", ".join(map(str, names[:8])),
    ]
    detail = (
        "No rank is slow by itself: the work of a step varies between ranks, or each is disturbed now and then. Fewer "
        "synchronizations, larger buckets or more even batches help."
    )
    gain = round(waiting.unexplained * float(np.median(answers.job.steps["length"].sum(axis=1))))
    return [
        _finding(answers, "moving_stragglers", "The rank that is waited for changes from step to step", detail, evidence, gain)
    ]


def exposed_communication(answers: JobAnswers) -> list[Finding]:
    """Ranks spend much of their time in communication that hides behind nothing."""
    job = answers.job
    whole = int(job.steps["length"].sum())
    exposed = int(job.steps["exposed"].sum())
    if not whole or exposed < _LEAST_EXPOSED * whole:
        return []
    hidden = int(job.steps["communication"].sum()) - exposed
    waited = int(answers.instances.exposed_wait.sum()) if len(answers.instances) else 0
    evidence = [
        f"{exposed / whole:.0%} of all time is communication with nothing to compute meanwhile; "
        f"{max(hidden, 0) / whole:.0%} is hidden",
        f"{waited / whole:.0%} is waiting for late ranks, the rest are transfers",
    ]
    detail = "Start collectives earlier (buckets, prefetching), send less (precision, accumulation), or compute more in a step."
    gain = round(float(np.median(job.steps["exposed"].sum(axis=1))))
    return [_finding(answers, "exposed_communication", "Communication is not hidden behind computing", detail, evidence, gain)]


def memory_of_rank(answers: JobAnswers) -> list[Finding]:
    """One rank needs much more memory than the others."""
    job = answers.job
    peaks = job.steps["memory"].max(axis=1)
    if len(peaks) < 3 or (peaks <= 0).any():
        return []
    usual = float(np.median(peaks))
    at = int(np.argmax(peaks))
    if peaks[at] < _LEAST_MEMORY * usual:
        return []
    evidence = [f"its peak is {size(int(peaks[at]))}; the median of all is {size(usual)}"]
    detail = "It runs out of memory first: move work, or what only it holds, elsewhere."
    title = f"Rank {int(job.ranks[at])} needs more memory than the others"
    return [_finding(answers, "memory_of_rank", title, detail, evidence, None)]


def unaligned_clocks(answers: JobAnswers) -> list[Finding]:
    """Clocks of ranks that contradict each other."""
    clocks = answers.clocks
    if not clocks.contradictions:
        return []
    evidence = [
        f"rank {one.rank} on {one.host}: {duration(one.by_ns)} from its host's other ranks in {one.collectives} collectives"
        for one in clocks.contradictions[:8]
    ]
    detail = "Ranks of one host read one clock, and still disagree. They are aligned each by itself."
    return [_finding(answers, "contradicting_clocks", "Clocks of one host contradict each other", detail, evidence, None)]


def _finding(answers: JobAnswers, rule: str, title: str, detail: str, evidence: list[str], gain: int | None) -> Finding:
    whole = float(np.median(answers.job.steps["length"].sum(axis=1)))
    share = None if gain is None or whole <= 0 else round(gain / whole, 4)
    return Finding(rule, title, detail, tuple(evidence), None, gain, share, of_steps=True)


RULES: tuple[Callable[[JobAnswers], list[Finding]], ...] = (
    slow_rank,
    pauses,
    slow_link,
    moving_stragglers,
    exposed_communication,
    memory_of_rank,
    unaligned_clocks,
)
