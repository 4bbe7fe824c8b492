"""Writes a comparison of two recordings as one HTML page: no script, no network."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

from .._io.files import write_file
from .._io.markup import html_text
from ..analysis.comparison.diff import Change, Diff
from ..analysis.findings import duration, relative_change
from .flame_difference import Pair, flame_difference
from .plain_page import plain_page

_WIDTH, _HEIGHT = 180, 18


def export(diff: Diff, path: str | os.PathLike[str], names: tuple[str, str] = ("a", "b"), calls: Pair | None = None) -> None:
    """Write the page. Of enough steps, work without evidence of a change is counted, not listed.

    calls: draw them as a flame graph, too.
    """
    write_file(path, [_page(diff, names, calls).encode("utf-8", "backslashreplace")])


def _page(diff: Diff, names: tuple[str, str], calls: Pair | None) -> str:
    step = diff.step
    rest = len(diff.changes) - len(diff.listed)
    notes = "".join(f"<p>{html_text(note)}</p>" for note in diff.notes)
    nothing = "<p>No op changed by more than can be told from noise.</p>" if diff.enough else ""
    listed = _table(diff.listed) if diff.listed else nothing
    title = f"{names[0]} and {names[1]}"
    memory = "".join(f"<p>{html_text(str(change))}</p>" for change in diff.memory)
    body = f"""<h1>{html_text(names[0])} → {html_text(names[1])}</h1>
<p class="verdict">A step took {duration(step.a_ns)} and takes {duration(step.b_ns)}:
<span class="{_class(step)}">{step.moved}, {step.verdict}</span></p>
<p>{diff.a_steps} and {diff.b_steps} steps{diff.of_recordings}{diff.kind_of_steps},
{diff.confidence:.0%} interval {step.interval}.
All ops together moved by {relative_change(diff.drift)}, which is taken out of the figures below.</p>
{memory}{notes}
<div class="scroll">{listed}</div>
<p>{rest} more were compared, of which there is no evidence that they changed.</p>
{_flame(calls)}"""
    return plain_page(title, body)


def _flame(calls: Pair | None) -> str:
    graph = "" if calls is None else flame_difference(calls)
    if not graph:
        return ""
    return (
        "<h2>Calls</h2>\n<p>As wide as the time of a step after the change; orange became slower, blue faster, as measured: "
        f"the machine's own changes are not taken out.</p>\n{graph}\n"
    )


def _table(changes: Sequence[Change]) -> str:
    reach = max([0.1, *(abs(math.log(limit)) for c in changes for limit in (c.low, c.high) if 0 < limit < math.inf)])
    lines = "".join(
        f'<tr class="{_class(c)}"><td>{html_text(str(c.key))}</td><td>{duration(c.a_ns)}</td><td>{duration(c.b_ns)}</td>'
        f"<td>{c.moved}</td><td>{_interval(c, reach)}</td>"
        f"<td>{c.verdict}</td></tr>\n"
        for c in changes
    )
    return (
        "<table><thead><tr><th>op</th><th>before, a step</th><th>after</th><th>change</th><th>interval</th><th>verdict</th>"
        f"</tr></thead><tbody>\n{lines}</tbody></table>"
    )


def _interval(change: Change, reach: float) -> str:
    """The interval on a logarithmic scale, no change in the middle."""
    if not 0 < change.low <= change.high < math.inf:
        return ""

    def x(ratio: float) -> float:
        return round(_WIDTH / 2 * (1 + math.log(ratio) / reach * 0.95), 1)

    middle = _HEIGHT / 2
    label = change.interval
    return (
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="{label}"><title>{label}</title>'
        f'<line class="axis" x1="{_WIDTH / 2}" x2="{_WIDTH / 2}" y1="0" y2="{_HEIGHT}"/>'
        f'<line class="interval" x1="{x(change.low)}" x2="{x(change.high)}" y1="{middle}" y2="{middle}"/>'
        f'<circle class="point" cx="{x(change.relative)}" cy="{middle}" r="4"/></svg>'
    )


def _class(change: Change) -> str:
    return change.verdict.replace(" ", "-")
