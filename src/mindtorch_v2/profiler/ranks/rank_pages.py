"""Pages of single ranks beside the page of a job: the report of each rank that stands out, and of a usual one to compare."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from ..formats import TraceError
from ..results.loaded import load
from .answered import JobAnswers
from .answers.peers import class_medians, peer_classes
from .engines import Progress
from .recorded_rows import local_path
from .sources import find_sources, open_source


def chosen_ranks(answers: JobAnswers, most: int) -> list[int]:
    """Indices of ranks that are worth a page: slow ones, those that pause, ends of slow links, and the most usual one."""
    job, late = answers.job, answers.stragglers
    named = [one.rank for one in late.slow] + [one.rank for one in late.pauses]
    named += [rank for link in answers.links for rank in ((link.source, link.target) if link.is_pair else link.ranks[:2])]
    own = job.own.sum(axis=1).astype(np.float64)
    usual = int(np.argmin(np.abs(own / np.maximum(class_medians(own[:, None], peer_classes(job))[:, 0], 1) - 1)))
    place = {rank: at for at, rank in enumerate(job.ranks.tolist())}
    places = [place[rank] for rank in dict.fromkeys(named) if rank in place]
    return list(dict.fromkeys([*places[: max(most - 1, 0)], usual]))[:most]


def write_rank_pages(
    answers: JobAnswers, paths: Sequence[str], target: str, most: int, progress: Progress | None = None
) -> dict[int, str]:
    """Write the reports into a folder named after `target`; returns their addresses by rank, relative to it.

    Recordings that are not at hand, because the job was read from digests, have no page.
    """
    places = {source.label: source.path for source in find_sources(paths)}
    folder = os.path.splitext(target)[0] + "_ranks"
    links: dict[int, str] = {}
    chosen = [at for at in chosen_ranks(answers, most) if answers.job.sources[at] in places]
    for done, at in enumerate(chosen, 1):
        rank = int(answers.job.ranks[at])
        os.makedirs(folder, exist_ok=True)
        name = f"rank{rank:05d}.html"
        file, _ = open_source(places[answers.job.sources[at]])
        with file, local_path(file) as path:
            try:
                load(path).export_html(os.path.join(folder, name), f"Rank {rank}")
            except TraceError:
                continue
        links[rank] = f"{os.path.basename(folder)}/{name}"
        if progress is not None:
            progress(done, len(chosen))
    return links
