"""Writes a history as one HTML page: charts of time and memory over the versions, and a table. No script, no network."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from .._io.files import write_file
from .._io.markup import html_text
from ..analysis.comparison.history import Point
from ..analysis.findings import duration, relative_change
from ..exporters.table import format_memory
from .plain_page import plain_page

_WIDTH, _HEIGHT, _MARGIN = 1000, 200, 10


def export(points: Sequence[Point], path: str | os.PathLike[str], title: str = "History") -> None:
    """Write the page."""
    write_file(path, [_page(points, title).encode("utf-8", "backslashreplace")])


def _page(points: Sequence[Point], title: str) -> str:
    found = sum(point.verdict in ("slower", "faster") for point in points)
    charts = _chart("time of a step: line at the lower quartile, bar up to p95", points)
    if any(point.peak is not None for point in points):
        charts += _memory_chart(points)
    lines = "".join(
        f'<tr class="{point.verdict.replace(" ", "-")}"><td>{html_text(point.label)}</td><td>{html_text(_when(point))}</td>'
        f"<td>{duration(point.step_ns)}</td><td>{'' if point.ratio is None else relative_change(point.ratio)}</td>"
        f"<td>{html_text(point.verdict)}</td><td>{html_text(point.largest)}</td><td>{point.ops:,.0f}</td>"
        f"<td>{'' if point.peak is None else html_text(format_memory(point.peak))}</td><td>{point.steps}</td></tr>\n"
        for point in points
    )
    body = f"""<h1>{html_text(title)}</h1>
<p>{len(points)} recordings; {found} changed beyond doubt from the one before.</p>
{charts}
<div class="scroll"><table><thead><tr><th>version</th><th>recorded</th><th>a step</th><th>change</th><th>verdict</th>
<th>most changed</th><th>ops a step</th><th>peak of memory</th><th>steps</th></tr></thead><tbody>
{lines}</tbody></table></div>
"""
    return plain_page(title, body)


def _when(point: Point) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(point.when_ns / 1e9)) if point.when_ns else ""


def _tip(point: Point) -> str:
    return html_text(f"{point.label}: {duration(point.step_ns)} {point.verdict}")


def _x(number: int, count: int) -> float:
    return round(_MARGIN + (_WIDTH - 2 * _MARGIN) * number / max(1, count - 1), 1)


def _chart(label: str, points: Sequence[Point]) -> str:
    most = max([point.p95_ns for point in points] + [1.0])

    def y(value: float) -> float:
        return round(_HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * value / most, 1)

    marks = "".join(
        f'<g class="{point.verdict.replace(" ", "-")}"><title>{_tip(point)}</title>'
        f'<line class="interval" x1="{x}" x2="{x}" y1="{y(point.step_ns)}" y2="{y(point.p95_ns)}"/>'
        f'<circle class="point" cx="{x}" cy="{y(point.step_ns)}" r="5"/></g>'
        for point, x in ((point, _x(number, len(points))) for number, point in enumerate(points))
    )
    line = " ".join(f"{_x(number, len(points))},{y(point.step_ns)}" for number, point in enumerate(points))
    return _svg(label, duration(most), f'<polyline class="axis" fill="none" points="{line}"/>{marks}')


def _memory_chart(points: Sequence[Point]) -> str:
    most = max(point.peak or 0 for point in points) or 1
    known = [
        (_x(number, len(points)), round(_HEIGHT - _MARGIN - (_HEIGHT - 2 * _MARGIN) * point.peak / most, 1), point)
        for number, point in enumerate(points)
        if point.peak is not None
    ]
    marks = "".join(
        f'<circle class="point" cx="{x}" cy="{y}" r="5"><title>{html_text(f"{point.label}: {format_memory(point.peak or 0)}")}'
        "</title></circle>"
        for x, y, point in known
    )
    line = " ".join(f"{x},{y}" for x, y, _ in known)
    return _svg("peak of memory", format_memory(most), f'<polyline class="axis" fill="none" points="{line}"/>{marks}')


def _svg(label: str, most: str, marks: str) -> str:
    text = html_text(f"{label}; the top is {most}")
    return (
        f'<p>{text}</p><svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{text}">'
        f'<line class="axis" x1="0" x2="{_WIDTH}" y1="{_HEIGHT - 1}" y2="{_HEIGHT - 1}"/>{marks}</svg>'
    )
