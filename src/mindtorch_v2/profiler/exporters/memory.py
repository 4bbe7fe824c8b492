"""The memory timeline: bytes by category over time as JSON, as single events, or as a chart in an HTML page."""

from __future__ import annotations

import os

from .._io.files import write_file
from .._io.markup import html_text
from .._io.strict_json import dumps
from ..store.memory_profile import BEFORE, Action, Category, MemoryBlocks

# The columns of a row after the first, which is always 0 as in torch.
COLUMNS: tuple[Category | None, ...] = (
    Category.PARAMETER,
    Category.OPTIMIZER_STATE,
    Category.INPUT,
    Category.TEMPORARY,
    Category.ACTIVATION,
    Category.GRADIENT,
    Category.AUTOGRAD_DETAIL,
    None,
)
_COLORS = ("#2e7d32", "#f9a825", "#212121", "#8e24aa", "#c62828", "#1565c0", "#6a1b9a", "#9e9e9e")
_WIDTH, _HEIGHT = 1200, 500


def export(profile: MemoryBlocks, path: str | os.PathLike[str], *, device: str = "cpu") -> None:
    """Write what a device's memory was used for.

    *.html: a chart. *raw.json.gz: rows of (time in ns, action, bytes, category). Anything else: [times in us, rows of
    bytes per category], gzipped if it ends in .gz.
    """
    name = os.fspath(path)
    if name.endswith(".html"):
        text = _page(*_totals(profile, device), device)
    elif name.endswith("raw.json.gz"):
        text = dumps(_raw(profile, device))
    else:
        text = dumps(_totals(profile, device))
    write_file(path, [text.encode()])


def _changes(profile: MemoryBlocks, device: str) -> list[tuple[int, Action, int, int]]:
    """(time, action, signed bytes, column); a new version is a free of the old one and an allocation of the next."""
    changes: list[tuple[int, Action, int, int]] = []
    for time, action, size, category in profile.on_device(device):
        column = COLUMNS.index(category)
        if action in (Action.INCREMENT_VERSION, Action.DESTROY):
            changes.append((time, action, -size, column))
        if action is not Action.DESTROY:
            changes.append((time, action, size, column))
    return changes


def _raw(profile: MemoryBlocks, device: str) -> list[list[int]]:
    return [[time, action.value, size, column] for time, action, size, column in _changes(profile, device)]


def _totals(profile: MemoryBlocks, device: str) -> tuple[list[int], list[list[int]]]:
    """Times in microseconds, and the bytes in use from each of them on: a zero, then one number per category."""
    changes = _changes(profile, device)
    first = next((time for time, *_ in changes if time != BEFORE), 0)
    times: list[int] = []
    rows: list[list[int]] = []
    now = [0] * (len(COLUMNS) + 1)
    for at, (time, _, size, column) in enumerate(changes):
        now[column + 1] += size
        following = changes[at + 1][0] if at + 1 < len(changes) else None
        if time != following:
            times.append((first if time == BEFORE else time) // 1000)
            rows.append(now.copy())
    return times, rows


def _page(times: list[int], rows: list[list[int]], device: str) -> str:
    """A page with a stacked area chart in SVG, without scripts."""
    most = max((sum(row) for row in rows), default=0) or 1
    begin, span = (times[0], max(times[-1] - times[0], 1)) if times else (0, 1)
    areas, legend = [], []
    for column, (category, color) in enumerate(zip(COLUMNS, _COLORS, strict=True), 1):
        lower = [(t, sum(row[1:column])) for t, row in zip(times, rows, strict=True)]
        upper = [(t, sum(row[1 : column + 1])) for t, row in zip(times, rows, strict=True)]
        points = " ".join(
            f"{(t - begin) / span * _WIDTH:.1f},{_HEIGHT - size / most * _HEIGHT:.1f}"
            for t, size in [*_steps(lower), *reversed(_steps(upper))]
        )
        title = category.name.replace("_", " ").capitalize() if category else "Unknown"
        areas.append(f'<polygon points="{points}" fill="{color}"><title>{title}</title></polygon>')
        peak = max((row[column] for row in rows), default=0)
        legend.append(f'<li><span style="background:{color}"></span>{title}: at most {peak:,} bytes</li>')
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Memory of {html_text(device)}</title>
<style>body {{ font-family: sans-serif; margin: 2em }} li {{ list-style: none }}
span {{ display: inline-block; width: 1em; height: 1em; margin-right: .5em }}</style></head>
<body><h1>Memory of {html_text(device)}</h1>
<p>At most {most:,} bytes at a time, over {span / 1000:,.3f} ms.</p>
<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="100%" role="img" aria-label="bytes in use by category over time">
{"".join(areas)}
</svg>
<ul>{"".join(legend)}</ul></body></html>
"""


def _steps(line: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The points of a step function: the line keeps its height until the next point."""
    points: list[tuple[int, int]] = []
    for at, (time, size) in enumerate(line):
        if at:
            points.append((time, line[at - 1][1]))
        points.append((time, size))
    return points
