"""A line on stderr that shows how far slow work is."""

from __future__ import annotations

import os
import sys
import time
from types import TracebackType

from .._io.terminal import cut, padded, shown, width

_PATIENCE_S = 1.0  # work that takes longer shows a line
_INTERVAL_S = 0.1
_DEFAULT_WIDTH = 80


class ProgressLine:
    """Shows `text` and how much is done, if stderr is a terminal and the work takes more than a second.

    Use it as a context manager, which erases the line at the end, and call `update` along the way.
    """

    def __init__(self, text: str) -> None:
        self._text = shown(text)
        self._stream = sys.stderr
        self._enabled = sys.stderr is not None and sys.stderr.isatty()
        self._next_draw = time.monotonic() + _PATIENCE_S
        self._shown = ""

    def __enter__(self) -> ProgressLine:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown:
            self._draw("")

    def update(self, done: int, total: int) -> None:
        """Show that `done` of `total` bytes are read. Of a pipe, `total` is no more than `done`: it has no percentage."""
        if not self._enabled or time.monotonic() < self._next_draw:
            return
        self._next_draw = time.monotonic() + _INTERVAL_S
        amount = self._amount(done, total)
        # A full line would wrap, and could not be erased.
        self._draw(cut(self._text, self._width() - 1 - len(amount)) + amount)

    def _amount(self, done: int, total: int) -> str:
        return f": {done / total:.0%} of {total / 1e6:.0f} MB" if total > done else f": {done / 1e6:.0f} MB"

    def _draw(self, line: str) -> None:
        # Spaces cover the rest of a longer line: they need no escape codes of the terminal.
        self._stream.write(f"\r{padded(line, width(self._shown), left=True)}\r{line}")
        self._stream.flush()
        self._shown = line

    def _width(self) -> int:
        try:
            return os.get_terminal_size(self._stream.fileno()).columns or _DEFAULT_WIDTH
        except (OSError, ValueError):  # a stream without a descriptor, or of a terminal that does not tell its size
            return _DEFAULT_WIDTH


class CountLine(ProgressLine):
    """A ProgressLine that counts things, such as files."""

    def __init__(self, text: str, things: str) -> None:
        super().__init__(text)
        self._things = things

    def _amount(self, done: int, total: int) -> str:
        return f": {done:,} of {total:,} {self._things}"
