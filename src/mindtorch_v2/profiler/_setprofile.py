"""Listens to a thread's Python calls through sys.setprofile, for Python 3.11.

Every event costs a Python call, so the listener covers its ears while an op runs: it leaves the thread when it sees the
op's entry called and comes back when the op hands over its row. What runs inside an op is this runtime's own business.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import CodeType, FrameType, ModuleType
from typing import Any

from .._dispatch import namespace, overloads
from ._insides import finaliser_homes

ProfileFunction = Callable[[FrameType, str, Any], None]


class Listener:
    """Fills a stream (see _stacks) from the calls of the thread that starts it."""

    def __init__(
        self,
        events: list[Any],
        clock: Callable[[], int],
        lost: Callable[[FrameType | None], None],
    ) -> None:
        """`lost(frame)` is called when events were missed, with the top of the stack as it is now."""
        self._stream = (events, clock, lost)
        self._callback: ProfileFunction | None = None
        self._retire: Callable[[], None] = _nothing
        self._previous: Any = None
        self.listen: Callable[[], None]
        self.pause: Callable[[], None]
        self.after_row: Callable[[Callable[[tuple[int, ...]], None]], Callable[[tuple[int, ...]], None]] = _same
        self.after_detail: Callable[[Callable[..., None]], Callable[..., None]] = _same

    @staticmethod
    def hears(code: CodeType) -> bool:
        """Whether calls of this code are in the stream: all are, but for what happens inside ops."""
        return True

    def prepare(self) -> None:
        """Make ready to listen to the calling thread, together with whoever does already."""
        self._previous = sys.getprofile()
        chained = self._previous if callable(self._previous) else None
        self._callback, self._retire, self.after_row, self.after_detail = _functions(*self._stream, chained)
        # No Python functions, so that calling them is not heard.
        self.listen = partial(sys.setprofile, self._callback)
        self.pause = partial(sys.setprofile, None)

    def stop(self) -> None:
        """Listen no more; give the thread back. On another thread it takes effect with that thread's next call."""
        self._retire()
        if sys.getprofile() is self._callback:
            _give_back(self._previous)
        self._callback = self._previous = None
        self._retire = _nothing
        self.after_row = self.after_detail = _same


def _give_back(previous: Any) -> None:
    if previous is None or callable(previous):
        sys.setprofile(previous)
    else:  # cProfile's, which is no Python function
        previous.enable()


def _nothing(*values: Any) -> None:
    pass


def _same(function: Any) -> Any:
    return function


def _functions(
    events: list[Any], clock: Callable[[], int], lost: Callable[[FrameType | None], None], previous: Any
) -> tuple[ProfileFunction, Callable[[], None], Any, Any]:
    """The function for sys.setprofile, one that makes it leave, and wrappers for what takes an op's row."""
    extend: Callable[[tuple[Any, ...]], None] = events.extend
    entries = vars(namespace)  # the globals of generated op entries, and of nothing else
    packets = vars(overloads)  # those of the functions that choose among the entries of one name
    finalisers = finaliser_homes[0] if finaliser_homes else None
    setprofile, getframe = sys.setprofile, sys._getframe
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}
    # The frame of the op during which nobody listens.
    op_frame: FrameType | None = None
    # How many functions are still to return that were called while nobody listened.
    unheard = 0

    def describe(function: Any) -> str:
        owner = function.__self__
        if owner is None or isinstance(owner, ModuleType):
            text = builtins[function] = f"<built-in function {function.__name__}>"
            return text
        # A bound method refers to its object: only the names are kept.
        key = (type(owner).__name__, function.__name__)
        text = methods.get(key, "")
        if not text:
            text = methods[key] = f"<built-in method {key[1]} of {key[0]} object>"
        return text

    def callback(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal op_frame, unheard
        if unheard:
            if event == "return":
                unheard -= 1
            elif event == "call":  # a finaliser, say
                unheard += 1
        elif event == "return":
            extend((None, -1, clock()))
        elif event == "call":
            home = frame.f_globals
            if home is finalisers:
                unheard = 1
                return
            back = frame.f_back
            extend((frame.f_code, -1 if back is None else back.f_lasti, clock()))
            if home is entries or home is packets:
                op_frame = frame
                setprofile(None)
        elif event == "c_call":
            extend((builtins.get(arg) or describe(arg), frame.f_lasti, clock()))
        else:  # c_return, c_exception
            extend((None, -1, clock()))

    def op_ended(entry: FrameType, end: int) -> None:
        """An op handed over its row, and it was not called directly where we left: find out what that means."""
        nonlocal op_frame, unheard
        unheard = 3  # this function, its caller and the entry
        outer = entry.f_back
        # Between where we left and the entry may be a chooser of overloads and, at an op's first call, its stand-in.
        while outer is not None and (
            outer.f_globals is packets or outer.f_globals is entries and not outer.f_code.co_filename.startswith("<")
        ):
            unheard += 1
            if outer is op_frame:
                op_frame = None
                extend((None, -1, end))
                setprofile(callback)
                return
            outer = outer.f_back
        while outer is not None and outer is not op_frame:
            outer = outer.f_back
        if outer is None:
            # What we left at handed over no row (the call was refused, or a mode took it): nobody listened since.
            op_frame = None
            unheard = 3
            lost(entry.f_back)
            setprofile(callback)
        else:  # an op inside the one that we left at
            unheard = 0

    def after_row(take: Callable[[tuple[int, ...]], None]) -> Callable[[tuple[int, ...]], None]:
        def take_and_listen(row: tuple[int, ...]) -> None:
            nonlocal op_frame, unheard
            take(row)
            if op_frame is not None:
                frame = getframe(1)
                if frame is op_frame:
                    op_frame = None
                    extend((None, -1, row[2]))
                    unheard = 2
                    setprofile(callback)
                else:
                    op_ended(frame, row[2])

        return take_and_listen

    def after_detail(take: Callable[..., None]) -> Callable[..., None]:
        def take_and_listen(op: int, start: int, end: int, sequence: int, args: tuple[Any, ...]) -> None:
            nonlocal op_frame, unheard
            take(op, start, end, sequence, args)
            if op_frame is not None:
                frame = getframe(1)
                if frame is op_frame:
                    op_frame = None
                    extend((None, -1, end))
                    unheard = 2
                    setprofile(callback)
                else:
                    op_ended(frame, end)

        return take_and_listen

    def chained(frame: FrameType, event: str, arg: Any) -> None:
        previous(frame, event, arg)
        listen_all(frame, event, arg)

    def listen_all(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            back = frame.f_back
            extend((frame.f_code, -1 if back is None else back.f_lasti, clock()))
        elif event == "c_call":
            extend((builtins.get(arg) or describe(arg), frame.f_lasti, clock()))
        else:
            extend((None, -1, clock()))

    def retire() -> None:
        nonlocal extend, clock, op_frame
        op_frame = None
        extend = _nothing
        clock = leave

    def leave() -> int:
        setprofile(previous)
        return 0

    if previous is not None:  # somebody else counts on every event
        return chained, retire, _same, _same
    return callback, retire, after_row, after_detail
