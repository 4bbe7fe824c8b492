"""Python calls while recording: one flat stream of calls and returns per thread, of which each recording has a window.

In: calls and returns from the thread's CallTracer (`setprofile` or `monitoring`, by the version of Python). Out: CallSegments,
which `assembly.python_rows` turns into rows with names, line numbers and stacks.

The stream is one list. Unpacked it has three entries per event. What: a code object, or the text of a builtin, for a call;
None for a return. Place: for a call, the bytecode offset of the calling frame (f_lasti), from which line numbers follow
later. Time. No frame is kept, so the stream keeps nothing alive that the program frees.

An import is a call of the text "import " and the module's name. Calls inside of it are only counted, but for further imports.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, NamedTuple

from ...._core.threads import ThreadState
from ...._dispatch.observer import UNTRACED_CALL, USER_CODE_CALL
from .code_origin import ENTRY, INSIDE, LIBRARY, classify
from .greenlets import call_at_first_switch

if sys.version_info >= (3, 12):
    from .monitoring import CallTracer
else:
    from .setprofile import CallTracer


WIDTH = 3  # what, place, time


class OpenFrame(NamedTuple):
    """A Python frame that was running already when a segment began."""

    code: CodeType
    line: int


# What an event is about: a function, one that ran already at the start, a builtin, or None for a return.
Called = CodeType | OpenFrame | str | None
CallEvents = list[Any]  # flat: Called, place, time, Called, place, time ...


class SegmentStart(NamedTuple):
    """How a segment begins: when, with which frames on the stack (outermost first), and how far each one's caller had come."""

    time: int
    frames: list[OpenFrame]
    places: list[int]


class CallSegment(NamedTuple):
    """A part of a stream without gaps: the frames on the stack when it began, and the events since."""

    start: int
    end: int | None
    opened: list[OpenFrame]
    opened_places: list[int]
    events: CallEvents


class CallSegmentPart(NamedTuple):
    """Some events of a segment, with its start if they are the first ones and its end time if they are the last."""

    begun: SegmentStart | None
    events: CallEvents
    ended: int | None


class PythonCallWindow:
    """One recording's view of a thread's stream: the events between its start or resume and its next pause or stop."""

    def __init__(self, log: PythonCallLog) -> None:
        self._log = log
        self._begun = SegmentStart(0, [], [])
        self._events: CallEvents = []  # those moved here from the log's stream, unpacked
        self._ended: int | None = None
        self._left_out = 0
        self.lost_to = ""  # why the tracer saw no more
        self._start_drained = self._end_drained = False
        # Index in the log's stream of the first event that is not in `_events` yet.
        self.first = 0

    def begin(self, now: int, frame: FrameType | None) -> None:
        """Begin with the stack that `frame` is the top of."""
        self._begun = SegmentStart(now, *_open_frames(frame, self._log.tracer.traces))
        self._left_out = -self._log.tracer.left_out
        self.first = len(self._log.events)

    def segments(self, end: int | None = None) -> list[CallSegment]:
        """The events so far; `end` is the end of a window that is still open."""
        start, opened, places = self._begun
        if self._ended is not None:
            return [CallSegment(start, self._ended, opened, places, self._events)]
        return [CallSegment(start, end, opened, places, self._events + self._log.since(self.first))]

    @property
    def ended(self) -> int | None:
        """When it ended: with the recording, or earlier, if the tracer lost its place; None while it is open."""
        return self._ended

    @property
    def left_out(self) -> int:
        """How many calls the window does not have because they were made while a module was imported."""
        return self._left_out + (self._log.tracer.left_out if self._ended is None else 0)

    def close(self, end: int, lost_to: str = "") -> None:
        """Move the rest of the window's events out of the stream; those after `end` are dropped. Once: then it has ended.

        lost_to: why the tracer saw nothing after the last event that there is: there the window ends.
        """
        if self._ended is not None:
            return
        events = self._log.since(self.first)
        if lost_to:
            self.lost_to = lost_to
            end = max(self._begun.time, self._log.last_time)
        last = len(events)  # another thread is traced for a moment after the recording has ended
        while last and events[last - 1] > end:
            last -= WIDTH
        del events[last:]
        self._left_out += self._log.tracer.left_out
        # No signal comes between these two: the window has all its events once.
        self._events += events
        self._ended = end

    # ------------------------------------------------------------------ for retention policies, while it is open

    @property
    def entries(self) -> int:
        """How many list entries the window itself holds, those still in the stream not included."""
        return len(self._events)

    def gather(self) -> None:
        """Move the events so far from the stream into the window."""
        if self._ended is None:
            self._events += self._log.pop_events(self)

    def drain(self) -> list[CallSegmentPart]:
        """The events since the last drain, which the window then no longer has; an empty list if there is nothing new."""
        self.gather()
        begun = None if self._start_drained else self._begun
        ended = None if self._end_drained else self._ended
        events, self._events = self._events, []
        if begun is None and ended is None and not events:
            return []
        self._start_drained = True
        self._end_drained = ended is not None or self._end_drained
        return [CallSegmentPart(begun, events, ended)]

    def trim(self, until: int) -> int:
        """Drop the events up to a time, except for calls that have not returned by then.

        Returns how many of the dropped calls would have made a row.
        """
        start, opened, places = self._begun
        at_start: CallEvents = []
        for frame, place in zip(opened, places, strict=True):
            at_start += (frame, place, start)
        events = at_start + self._events
        past = next((at for at in range(0, len(events), WIDTH) if events[at + 2] > until), len(events))
        under_way: CallEvents = []
        hidden: list[bool] = [False]
        returned = 0
        for at in range(0, past, WIDTH):
            if events[at] is not None:
                under_way += events[at : at + WIDTH]
                hidden.append(_is_hidden(events[at], hidden[-1]))
            elif under_way:
                del under_way[-WIDTH:]
                returned += not hidden.pop()
        self._begun = SegmentStart(start, [], [])
        self._events = under_way + events[past:]
        return returned


def _is_hidden(what: CodeType | OpenFrame | str, called_from_hidden: bool) -> bool:
    """Whether a call makes no row: its code is this runtime's inside, or a library's and called from the inside."""
    if isinstance(what, str):
        return called_from_hidden
    code = what.code if isinstance(what, OpenFrame) else what
    origin = _origins.get(code.co_filename)
    if origin is None:
        origin = _origins[code.co_filename] = classify(code.co_filename)
    return origin in (INSIDE, ENTRY) or (origin == LIBRARY and called_from_hidden)


_origins: dict[str, int] = {}  # by file name


# Functions that run a user's program inside another one, such as a notebook: a stack ends where they begin.
OUTERMOST: set[CodeType] = set()


def _open_frames(frame: FrameType | None, traces: Callable[[CodeType], bool]) -> tuple[list[OpenFrame], list[int]]:
    """The frames of a stack whose code is traced, outermost first, and how far each one's caller had come."""
    frames: list[FrameType] = []
    while frame is not None and frame.f_code not in OUTERMOST:
        if frame.f_code is USER_CODE_CALL:
            frame = _untraced_call(frame)
        if traces(frame.f_code):
            frames.append(frame)
        frame = frame.f_back
    frames.reverse()
    places = [-1, *(caller.f_lasti for caller in frames[:-1])][: len(frames)]
    return [OpenFrame(frame.f_code, frame.f_lineno) for frame in frames], places


def _untraced_call(frame: FrameType) -> FrameType:
    """The next frame outward that paused the tracer: its call was traced, those between it and `frame` were not."""
    while frame.f_code is not UNTRACED_CALL:
        assert frame.f_back is not None
        frame = frame.f_back
    return frame


def _nothing() -> None:
    pass


class PythonCallLog:
    """The stream of one thread. Its tracer runs while at least one window is open."""

    def __init__(self, clock: Callable[[], int], state: ThreadState) -> None:
        self.events: list[Any] = []  # as the tracer appends them
        self._clock = clock
        self._moved: list[Any] = []  # the last entries that were moved out of the stream
        self._windows: list[PythonCallWindow] = []
        self._expect_no_switch: Callable[[], None] = _nothing
        self._lock = threading.Lock()  # held while windows open, close, or move events out of the stream
        self.tracer = CallTracer(self.events, clock, state)

    def open(self, window: PythonCallWindow) -> None:
        """Begin a window with the calling thread's stack as it is. The caller holds it already, to close it in any case."""
        running, lost = True, ""
        try:
            if self._windows:
                running, lost = self.tracer.runs_here, self.tracer.lost_to(self._latest)
                if running:
                    self.tracer.pause()
            else:
                self.tracer.prepare()
                lost = self.tracer.blocked_by
                self._expect_no_switch = call_at_first_switch(self._lose_to_greenlets)
            self._windows.append(window)
            # From here to the end nothing is traced but the return of this function.
            with self._lock:
                window.begin(self._clock(), None if lost else sys._getframe())
        finally:
            if running:
                self.tracer.resume()

    def open_on(self, window: PythonCallWindow, thread: int, frame: FrameType) -> bool:
        """Begin a window of another thread, which stands at `frame`; False if it cannot be traced."""
        self._windows.append(window)
        with self._lock:
            window.begin(self._clock(), frame)
        return self.tracer.start_on(thread)

    def close(self, window: PythonCallWindow, end: int) -> None:
        """End a window; one that has ended is no error. May be called on another thread."""
        running, lost_to = self.tracer.runs_here, self.tracer.lost_to(self._latest)
        if [other for other in self._windows if other is not window]:
            try:
                if running:  # here, on the traced thread
                    self.tracer.pause()
                with self._lock:
                    window.close(end, lost_to)
                    if window in self._windows:
                        self._windows.remove(window)
            finally:
                if running:
                    self.tracer.resume()
            return
        self._expect_no_switch()
        self.tracer.stop()
        with self._lock:
            window.close(end, lost_to)
            self._windows.clear()
            self.events.clear()

    def _lose_to_greenlets(self) -> None:
        self.tracer.stop()
        self.tracer.blocked_by = "greenlets take turns on it, in the middle of calls"

    @property
    def _latest(self) -> list[Any]:
        """The last entries of the stream."""
        return self.events[-3:] or self._moved

    @property
    def last_time(self) -> int:
        """When the last event was, 0 before the first."""
        latest = self._latest
        return latest[-1] if latest else 0

    def since(self, first: int) -> CallEvents:
        """The stream from an index on, unpacked."""
        return self.tracer.unpacked(self.events[first:])

    def pop_events(self, window: PythonCallWindow) -> CallEvents:
        """The events that a window does not have yet. Those that all windows have are removed from the stream."""
        with self._lock:
            last = len(self.events)
            events = self.tracer.unpacked(self.events[window.first : last])
            if last:
                self._moved = self.events[-3:]
            window.first = last
            unused = min(each.first for each in self._windows)
            del self.events[:unused]
            for each in self._windows:
                each.first -= unused
            return events
