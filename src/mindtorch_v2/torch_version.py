"""TorchVersion: a version that compares with text and tuples as versions do."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from .version import __version__ as _release

# Parts of a release before the final one, in order; a final release comes after them.
_STAGES = {"dev": -4, "a": -3, "b": -2, "rc": -1}
_FORM = re.compile(r"v?(\d+(?:\.\d+)*)(?:\.?(dev|a|b|rc)(\d*))?(?:\.post(\d+))?(?:\.dev(\d+))?(?:\+.*)?", re.IGNORECASE)


def _as_key(version: Any) -> tuple[Any, ...] | None:
    """What to compare a version by; None for what is none."""
    if isinstance(version, str):
        text = version
    elif isinstance(version, Iterable):
        text = ".".join(str(part) for part in version)
    else:
        text = str(version)
    match = _FORM.fullmatch(text.strip())
    if match is None:
        return None
    numbers = [int(part) for part in match.group(1).split(".")]
    while len(numbers) > 1 and not numbers[-1]:
        numbers.pop()  # 2.13.0 is 2.13
    stage = _STAGES[match.group(2).lower()] if match.group(2) else _STAGES["dev"] if match.group(5) else 0
    return numbers, stage, int(match.group(3) or 0), int(match.group(4) or 0)


class TorchVersion(str):
    """A string that compares as a version: `TorchVersion("2.13.0") > "2.9"`, and with tuples, `> (2, 9)`.

    Where the other is no version, the texts are compared.
    """

    __slots__ = ()

    def _order(self, other: Any) -> int:
        mine, its = _as_key(str(self)), _as_key(other)
        if mine is None or its is None:
            mine, its = (str(self),), (str(other),)
        return (mine > its) - (mine < its)

    def __gt__(self, other: Any) -> bool:
        return self._order(other) > 0

    def __lt__(self, other: Any) -> bool:
        return self._order(other) < 0

    def __ge__(self, other: Any) -> bool:
        return self._order(other) >= 0

    def __le__(self, other: Any) -> bool:
        return self._order(other) <= 0

    def __eq__(self, other: object) -> bool:
        return self._order(other) == 0

    def __ne__(self, other: object) -> bool:
        return self._order(other) != 0

    def __hash__(self) -> int:
        return hash(str(self))


__version__ = TorchVersion(_release)
