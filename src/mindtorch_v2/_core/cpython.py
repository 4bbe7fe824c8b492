"""What the runtime asks CPython's insides: reference counts, referrers, bytecode, signals, frames, threads and capsules.

Everything that depends on an implementation detail stands here, one function or constant per question. Each says what it
relies on and tests that once, at import where that takes a few microseconds, else before its first answer. Where the test
fails (another implementation, a later version, a debugger that holds references) the answer is the safe one: the runtime then
copies where it would have reused memory, searches longer, numbers arguments as for a function, or handles signals at a few
places more. Results stay the same.

Only the profiler's tracers (`profiler/recording/python_calls`) read frames on their own: that is their subject.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import sys
import time
from collections.abc import Callable
from functools import cache
from opcode import opmap, opname
from threading import get_ident
from types import CodeType, FrameType, FunctionType
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")


class _Owner:
    """Holds a value in a slot, as a tensor holds its storage and its base."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


# ---------------------------------------------------------------- reference counts

# Lower than any count, also with a few owners added to it.
NO_COUNT = -(1 << 30)


def _unknown_count(_value: object) -> int:
    """Stands in for sys.getrefcount where there is none: everything counts as shared."""
    return sys.maxsize


getrefcount: Callable[[object], int] = getattr(sys, "getrefcount", _unknown_count)


def measure_counts(count: Callable[[object], int]) -> tuple[int, int]:
    """What `count(x)` is if only the local variable x holds an object, and if one owner (a slot, a list) holds it as well.

    Relies on a count that rises and falls with each holder. Whether the variable's value is passed to `count` as one more
    reference (up to 3.13) or borrowed (since 3.14) is measured. A tracer that has read `f_locals` holds every local variable;
    a threshold that is too high for that reason would let memory be reused that is shared, so it is refused: compared with a
    value that no variable holds, a variable may count for one or, borrowed, for nothing. Both are NO_COUNT where this fails.
    """
    local = object()
    owner = _Owner(object())
    owned = owner.value
    temporary, alone, with_owner = count(object()), count(local), count(owned)
    second = [local]
    shared = count(local)
    second.clear()
    if alone - temporary not in (0, 1) or not (shared == with_owner == alone + 1) or count(local) != alone:
        return NO_COUNT, NO_COUNT
    return alone, with_owner


# For hot paths, which read the count inline. Of a local variable x that is no parameter, `getrefcount(x) <= REFCOUNT_OF_LOCAL`
# says that nothing else holds the object; `<= REFCOUNT_WITH_OWNER`, that it has one owner besides, and `+ 1` for one more.
# Counts may be higher than expected (a debugger attached later), never lower. Where they cannot be relied on, both are false.
REFCOUNT_OF_LOCAL, REFCOUNT_WITH_OWNER = measure_counts(getrefcount)


# ---------------------------------------------------------------- referrers


def referrers(target: object, kind: type[T]) -> list[T]:
    """The live objects of class `kind` that hold `target` in a slot.

    Relies on the garbage collector, which knows every object with slots: on `gc.get_referrers`, or where that does not find
    what it should on `gc.get_objects`, which takes longer and gives every object of that class, so a caller has to look at the
    slot it means. Neither sees objects behind `gc.freeze()`, so those are unfrozen: a collection takes longer again, but a view
    that is overlooked would get a wrong gradient. NotImplementedError where the collector lists nothing at all.
    """
    if getattr(gc, "get_freeze_count", int)():
        gc.unfreeze()
    if _lists_referrers():
        candidates = gc.get_referrers(target)
    elif _lists_objects():
        candidates = gc.get_objects()
    else:
        raise NotImplementedError(
            "writing in place into a tensor with history that may have views: this interpreter's gc module cannot list them. "
            "Use the out-of-place form of the operation."
        )
    return [each for each in candidates if issubclass(type(each), kind)]


@cache
def _lists_referrers() -> bool:
    """Whether gc.get_referrers finds the owner of an object."""
    owner = _Owner(object())
    return any(each is owner for each in gc.get_referrers(owner.value))


@cache
def _lists_objects() -> bool:
    """Whether gc.get_objects lists an object with slots."""
    owner = _Owner(object())
    return any(each is owner for each in gc.get_objects())


# ---------------------------------------------------------------- bytecode


def arguments_written(frame: FrameType) -> int | None:
    """How many arguments are written in the call that a frame is making: 1 for `x.f(a)`, 2 for `f(x, a)` and for `f(x, a=1)`.

    Relies on the opcodes CALL and CALL_KW, whose argument is that number, and on the inline cache behind them. None where the
    bytecode does not say, as for `f(*args)` or an operator, or where it is not what this function expects.
    """
    return _read_call(frame) if _reads_calls() else None


def _read_call(frame: FrameType) -> int | None:
    code, place = frame.f_code.co_code, frame.f_lasti
    while place > 0 and opname[code[place]] == "CACHE":  # what follows a call instruction belongs to it
        place -= 2
    return code[place + 1] if place >= 0 and opname[code[place]] in ("CALL", "CALL_KW") else None


@cache
def _reads_calls() -> bool:
    """Whether calls whose arguments are known are read as they are written."""
    probe = _Probe()
    call, args = probe.call, (1, 2)
    try:
        call()
        call(1, 2)
        call(1, b=2)
        probe.call(1)
        probe.call(1, b=2)
        call(*args)
        _ = probe + 1
    except (AttributeError, IndexError, TypeError):
        return False
    return probe.counts == [0, 2, 2, 1, 2, None, None]


class _Probe:
    """Collects what `_read_call` says of the calls that reach it."""

    def __init__(self) -> None:
        self.counts: list[int | None] = []

    def call(self, *_args: Any, **_kwargs: Any) -> None:
        self.counts.append(_read_call(sys._getframe(1)))

    def __add__(self, other: int) -> None:
        self.counts.append(_read_call(sys._getframe(1)))


# ---------------------------------------------------------------- signals

# The interpreter runs signal handlers, and raises what they raise, only at a function's entry (its instruction RESUME), at a
# jump backwards, and after the call of a function that is not written in Python. Code without these is not interrupted.
F = TypeVar("F", bound=Callable[..., Any])

_RESUME = opmap.get("RESUME", -1)
_AT_ENTRY, _AFTER_YIELD_FROM = 0, 2  # the instruction's argument: where the code goes on


def without_signals_at_entry(function: F) -> F:
    """The same function, at whose entry no signal is handled: an `__exit__` that does nothing but store is then never skipped.

    Relies on RESUME, which handles no signal if its argument says that the code goes on after `yield from`. Tracers and
    debuggers see the call; `sys.monitoring` names it PY_RESUME in place of PY_START. Where that does not work (see
    ENTRIES_WITHOUT_SIGNALS) the function stays as it is, and an interrupt in that one place leaves out what it does.
    """
    if inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function):
        raise TypeError("without_signals_at_entry: generators and coroutines have entries of their own")
    plain: Any = function
    plain.__code__ = code_without_signals_at_entry(plain.__code__)
    return function


@cache
def code_without_signals_at_entry(code: CodeType) -> CodeType:
    """The code that a function with this one has after `without_signals_at_entry`; the same object each time."""
    return (_resuming_silently(code) if ENTRIES_WITHOUT_SIGNALS else None) or code


def _resuming_silently(code: CodeType) -> CodeType | None:
    """The code with another argument of its first RESUME; None if there is no such instruction."""
    instructions = code.co_code
    for place in range(0, len(instructions), 2):
        if instructions[place] == _RESUME:
            if instructions[place + 1] != _AT_ENTRY:
                return None
            return code.replace(
                co_code=instructions[: place + 1] + bytes([_AFTER_YIELD_FROM]) + instructions[place + 2 :],
            )
    return None


def _enters_silently() -> bool:
    """Whether a function that was changed so still takes its arguments, closes over variables and returns."""
    closed_over = object()

    def probe(first: object, *rest: object, last: object = None) -> tuple[object, ...]:
        return first, rest, last, closed_over

    code = _resuming_silently(probe.__code__)
    if code is None:
        return False
    changed = FunctionType(code, probe.__globals__, "probe", None, probe.__closure__)
    return changed(1, 2, last=3) == (1, (2,), 3, closed_over)


# Whether the interpreter is one of those whose RESUME is known: the test itself cannot see whether a signal would be handled.
ENTRIES_WITHOUT_SIGNALS = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 15) and _enters_silently()


# ---------------------------------------------------------------- frames and threads

_getframe: Callable[[int], FrameType] | None = getattr(sys, "_getframe", None)


def _package_of(frame: FrameType) -> str:
    package: str = frame.f_globals.get("__name__", "").partition(".")[0]
    return package


def call_into(package: str) -> tuple[FrameType, FrameType] | None:
    """The innermost call from outside `package` into it: the frame that calls, and the one that is called.

    Relies on `sys._getframe`; None without it, or if no frame outside the package called.
    """
    if _getframe is None:
        return None
    inside: FrameType | None = None
    frame: FrameType | None = _getframe(1)
    while frame is not None and _package_of(frame) == package:
        inside, frame = frame, frame.f_back
    return None if frame is None or inside is None else (frame, inside)


def stack_level(package: str) -> int:
    """The `stacklevel` with which the calling function warns of the innermost line outside `package`, or of the outermost line.

    Relies on `sys._getframe`; without it, the line that called the function.
    """
    if _getframe is None:
        return 2
    level, frame = 1, _getframe(1)
    while frame.f_back is not None and (level == 1 or _package_of(frame) == package):
        level, frame = level + 1, frame.f_back
    return level


def calling_module(skipped: str) -> str:
    """The name of the module that called the calling function, leaving out the frames of the package `skipped`.

    Relies on `sys._getframe`; empty without it.
    """
    if _getframe is None:
        return ""
    frame = _getframe(2)
    while frame.f_back is not None and _package_of(frame) == skipped:
        frame = frame.f_back
    name: str = frame.f_globals.get("__name__", "")
    return name


# Whether threads take turns at running Python code. A free-threaded build may run with it, too; that is decided when it starts.
HAS_GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


def is_only_thread() -> bool:
    """Whether no thread but the calling one runs Python code.

    Relies on `sys._current_frames`, also for threads that the threading module did not start; False without it.
    """
    # Only the numbers are kept: a frame that held the frames, itself among them, would live until the next collection.
    return list(getattr(sys, "_current_frames", dict)()) == [get_ident()]


# ---------------------------------------------------------------- arrays

# The process' memory as an array of words: `words[address // WORD]`. Indexing it makes no object but the number, which takes
# half the time of c_size_t.from_address(address).value.
WORD = ctypes.sizeof(ctypes.c_size_t)
words = (ctypes.c_size_t * (sys.maxsize // WORD)).from_address(0)


def _data_offset() -> int:
    """How far behind an array's id() its address of data stands; 0 where that is not so.

    Relies on an object's id() being its address, and on `data` being the first field of NumPy's arrays.
    """
    arrays: list[np.ndarray] = [np.empty(3, np.uint8), np.empty((2, 0)), np.empty(4)[1:]]
    offset: int = object.__basicsize__
    if sys.implementation.name != "cpython":
        return 0
    return offset if all(words[(id(a) + offset) // WORD] == a.__array_interface__["data"][0] for a in arrays) else 0


DATA_OFFSET = _data_offset()
# For hot paths, which read it inline: `data_words[id(array) >> WORD_SHIFT]`, a thirtieth of the time of __array_interface__.
WORD_SHIFT = WORD.bit_length() - 1
data_words = (ctypes.c_size_t * (sys.maxsize // WORD)).from_address(DATA_OFFSET)


def data_address(array: np.ndarray) -> int:
    """Where the memory of an array's first element is."""
    if DATA_OFFSET and isinstance(array, np.ndarray):
        return data_words[id(array) >> WORD_SHIFT]
    address: int = array.__array_interface__["data"][0]
    return address


# ---------------------------------------------------------------- capsules


@cache
def _capsule_is_valid() -> Callable[[Any, bytes], int] | None:
    """PyCapsule_IsValid of the interpreter's C API; None where ctypes does not reach it."""
    try:
        function = ctypes.pythonapi.PyCapsule_IsValid
    except AttributeError:
        return None
    function.argtypes = (ctypes.py_object, ctypes.c_char_p)
    return function


def is_capsule_named(capsule: Any, name: bytes) -> bool:
    """Whether a value is a capsule of that name.

    Relies on the C API's PyCapsule_IsValid; without it, on the name that a capsule shows in its repr.
    """
    is_valid = _capsule_is_valid()
    if is_valid is None:
        return repr(capsule).startswith(f'<capsule object "{name.decode()}" ')
    return bool(is_valid(capsule, name))


# ---------------------------------------------------------------- profile functions of other threads


class _ThreadStates(ctypes.Structure):
    """Where a PyThreadState of this interpreter has its fields, and the function that calls a profile function."""

    _fields_ = (("identifier", ctypes.c_size_t), ("profile_object", ctypes.c_size_t), ("trampoline", ctypes.c_size_t))


_LONG_S = 1.0


class other_threads_waiting:
    """A block of much less than a second in which no other thread of Python runs, unless the block itself waits.

    A thread that wants to run asks for it after the switch interval. Those that wait already do so by the old one, which is
    waited for here once; blocks inside this one begin at once.
    """

    __slots__ = ("_interval",)

    def __init__(self) -> None:
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> None:
        if self._interval < _LONG_S:
            sys.setswitchinterval(_LONG_S)
            time.sleep(2 * self._interval)

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        sys.setswitchinterval(self._interval)


_WORD = ctypes.sizeof(ctypes.c_void_p)
_FIRST_WORDS = 32  # a PyThreadState has more


def set_profile_of_thread(ident: int, function: Callable[..., Any] | None) -> bool:
    """Do on another thread what sys.setprofile does on the calling one; False if that cannot be done, or is not to be.

    Relies on `_PyEval_SetProfile`, which CPython 3.11 exports, and on the places of three fields of its thread states, which
    are found by their values. Since 3.12 `sys.monitoring` sees all threads, so there it is not needed and always False.
    A thread with a profile function of another tool is left alone.
    """
    places = _thread_state_places()
    if places is None:
        return False
    with other_threads_waiting():  # or the thread might end, and its state be freed, after it was found
        state = _thread_state(ident, places)
        if not state:
            return False
        current = _word(state + places.profile_object)
        if function is None:
            return bool(current) and _set_profile()(state, None, None) == 0
        return not current and _set_profile()(state, places.trampoline, id(function)) == 0


@cache
def _set_profile() -> Any:
    function = ctypes.pythonapi._PyEval_SetProfile
    function.argtypes, function.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p), ctypes.c_int
    return function


@cache
def _thread_state_functions() -> tuple[Any, Any, Any]:
    """PyThreadState_Get, and the two functions that list the thread states of the interpreter."""
    api = ctypes.pythonapi
    for name in ("PyThreadState_Get", "PyInterpreterState_Get", "PyInterpreterState_ThreadHead", "PyThreadState_Next"):
        getattr(api, name).restype = ctypes.c_void_p
    api.PyInterpreterState_ThreadHead.argtypes = api.PyThreadState_Next.argtypes = (ctypes.c_void_p,)
    head = api.PyInterpreterState_ThreadHead
    return api.PyThreadState_Get, lambda: head(api.PyInterpreterState_Get()), api.PyThreadState_Next


def _word(address: int) -> int:
    return ctypes.c_size_t.from_address(address).value


_places: _ThreadStates | None = None


def _thread_state_places() -> _ThreadStates | None:
    """The places of the fields, found once by setting a profile function on the calling thread; None where it has one."""
    global _places  # noqa: PLW0603
    if _places is None and sys.version_info < (3, 12) and sys.implementation.name == "cpython" and sys.getprofile() is None:
        _places = _found_places()
    return _places


def _found_places() -> _ThreadStates | None:
    get, _, _ = _thread_state_functions()
    state = get()

    def probe(*_event: Any) -> None:
        pass

    def words() -> list[int]:
        return [_word(state + at * _WORD) for at in range(_FIRST_WORDS)]

    before = words()
    sys.setprofile(probe)
    during = words()
    sys.setprofile(None)
    objects = [at for at, word in enumerate(during) if word == id(probe)]
    idents = [at for at, word in enumerate(before) if word == get_ident()]
    if len(objects) != 1 or len(idents) != 1 or objects[0] < 2:
        return None
    # c_profilefunc, c_tracefunc and c_profileobj stand one after another.
    function = objects[0] - 2
    if before[function] or not during[function] or before[objects[0]]:
        return None
    return _ThreadStates(idents[0] * _WORD, objects[0] * _WORD, during[function])


def _thread_state(ident: int, places: _ThreadStates) -> int:
    """The address of a thread's state, 0 if there is no such thread."""
    _, first, following = _thread_state_functions()
    state = first()
    while state and _word(state + places.identifier) != ident:
        state = following(state)
    return state or 0
