"""A flame graph as one picture without a script, for notebooks: callers above, widths by time, names on hovering."""

from __future__ import annotations

import zlib

from .._io.markup import html_text
from .._io.terminal import cut, shown
from ..analysis.calltree import CallNode, CallTree
from ..analysis.findings import duration
from ..store.store import EventStore

_WIDTH, _ROW, _DEEPEST = 1000, 18, 40
_LEAST = 1.0  # pixels; what is narrower is left out, with all below it
_CHARACTER = 6.4  # pixels, of the font below
_HUES = (20, 190, 45, 265, 95, 215)  # ops, and what is around them, by name


def flame_graph(store: EventStore) -> str:
    """The picture as an <svg> element: calls with the same path are one box."""
    root = CallTree(store).root()
    if not root.total_ns:
        return "<p>no time was recorded</p>"
    boxes: list[str] = []
    depth = _draw(root, 0.0, 0, _WIDTH / root.total_ns, boxes)
    label = html_text(f"Flame graph, {duration(root.total_ns)}")
    return (
        f'<svg viewBox="0 0 {_WIDTH} {depth * _ROW}" role="img" aria-label="{label}" '
        f'style="width:100%;background:#fff;font:11px ui-monospace,monospace">{"".join(boxes)}</svg>'
    )


def _draw(node: CallNode, left: float, level: int, scale: float, boxes: list[str]) -> int:
    """Draw the children of a node from `left` on; returns how many levels there are."""
    deepest = level
    for child in node.children:
        width = child.total_ns * scale
        if width < _LEAST or level >= _DEEPEST:
            continue
        boxes.append(_box(child, left, level, width))
        deepest = max(deepest, level + 1, _draw(child, left, level + 1, scale, boxes))
        left += width
    return deepest


def _box(node: CallNode, left: float, level: int, width: float) -> str:
    hue = _HUES[zlib.crc32(node.name.encode("utf-8", "replace")) % len(_HUES)]
    tip = html_text(f"{node.name}: {duration(node.total_ns)}, self {duration(node.self_ns)}, {node.count:,} calls", 1000)
    letters = int((width - 6) / _CHARACTER)
    text = html_text(cut(shown(node.name), letters)) if letters >= 3 else ""
    written = f'<text x="{left + 3:.1f}" y="{level * _ROW + 13}" fill="#111">{text}</text>' if text else ""
    return (
        f'<g><title>{tip}</title><rect x="{left:.1f}" y="{level * _ROW}" width="{max(width - 0.5, 0.5):.1f}" '
        f'height="{_ROW - 1}" fill="hsl({hue} 60% 80%)"/>{written}</g>'
    )
