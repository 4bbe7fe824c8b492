"""Reads a JSON trace as a stream: the events of `traceEvents` in batches, the other fields by name, in bounded memory.

A batch ends at the last `}, {` of the current block. If everything up to there is valid JSON, it was a boundary between
events and not something inside one; if not, the block is parsed event by event.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from typing import Any

import orjson

from .._recovery import NOT_STRICT, Recovery, TraceError

_EVENTS = "traceEvents"
_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|["{}\[\],]', re.DOTALL)
_BETWEEN = re.compile(rb"\}[ \t\r\n]*,[ \t\r\n]*(?=\{)")
_TAIL = 1 << 14
# The largest event or field. After damage the limit shrinks, so that the search for the next event starts sooner.
_MOST_PATIENCE = 16 << 20
_LEAST_PATIENCE = 1 << 16
_QUOTE, _COMMA, _OPEN, _CLOSE = b'",[]'
_OPENING, _CLOSING = b"{[", b"}]"


class _End(Exception):
    """The data ends inside a value."""


class EventStream:
    """An iterator over lists of parsed events, for one pass. `fields` has the rest of the document afterwards.

    Damage is counted in `recovery`; TraceError if the data is not a trace at all.
    """

    def __init__(self, blocks: Iterator[bytes], recovery: Recovery) -> None:
        self._blocks = blocks
        self._recovery = recovery
        self._buffer = b""
        self._at = 0
        self._patience = _MOST_PATIENCE
        self._wasted = 0
        self.fields: dict[str, Any] = {}
        self.raw = b""  # the text of the current batch
        self.found_events = False

    def __iter__(self) -> Iterator[list[Any]]:
        try:
            yield from self._document()
        except _End:
            self._recovery.complete = False
            self._recovery.bytes_dropped += len(self._buffer) - self._at

    # ------------------------------------------------------------------ the document

    def _document(self) -> Iterator[list[Any]]:
        self._more(4)
        if self._buffer.startswith(_BOM):
            self._at = len(_BOM)
        opening = self._peek()
        if opening not in _OPENING:
            raise TraceError("the file is neither a trace in JSON nor a saved profile")
        self._at += 1
        yield from self._array() if opening == _OPEN else self._object()
        try:
            self._peek()
        except _End:
            return
        self._recovery.note("there is something else after the trace")
        self._recovery.bytes_dropped += len(self._buffer) - self._at + sum(map(len, self._blocks))

    def _object(self) -> Iterator[list[Any]]:
        while True:
            sign = self._peek()
            if sign in _CLOSING:
                self._at += 1
                return
            if sign == _COMMA:
                self._at += 1
                continue
            key = self._parsed(self._string() if sign == _QUOTE else self._broken_field())
            if self._peek() != ord(":"):
                self._broken_field()
            self._at += 1
            if key == _EVENTS and self._peek() == _OPEN:
                self._at += 1
                yield from self._array()
            else:
                value = self._parsed(self._value())
                if isinstance(key, str) and value is not _NOTHING:
                    self.fields[key] = value

    def _broken_field(self) -> bytes:
        """Raise _End: the end of a field whose beginning is damaged cannot be found."""
        self._recovery.note("a field of the document is damaged")
        raise _End

    # ------------------------------------------------------------------ the events

    def _array(self) -> Iterator[list[Any]]:
        """The events up to the end of the array, and skip that."""
        self.found_events = True
        while True:
            cut = self._last_boundary()
            if cut is None and self._more(len(self._buffer) - self._at + 1) and len(self._buffer) < _MOST_PATIENCE:
                continue
            if cut is not None:
                raw = self._buffer[self._at : cut[0]]
                try:
                    batch = orjson.loads(b"[%b]" % raw)
                except orjson.JSONDecodeError:
                    pass
                else:
                    self._at, self.raw = cut[1], raw
                    yield batch
                    self._more(1)
                    continue
            ended, batch = self._one_by_one()
            if batch:
                yield batch
            if ended:
                return

    def _last_boundary(self) -> tuple[int, int] | None:
        """End of the last complete event in the buffer and start of the next one; None if the buffer has no two events."""
        size = _TAIL
        while True:
            first = max(self._at, len(self._buffer) - size)
            last = deque(_BETWEEN.finditer(self._buffer, first), maxlen=1)
            if last:
                return last[0].start() + 1, last[0].end()
            if first == self._at:
                return None
            size *= 8

    def _one_by_one(self) -> tuple[bool, list[Any]]:
        """Whether the array ended, and the events of the buffer, each parsed separately."""
        events: list[Any] = []
        texts: list[bytes] = []
        ended: bool | None = None
        while ended is None:
            ended = self._until_damage(events, texts)
            waiting = len(self._buffer) - self._at
            if ended is False and waiting > self._patience:
                self._recovery.skip("damaged event")
                self._resume_after(self._at, len(self._buffer))
                ended = None
        if not ended and not self._more(len(self._buffer) - self._at + 1):
            # With events the data still ends here: the next call has none, and raises.
            events += (last := self._last_event())
            texts += [orjson.dumps(event) for event in last]
            if not events:
                raise _End
        self.raw = b",".join(texts)
        return ended, events

    def _until_damage(self, events: list[Any], texts: list[bytes]) -> bool | None:
        """Move events from the buffer to `events`: True if the array ended, False if the buffer did, None at damage."""
        start, depth = self._at, 0
        for token in _TOKEN.finditer(self._buffer, start):
            sign = self._buffer[token.start()]
            if sign == _QUOTE:
                if token.end() - token.start() == 1:
                    break  # the string continues after the buffer
                continue
            if sign in _OPENING:
                depth += 1
                continue
            if sign in _CLOSING:
                depth -= 1
            if depth < 0 or (depth == 0 and sign == _COMMA):
                raw = self._buffer[start : token.start()].strip()
                if raw:
                    value = self._parsed(raw)
                    if value is _NOTHING:
                        # A missing quote or bracket may have swallowed the events after it: search from its start.
                        self._resume_after(start, token.end())
                        return True if depth < 0 and self._at == token.end() else None
                    events.append(value)
                    texts.append(raw)
                start = self._at = token.end()
                if depth < 0:
                    return True
        return False

    def _last_event(self) -> list[Any]:
        """The rest of the data if it is a whole event, so that only the end of the document is missing."""
        try:
            events = [orjson.loads(self._buffer[self._at :])]
        except orjson.JSONDecodeError:
            return []
        self._at = len(self._buffer)
        return events

    def _resume_after(self, start: int, looked_at: int) -> None:
        """Continue at the next boundary between events after `start`."""
        self._patience = max(self._patience // 4, _LEAST_PATIENCE)
        self._wasted += looked_at - start
        if self._wasted > 4 * self._recovery.bytes_read + (64 << 20):
            self._recovery.note("too damaged to be read on")
            raise _End
        following = _BETWEEN.search(self._buffer, start)
        self._at = following.end() if following else looked_at
        self._recovery.bytes_dropped += self._at - start

    # ------------------------------------------------------------------ pieces

    def _parsed(self, raw: bytes) -> Any:
        """Parse a value; _NOTHING, and a count of the damage, if even the tolerant parser cannot."""
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError:
            pass
        try:
            text = raw.decode("utf-8", "replace")
            value = _clean(json.loads(text, parse_constant=lambda _: None, strict=False))
            self._recovery.note(NOT_STRICT)
            return value
        except (ValueError, RecursionError):
            self._recovery.skip("damaged event")
            return _NOTHING

    def _string(self) -> bytes:
        """Skip the string that begins here, and return its text."""
        while True:
            match = _STRING.match(self._buffer, self._at)
            if match is not None:
                self._at = match.end()
                return match[0]
            self._wait()

    def _value(self) -> bytes:
        """Skip the value that begins here, up to a comma or a closing bracket, and return its text."""
        self._peek()
        while True:
            depth = 0
            for token in _TOKEN.finditer(self._buffer, self._at):
                sign = self._buffer[token.start()]
                if sign == _QUOTE:
                    if token.end() - token.start() == 1:
                        break
                elif sign in _OPENING:
                    depth += 1
                elif depth == 0:
                    raw = self._buffer[self._at : token.start()]
                    self._at = token.start()
                    return raw
                elif sign in _CLOSING:
                    depth -= 1
            self._wait()

    def _wait(self) -> None:
        """Read on inside a field; _End if it is too large or the data ends."""
        waiting = len(self._buffer) - self._at
        if waiting > _MOST_PATIENCE:
            self._recovery.note("a field of the document is too large")
            raise _End
        if not self._more(waiting + 1):
            raise _End

    def _peek(self) -> int:
        """Skip white space and return the next byte, without skipping that."""
        while True:
            space = _SPACE.match(self._buffer, self._at)
            self._at = space.end() if space else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not self._more(1):
                raise _End

    def _more(self, count: int) -> bool:
        """Read at least `count` further bytes if there are any, and drop what was skipped; whether there were any."""
        parts = [self._buffer[self._at :]]
        self._at = 0
        got = 0
        for block in self._blocks:
            parts.append(block)
            got += len(block)
            if got >= count:
                break
        self._buffer = b"".join(parts)
        return got > 0


_NOTHING = object()


def _clean(value: Any) -> Any:
    """The value with halves of surrogate pairs replaced, since these cannot be encoded."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_clean(entry) for entry in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(entry) for key, entry in value.items()}
    return value
