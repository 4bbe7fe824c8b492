"""Writes a comparison of two recordings as one HTML page: no script, no network."""

from __future__ import annotations

import base64
import hashlib
import math
import os
from collections.abc import Sequence

from .._io.files import write_file
from .._io.markup import html_text
from ..analysis.diff import Change, Diff
from ..analysis.findings import duration

_STYLE = """
:root { color-scheme: light dark; --page: #f6f6f3; --ink: #1d2126; --muted: #5c6570; --line: #dcdcd5;
  --worse: #b3421e; --better: #0b6e75; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --ink: #e8eaec; --muted: #9aa4ae; --line: #343a40; --worse: #f0936d; --better: #5cc3c4; }
}
body { margin: 0 auto; padding: 24px; max-width: 1100px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 12px; color: var(--muted); }
p.verdict { font-size: 18px; color: var(--ink); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--muted); font-weight: 550; font-size: 13px; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 14em; }
.slower, .new { color: var(--worse); }
.faster, .gone { color: var(--better); }
svg { display: block; }
svg .axis { stroke: var(--muted); stroke-dasharray: 2 3; }
svg .interval { stroke: currentColor; stroke-width: 2; }
svg .point { fill: currentColor; }
"""
_WIDTH, _HEIGHT = 180, 18


def export(diff: Diff, path: str | os.PathLike[str], names: tuple[str, str] = ("a", "b")) -> None:
    """Write the page. Work without evidence of a change is counted, not listed."""
    write_file(path, [_page(diff, names).encode("utf-8", "backslashreplace")])


def _page(diff: Diff, names: tuple[str, str]) -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    step = diff.step
    rest = len(diff.changes) - len(diff.found)
    notes = "".join(f"<p>{html_text(note)}</p>" for note in diff.notes)
    nothing = "<p>No op changed by more than can be told from noise.</p>" if diff.enough else ""
    listed = _table(diff.found) if diff.found else nothing
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{digest}'">
<title>{html_text(names[0])} and {html_text(names[1])}</title>
<style>{_STYLE}</style>
<h1>{html_text(names[0])} → {html_text(names[1])}</h1>
<p class="verdict">A step took {duration(step.a_ns)} and takes {duration(step.b_ns)}:
<span class="{_class(step)}">{_percent(step.ratio)}, {step.verdict}</span></p>
<p>{diff.a_steps} and {diff.b_steps} steps{diff.of_recordings},
{diff.confidence:.0%} interval {step.interval}.
All ops together moved by {_percent(diff.drift)}, which is taken out of the figures below.</p>
{notes}
<div class="scroll">{listed}</div>
<p>{rest} more were compared, of which there is no evidence that they changed.</p>
</html>
"""


def _table(changes: Sequence[Change]) -> str:
    reach = max([0.1, *(abs(math.log(limit)) for c in changes for limit in (c.low, c.high) if 0 < limit < math.inf)])
    lines = "".join(
        f'<tr class="{_class(c)}"><td>{html_text(str(c.key))}</td><td>{duration(c.a_ns)}</td><td>{duration(c.b_ns)}</td>'
        f"<td>{'' if c.verdict in ('new', 'gone') else _percent(c.relative)}</td><td>{_interval(c, reach)}</td>"
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


def _percent(ratio: float) -> str:
    return f"{(ratio - 1) * 100:+.1f}%" if math.isfinite(ratio) else "unknown"
