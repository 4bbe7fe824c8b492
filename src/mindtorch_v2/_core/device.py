"""Devices: the device class, the names it knows, and the device that new tensors go to."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from operator import index as as_int
from typing import Any, NoReturn

from .cpython import without_signals_at_entry
from .restoring import carry_out

DEVICE_TYPES = (
    "cpu",
    "cuda",
    "ipu",
    "xpu",
    "mkldnn",
    "opengl",
    "opencl",
    "ideep",
    "hip",
    "ve",
    "fpga",
    "maia",
    "xla",
    "lazy",
    "vulkan",
    "mps",
    "meta",
    "hpu",
    "mtia",
    "npu",
)
"""Every device type that has a name, in the order in which error messages list them. npu takes the place that torch
keeps for one extra backend, which is why its generic name `privateuseone` means npu as well."""

_EXTRA_BACKEND = "privateuseone"
_PATTERN = re.compile(r"([a-zA-Z_]+)(?::(0|[1-9][0-9]*))?")
_LARGEST_INDEX = 2**31 - 1

_interned: dict[tuple[str, int | None], device] = {}
_parsed: dict[str, device] = {}


class device:
    """Where a tensor's data is: a type ("cpu", "npu", "meta", ...) and an index, or None for the type's current one.

    `device("npu:1")`, `device("npu", 1)` and `device(type="npu", index=1)` are the same object. A plain integer means
    that device of the accelerator in use. As a context manager it is where tensors made inside the block go.
    """

    __module__ = "mindtorch_v2"

    # One object per (type, index), so that equality and hash are those of the object itself: no Python code to run.
    __slots__ = ("index", "type")
    index: int | None
    type: str

    def __new__(cls, device: Any = None, index: Any = None, *, type: str | None = None) -> device:
        if device is not None and type is None:
            source = device
        elif device is None and type is not None:
            source = type
        else:
            source = None
        if source.__class__ is str and index is None:
            return _parsed.get(source) or _parse(source)
        if source.__class__ is cls and index is None:
            return source
        if isinstance(source, str):
            return _parse(str(source)) if index is None else _with_index(source, index)
        if isinstance(source, cls):
            raise TypeError("device(): argument 'type' (position 1) must be str, not torch.device")
        if index is None and hasattr(source, "__index__") and not isinstance(source, bool):
            return _of_accelerator(as_int(source))
        shown = ", ".join(each.__class__.__name__ for each in (device, index, type) if each is not None)
        raise TypeError(
            f"device() received an invalid combination of arguments - got ({shown}), but expected one of:\n"
            " * (torch.device device)\n * (str type, int index = -1)\n"
        )

    def __init_subclass__(cls) -> NoReturn:
        raise TypeError("type 'torch.device' is not an acceptable base type")

    def __setattr__(self, attribute: str, value: object) -> NoReturn:
        if attribute in self.__slots__:
            raise AttributeError(f"attribute '{attribute}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{attribute}'")

    def __delattr__(self, attribute: str) -> NoReturn:
        self.__setattr__(attribute, None)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        if self.index is None:
            return f"device(type='{self.type}')"
        return f"device(type='{self.type}', index={self.index})"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self) -> device:
        before = _default.device
        try:
            _default.device = self
            _notify_default_change()
        except BaseException:
            _default.device = before
            carry_out([_notify_default_change])
            raise
        _default.outer += (before,)
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        if not _default.outer:
            raise RuntimeError("trying to pop from empty mode stack")
        _default.device = _default.outer[-1]
        del _default.outer[-1]
        carry_out([_notify_default_change])


def _intern(type: str, index: int | None) -> device:
    known = _interned.get((type, index))
    if known is None:
        new: device = object.__new__(device)
        object.__setattr__(new, "type", type)
        object.__setattr__(new, "index", index)
        known = _interned.setdefault((type, index), new)  # setdefault: of two threads the first one wins
    return known


def _parse(text: str) -> device:
    if not text:
        raise RuntimeError("Device string must not be empty")
    match = _PATTERN.fullmatch(text)
    if match is None:
        raise RuntimeError(f"Invalid device string: '{text}'")
    type, digits = match.groups()
    if type == _EXTRA_BACKEND:
        type = "npu"
    elif type not in DEVICE_TYPES:
        names = ", ".join(DEVICE_TYPES)
        raise RuntimeError(f"Expected one of {names} device type at start of device string: {type}")
    if digits is not None and int(digits) > _LARGEST_INDEX:
        raise RuntimeError(f"Could not parse device index '{digits}' in device string '{text}'")
    parsed = _parsed[text] = _intern(type, None if digits is None else int(digits))
    return parsed


def _with_index(type: str, index: Any) -> device:
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
    plain = _parse(type)
    if plain.index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
    return _intern(plain.type, _checked(as_int(index)))


def _checked(index: int) -> int:
    if index < 0:
        raise RuntimeError("Device index must not be negative")
    if index > _LARGEST_INDEX:
        raise RuntimeError(f"Device index {index} is too large")
    return index


# ---------------------------------------------------------------- the accelerator that a plain integer means

_accelerator: str | None = None


def set_accelerator(type: str | None) -> None:
    """Set the device type that `device(0)` means; a backend that finds its hardware calls this. None: there is none."""
    global _accelerator  # noqa: PLW0603  one setting of the process
    _accelerator = None if type is None else device(type).type


def _of_accelerator(index: int) -> device:
    _checked(index)
    if _accelerator is None:
        raise RuntimeError("Cannot access accelerator device when none is available.")
    return _intern(_accelerator, index)


# ---------------------------------------------------------------- the default device


class _Default(threading.local):
    """`device` is where this thread's new tensors go, None meaning the CPU; `outer`, what each open `with` replaced."""

    device: device | None = None

    def __init__(self) -> None:
        self.outer: list[device | None] = []


_default = _Default()
_CPU = device("cpu")

# Functions that are called when a thread's default changes, on that thread, with the device or, for the CPU, None.
on_default_change: list[Callable[[device | None], None]] = []


def _notify_default_change() -> None:
    default = default_elsewhere()
    for callback in on_default_change:
        callback(default)


def default_elsewhere() -> device | None:
    """The default device of this thread, or None if that is the CPU."""
    default = _default.device
    return None if default is None or default.type == "cpu" else default


def get_default_device() -> device:
    """The device of tensors that are made without `device=` in this thread."""
    return _default.device or _CPU


_as_device = device


def set_default_device(device: Any) -> None:
    """Send tensors made without `device=` to `device` in this thread; None means the CPU again."""
    before, chosen = _default.device, None if device is None else _as_device(device)
    try:
        _default.device = chosen
        _notify_default_change()
    except BaseException:
        _default.device = before
        carry_out([_notify_default_change])
        raise
