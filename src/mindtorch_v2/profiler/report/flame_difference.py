"""The call trees of two recordings as one flame graph, colored by what became faster or slower. SVG without a script."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .._io.markup import html_text
from ..analysis.calltree import CallNode, CallTree
from ..analysis.findings import duration
from ..analysis.steps import steps
from ..store.store import EventStore

_WIDTH, _ROW = 1052, 20
_LEAST = 2.0  # pixels: what is narrower is not drawn
_LETTER = 6.7
_CLASSES = 3  # shades on each side


@dataclass
class Pair:
    """The calls of one path in both recordings: nanoseconds of a step before and after."""

    name: str
    before_ns: float = 0.0
    after_ns: float = 0.0
    children: dict[str, Pair] = field(default_factory=dict)

    @property
    def size(self) -> float:
        """What it is drawn by: its time after, or before if there is none of it any more. At least what is in it."""
        return max(self.after_ns or self.before_ns, sum(child.size for child in self.children.values()))

    @property
    def shade(self) -> int:
        """From -3, much faster or gone, to 3, much slower or new; 0 within 5 %."""
        most = max(self.before_ns, self.after_ns)
        change = (self.after_ns - self.before_ns) / most if most else 0.0
        if abs(change) < 0.05:
            return 0
        step = 1 if abs(change) < 0.15 else 2 if abs(change) < 0.35 else _CLASSES
        return step if change > 0 else -step


def pair_up(before: Sequence[EventStore], after: Sequence[EventStore]) -> Pair:
    """The merged tree of ops and ranges, each side the mean of its recordings, by step."""
    root = Pair("a step")
    for stores, side in ((before, "before_ns"), (after, "after_ns")):
        for store in stores:
            scale = 1 / max(1, len(steps(store).start)) / len(stores)
            _add(root, CallTree(store, ~store.is_python).root(), side, scale)
    return root


def _add(pair: Pair, node: CallNode, side: str, scale: float) -> None:
    setattr(pair, side, getattr(pair, side) + node.total_ns * scale)
    for child in node.children:
        _add(pair.children.setdefault(child.name, Pair(child.name)), child, side, scale)


def flame_difference(root: Pair) -> str:
    """The graph as SVG; "" if nothing was recorded. Widths are times after the change."""
    if not root.size:
        return ""
    boxes: list[str] = []
    depth = _draw(boxes, root, 0.0, 0, _WIDTH / root.size)
    height = (depth + 1) * _ROW
    return (
        f'<svg class="flame" viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="Flame graph of the time after the change, colored by what became faster or slower">{"".join(boxes)}</svg>'
    )


def _draw(boxes: list[str], pair: Pair, left: float, depth: int, scale: float) -> int:
    """Draw a node and those in it, the largest first; returns the greatest depth."""
    wide = pair.size * scale
    if wide < _LEAST:
        return max(0, depth - 1)
    told = html_text(f"{pair.name}: {duration(pair.before_ns)} before, {duration(pair.after_ns)} after, a step")
    room = int((wide - 8) / _LETTER)
    short = pair.name if len(pair.name) <= room else pair.name[: max(0, room - 1)] + "…"
    text = f'<text x="{left + 4:.1f}" y="{depth * _ROW + 14}">{html_text(short)}</text>' if room >= 3 else ""
    boxes.append(
        f'<g><title>{told}</title><rect class="d{pair.shade}" x="{left:.1f}" y="{depth * _ROW}" width="{wide:.1f}" '
        f'height="{_ROW}"/>{text}</g>'
    )
    deepest, at = depth, left
    for child in sorted(pair.children.values(), key=lambda one: -one.size):
        deepest = max(deepest, _draw(boxes, child, at, depth + 1, scale))
        at += child.size * scale
    return deepest
