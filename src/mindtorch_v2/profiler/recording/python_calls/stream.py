"""Python calls while recording: one flat stream of calls and returns per thread, cut into stretches by recordings.

The stream is one list. Unpacked, it has three entries per event. What happened: a code object or a name for a call, None
for a return. For a call, how far the calling frame had come (f_lasti), from which line numbers are made afterwards. When.
No frame is kept, so nothing that the program frees stays alive.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...._core.threads import ThreadState
from ...._dispatch.observer import UNTRACED_CALL, USER_CODE_CALL
from .code_origin import ENTRY, INSIDE, LIBRARY, belongs

if sys.version_info >= (3, 12):
    from .monitoring import Listener
else:
    from .setprofile import Listener


WIDTH = 3


class OpenFrame(NamedTuple):
    """A Python frame that was running already when a stretch began."""

    code: CodeType
    line: int


class CallSegment(NamedTuple):
    """A part of a stream without gaps: the frames on the stack when it began, and what happened since."""

    start: int
    end: int | None
    opened: list[OpenFrame]
    opened_places: list[int]
    events: list[Any]  # WIDTH entries each: what, place, time


class Piece(NamedTuple):
    """A part of a stretch: its beginning (start, frames, places) if it is the first, and its end if it is the last."""

    begun: tuple[int, list[OpenFrame], list[int]] | None
    events: list[Any]
    ended: int | None


class PythonWindow:
    """What one recording wants of a thread's stream: from its opening to its closing."""

    def __init__(self, log: PythonLog) -> None:
        self._log = log
        self._begun: tuple[int, list[OpenFrame], list[int]] = (0, [], [])
        self._held: list[Any] = []  # what is the window's own already, unpacked
        self._ended: int | None = None
        self._told = [False, False]  # whether beginning and end were taken
        # Where in the log's stream the rest begins.
        self.first = 0

    def begin(self, now: int, frame: FrameType | None) -> None:
        """Begin a stretch with the stack that `frame` is the top of."""
        self._begun = (now, *_open_frames(frame, self._log.listener.hears))
        self.first = len(self._log.events)

    def stretches(self, end: int | None = None) -> list[CallSegment]:
        """What was heard so far."""
        start, opened, places = self._begun
        if self._ended is not None:
            return [CallSegment(start, self._ended, opened, places, self._held)]
        return [CallSegment(start, end, opened, places, self._held + self._log.since(self.first))]

    def close(self, end: int) -> None:
        """Take out of the stream what belongs to the window."""
        self._held += self._log.since(self.first)
        last = len(self._held)  # the thread went on between the end of the recording and its hearing of it
        while last and self._held[last - 1] > end:
            last -= WIDTH
        del self._held[last:]
        self._ended = end

    # ------------------------------------------------------------------ for whoever keeps it while it goes on

    @property
    def entries(self) -> int:
        """How many entries it holds itself."""
        return len(self._held)

    def gather(self) -> None:
        """Move what was heard so far from the stream into the window."""
        if self._ended is None:
            self._held += self._log.taken(self)

    def take(self) -> list[Piece]:
        """What was heard since the last time, which the window no longer has."""
        self.gather()
        begun = None if self._told[0] else self._begun
        ended = None if self._told[1] else self._ended
        events, self._held = self._held, []
        if begun is None and ended is None and not events:
            return []
        self._told = [True, ended is not None or self._told[1]]
        return [Piece(begun, events, ended)]

    def trim(self, until: int) -> int:
        """Forget what happened up to a moment, but for calls that are still under way.

        Returns how many calls that would make a row are forgotten.
        """
        start, opened, places = self._begun
        before: list[Any] = []
        for frame, place in zip(opened, places, strict=True):
            before += (frame, place, start)
        flat = before + self._held
        past = next((at for at in range(0, len(flat), WIDTH) if flat[at + 2] > until), len(flat))
        under_way: list[Any] = []
        hidden: list[bool] = [False]
        returned = 0
        for at in range(0, past, WIDTH):
            if flat[at] is not None:
                under_way += flat[at : at + WIDTH]
                hidden.append(_is_hidden(flat[at], hidden[-1]))
            elif under_way:
                del under_way[-WIDTH:]
                returned += not hidden.pop()
        self._begun = (start, [], [])
        self._held = under_way + flat[past:]
        return returned


def _is_hidden(what: Any, called_from_hidden: bool) -> bool:
    """Whether a call makes no row: it is of this runtime's inside, or of a library and made there."""
    if isinstance(what, str):
        return called_from_hidden
    code = what.code if isinstance(what, OpenFrame) else what
    owner = _owners.get(code.co_filename)
    if owner is None:
        owner = _owners[code.co_filename] = belongs(code.co_filename)
    return owner in (INSIDE, ENTRY) or (owner == LIBRARY and called_from_hidden)


_owners: dict[str, int] = {}


def _open_frames(frame: FrameType | None, hears: Callable[[CodeType], bool]) -> tuple[list[OpenFrame], list[int]]:
    """The frames of a stack whose code the listener hears, outermost first, and how far each one's caller had come."""
    frames: list[FrameType] = []
    while frame is not None:
        if frame.f_code is USER_CODE_CALL:
            frame = _hushed_by(frame)
        if hears(frame.f_code):
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    places = [-1, *(caller.f_lasti for caller in frames[:-1])][: len(frames)]
    return [OpenFrame(frame.f_code, frame.f_lineno) for frame in frames], places


def _hushed_by(frame: FrameType) -> FrameType:
    """The next frame outward that hushed the listener: it was heard, those up to it were not."""
    while frame.f_code is not UNTRACED_CALL:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame


class PythonLog:
    """The stream of one thread. It flows while at least one window is open."""

    def __init__(self, clock: Callable[[], int], state: ThreadState) -> None:
        self.events: list[Any] = []
        self._clock = clock
        self._windows: list[PythonWindow] = []
        self._lock = threading.Lock()  # held while windows come, go, or take something out of the stream
        self.listener = Listener(self.events, clock, state)

    def open(self) -> PythonWindow:
        """Begin a window with the calling thread's stack as it is."""
        window = PythonWindow(self)
        if self._windows:
            self.listener.pause()
        else:
            self.listener.prepare()
        self._windows.append(window)
        # From here to the end nothing is heard but the return of this function.
        with self._lock:
            window.begin(self._clock(), sys._getframe())
        self.listener.listen()
        return window

    def close(self, window: PythonWindow, end: int) -> None:
        """End a window. May be called on another thread."""
        if len(self._windows) > 1:
            self.listener.pause()
            with self._lock:
                window.close(end)
                self._windows.remove(window)
            self.listener.listen()
            return
        self.listener.stop()
        with self._lock:
            window.close(end)
            self._windows.clear()
            self.events.clear()

    def since(self, first: int) -> list[Any]:
        """The stream from a place on."""
        return self.listener.unpacked(self.events[first:])

    def taken(self, window: PythonWindow) -> list[Any]:
        """What a window has not had yet. What no window needs any more leaves the stream."""
        with self._lock:
            last = len(self.events)
            found = self.listener.unpacked(self.events[window.first : last])
            window.first = last
            least = min(one.first for one in self._windows)
            del self.events[:least]
            for one in self._windows:
                one.first -= least
            return found
