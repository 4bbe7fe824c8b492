"""Finding: the result of an advice rule; and durations, sizes and relative changes as text."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from .._io.terminal import shown

_LARGE_FACTOR = 3  # changes from which a percentage is harder to read than a factor


@dataclass(frozen=True)
class Finding:
    """One piece of advice with its evidence.

    rule: the rule's name. title: what was found, in one line. detail: why, and what to do. evidence: figures and places.
    where: "file.py(12)" of the user's code, if stacks were recorded. gain_ns: an estimate of the time saved, share: that as
    a part of the time of the recorded steps, or of the recording if it has none; both None if the rule cannot tell. of_steps:
    whether it is a part of the steps.
    """

    rule: str
    title: str
    detail: str
    evidence: tuple[str, ...] = ()
    where: str | None = None
    gain_ns: int | None = None
    share: float | None = None
    of_steps: bool = False

    def to_dict(self) -> dict[str, Any]:
        """All fields but `of_steps`, which the text alone needs, as plain values, for JSON."""
        fields = asdict(self)
        del fields["of_steps"]
        return fields

    def __str__(self) -> str:
        gain = "" if self.gain_ns is None else f" (up to {duration(self.gain_ns)}"
        if gain:
            whole = "steps" if self.of_steps else "recording"
            gain += f", {self.share:.0%} of the {whole})" if self.share is not None else ")"
        place = f"\n  at {shown(self.where)}" if self.where else ""
        head = f"[{self.rule}] {shown(self.title)}{gain}{place}"
        return "\n".join([head, f"  {shown(self.detail)}", *(f"  - {shown(fact)}" for fact in self.evidence)])


def duration(ns: float) -> str:
    """Nanoseconds as text of three digits and a unit: "1.23 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if abs(ns) >= size:
            return f"{ns / size:.3g} {unit}" if abs(ns) < 1000 * size else f"{ns / size:.0f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    """Bytes as text of three digits and a unit: "1.23 MB"."""
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(count) >= scale:
            return f"{count / scale:.3g} {unit}" if abs(count) < 1000 * scale else f"{count / scale:.0f} {unit}"
    return f"{count:.0f} B"


def relative_changes(*ratios: float) -> tuple[str, ...]:
    """Ratios of after to before as text, all in one form: "+12.3%", or "180x" and "0.02x" if one is a change by a factor of 3.

    What is not finite is "unknown".
    """
    far = any(math.isfinite(ratio) and not 1 / _LARGE_FACTOR < ratio < _LARGE_FACTOR for ratio in ratios)
    return tuple((_factor(ratio) if far else f"{ratio - 1:+.1%}") if math.isfinite(ratio) else "unknown" for ratio in ratios)


def relative_change(ratio: float) -> str:
    """One ratio of after to before as text, in the form of `relative_changes`."""
    return relative_changes(ratio)[0]


def _factor(ratio: float) -> str:
    return f"{Decimal(f'{ratio:.3g}'):,f}x"
