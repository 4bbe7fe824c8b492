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

from .._dispatch import namespace

ProfileFunction = Callable[[FrameType, str, Any], None]


class Listener:
    """Fills a stream (see _stacks) from the calls of the thread that starts it."""

    def __init__(
        self,
        objects: list[Any],
        times: list[int],
        places: list[int],
        clock: Callable[[], int],
        lost: Callable[[FrameType | None], None],
    ) -> None:
        """`lost(frame)` is called when events were missed, with the top of the stack as it is now."""
        self._stream = (objects, times, places, clock, lost)
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
    objects: list[Any],
    times: list[int],
    places: list[int],
    clock: Callable[[], int],
    lost: Callable[[FrameType | None], None],
    previous: Any,
) -> tuple[ProfileFunction, Callable[[], None], Any, Any]:
    """The function for sys.setprofile, one that makes it leave, and wrappers for what takes an op's row."""
    add: Callable[[Any], None] = objects.append
    tick: Callable[[int], None] = times.append
    place: Callable[[int], None] = places.append
    entries = vars(namespace)  # the globals of generated op entries, and of nothing else
    own = globals()
    setprofile, getframe = sys.setprofile, sys._getframe
    builtins: dict[Any, str] = {}
    methods: dict[tuple[str, str], str] = {}
    # The entry of the op during which nobody listens.
    op_frame: FrameType | None = None
    # Whether the listener has just come back, and the functions that called it back are still to return.
    settling = False

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
        nonlocal op_frame, settling
        if settling:
            if frame.f_globals is own:
                return
            settling = False
        if event == "call":
            back = frame.f_back
            place(-1 if back is None else back.f_lasti)
            add(frame.f_code)
            tick(clock())
            if frame.f_globals is entries:
                op_frame = frame
                setprofile(None)
        elif event == "return":
            if frame.f_globals is entries:  # its end is the end of the op's row
                return
            add(None)
            tick(clock())
        elif event == "c_call":
            place(frame.f_lasti)
            add(builtins.get(arg) or describe(arg))
            tick(clock())
        else:  # c_return, c_exception
            add(None)
            tick(clock())

    def runs_below(outer: FrameType, frame: FrameType | None) -> bool:
        while frame is not None and frame is not outer:
            frame = frame.f_back
        return frame is outer

    def catch_up(frame: FrameType) -> None:
        """An op returned without handing over a row (a mode took the call), so nobody listened since."""
        nonlocal op_frame, settling
        op_frame = None
        settling = True
        lost(frame.f_back)
        setprofile(callback)

    def after_row(extend: Callable[[tuple[int, ...]], None]) -> Callable[[tuple[int, ...]], None]:
        def extend_and_listen(row: tuple[int, ...]) -> None:
            nonlocal op_frame, settling
            extend(row)
            frame = getframe(1)
            # The first call of an op compiles its entry and calls it from a stand-in.
            if op_frame is frame or op_frame is frame.f_back:
                if op_frame is not None:
                    op_frame = None
                    settling = True
                    add(None)
                    tick(row[2])
                    setprofile(callback)
            elif op_frame is not None and not runs_below(op_frame, frame):
                catch_up(frame)

        return extend_and_listen

    def after_detail(detail: Callable[..., None]) -> Callable[..., None]:
        def detail_and_listen(op: int, start: int, end: int, sequence: int, args: tuple[Any, ...]) -> None:
            nonlocal op_frame, settling
            detail(op, start, end, sequence, args)
            frame = getframe(1)
            # The first call of an op compiles its entry and calls it from a stand-in.
            if op_frame is frame or op_frame is frame.f_back:
                if op_frame is not None:
                    op_frame = None
                    settling = True
                    add(None)
                    tick(end)
                    setprofile(callback)
            elif op_frame is not None and not runs_below(op_frame, frame):
                catch_up(frame)

        return detail_and_listen

    def chained(frame: FrameType, event: str, arg: Any) -> None:
        previous(frame, event, arg)
        listen_all(frame, event, arg)

    def listen_all(frame: FrameType, event: str, arg: Any) -> None:
        if event == "call":
            back = frame.f_back
            place(-1 if back is None else back.f_lasti)
            add(frame.f_code)
        elif event == "c_call":
            place(frame.f_lasti)
            add(builtins.get(arg) or describe(arg))
        else:
            add(None)
        tick(clock())

    def retire() -> None:
        nonlocal add, tick, place, clock, op_frame
        op_frame = None
        add = tick = place = _nothing
        clock = leave

    def leave() -> int:
        setprofile(previous)
        return 0

    if previous is not None:  # somebody else counts on every event
        return chained, retire, _same, _same
    return callback, retire, after_row, after_detail
