"""What rows of a trace have beyond a store's columns, as text for the lines of another trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._io.strict_json import dumps
from ..store.store import RowDetails
from ._lines import picked


class DetailTexts:
    """Categories and arguments by the number of details; -1 has neither."""

    def __init__(self, details: Sequence[RowDetails], first_category: int, taken: frozenset[str]) -> None:
        """`first_category` numbers the first of `categories`; arguments in `taken` are left to the caller."""
        self._first, self._taken = first_category, taken
        names = {category: None for category, _ in details if category}
        self.categories: tuple[str, ...] = tuple(names)
        numbers = {category: first_category + at for at, category in enumerate(names)}
        self._category = np.array([numbers.get(category, -1) for category, _ in details] + [-1], np.int64)
        self._arguments = [arguments for _, arguments in details]
        self._texts: list[bytes] | None = None

    def category(self, details: NDArray[np.int32], otherwise: NDArray[Any]) -> NDArray[np.int64]:
        """The category of each row: that of its details, else the one given."""
        own = self._category[details]
        return np.where(own >= 0, own, otherwise)

    def texts(self, details: NDArray[np.int32]) -> list[bytes]:
        """The arguments of each row, every one with a comma before it."""
        if self._texts is None:
            self._texts = [*map(self._text, self._arguments), b""]
        return picked(self._texts, np.where(details >= 0, details, len(self._texts) - 1))

    def _text(self, arguments: str) -> bytes:
        import orjson  # here, because it takes longer to load than a small trace to write, and recordings have no such rows

        kept = {key: value for key, value in orjson.loads(arguments).items() if key not in self._taken}
        return b"".join(b", %s: %s" % (dumps(key).encode(), dumps(value).encode()) for key, value in kept.items())

    def has(self, argument: str) -> bool:
        """Whether the details of any row have an argument."""
        return any(f'"{argument}"' in arguments for arguments in self._arguments)
