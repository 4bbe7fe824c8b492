"""Running an operator: from arrays and numbers to CANN's descriptors, then the two phases of the call."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..._core.cpython import without_signals_at_entry
from ..._dispatch import observer
from .allocator import allocator_of
from .devices import activate
from .driver import Driver, driver
from .errors import failure
from .operators import OPERATORS
from .signatures import DATA_TYPES, FORMAT_ND, FORMATS
from .streams import Stream, current_stream


def observed(kind: str, name: str, stream: Stream, nbytes: int) -> AbstractContextManager[None]:
    """A context around a call that puts work into a stream: it tells the observer's device listener of it."""
    listener = observer.listeners.device
    return nullcontext() if listener is None else _observe(listener, kind, name, stream, nbytes)


class _observe(AbstractContextManager[None]):
    """Tells a listener of the launch inside the block."""

    def __init__(self, listener: observer.DeviceListener, kind: str, name: str, stream: Stream, nbytes: int) -> None:
        self._listener = listener
        self._launch = kind, name, stream, nbytes

    def __enter__(self) -> None:
        self._started = self._listener.launch_started(*self._launch)

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        self._listener.launch_ended(self._started)


# ---------------------------------------------------------------- descriptors

_codes: dict[np.dtype, int] = {}
_layouts: dict[tuple[Any, ...], tuple[Any, ...]] = {}
_LAYOUTS_KEPT = 4096


def dtype_code(dtype: np.dtype) -> int:
    """aclDataType of a NumPy dtype."""
    code = _codes.get(dtype)
    if code is None:
        try:
            code = _codes[dtype] = DATA_TYPES[dtype.name]
        except KeyError:
            raise TypeError(f"NPU tensors cannot have the data type {dtype.name}") from None
    return code


def address(array: np.ndarray) -> int:
    """Where an array's first element is."""
    pointer: int = array.__array_interface__["data"][0]
    return pointer


def _int64s(values: Sequence[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)


def _layout(shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype) -> tuple[Any, ...]:
    """The arguments of aclCreateTensor that follow from a shape, kept since programs repeat their shapes."""
    key = (shape, strides, dtype)
    layout = _layouts.get(key)
    if layout is None:
        steps = [stride // dtype.itemsize for stride in strides]
        if any(step < 0 for step in steps):
            raise ValueError("NPU tensors cannot have negative strides")
        span = 1 + sum((n - 1) * step for n, step in zip(shape, steps, strict=True)) if 0 not in shape else 0
        dims = _int64s(shape)
        # A storage that is no more than what the view reaches, with the view's first element at its start.
        storage = _int64s([span])
        code = dtype_code(dtype)
        layout = (dims, len(shape), code, _int64s(steps), 0, FORMATS.get(len(shape), FORMAT_ND), storage, 1)
        if len(_layouts) >= _LAYOUTS_KEPT:
            _layouts.clear()
        _layouts[key] = layout
    return layout


class _Descriptors:
    """The descriptors of one call; they go when the call is made, CANN has its own copies by then."""

    __slots__ = ("_driver", "_made")

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._made: list[tuple[str, int]] = []

    def _create(self, kind: str, *arguments: Any) -> int:
        handle: int = self._driver.call("aclCreate" + kind, *arguments)
        self._made.append(("aclDestroy" + kind, handle))
        return handle

    def tensor(self, array: np.ndarray) -> int:
        layout = _layout(array.shape, array.strides, array.dtype)
        return self._create("Tensor", *layout, address(array))

    def tensor_or_none(self, array: np.ndarray | None) -> int | None:
        return None if array is None else self.tensor(array)

    def tensors(self, arrays: Sequence[np.ndarray]) -> int:
        mark = len(self._made)
        handles = [self.tensor(array) for array in arrays]
        handle = self._create("TensorList", (ctypes.c_void_p * len(handles))(*handles), len(handles))
        del self._made[mark:-1]  # a list owns its tensors
        return handle

    def scalar(self, value: Any) -> int:
        if isinstance(value, np.generic):
            value = value.item()
        holder: Any
        if isinstance(value, bool):
            holder, code = ctypes.c_bool(value), 12
        elif isinstance(value, int):
            holder, code = ctypes.c_int64(value), 9
        elif isinstance(value, float):
            holder, code = ctypes.c_double(value), 11
        else:
            raise TypeError(f"an operator takes a number, not {type(value).__name__}")
        return self._create("Scalar", ctypes.addressof(holder), code)

    def scalar_or_none(self, value: Any) -> int | None:
        return None if value is None else self.scalar(value)

    def ints(self, values: Sequence[int]) -> int:
        return self._create("IntArray", _int64s(values), len(values))

    def ints_or_none(self, values: Sequence[int] | None) -> int | None:
        return None if values is None else self.ints(values)

    def bools(self, values: Sequence[bool]) -> int:
        return self._create("BoolArray", (ctypes.c_bool * len(values))(*values), len(values))

    def destroy(self) -> None:
        for function, handle in self._made:
            self._driver.call(function, handle)
        self._made.clear()


_CONVERT: dict[str, Callable[[_Descriptors, Any], Any]] = {
    "tensor": _Descriptors.tensor,
    "tensor?": _Descriptors.tensor_or_none,
    "tensors": _Descriptors.tensors,
    "scalar": _Descriptors.scalar,
    "scalar?": _Descriptors.scalar_or_none,
    "ints": _Descriptors.ints,
    "ints?": _Descriptors.ints_or_none,
    "bools": _Descriptors.bools,
    "dtype": lambda _, dtype: dtype_code(dtype),
    "text": lambda _, text: text.encode(),
}


# ---------------------------------------------------------------- the call


def launch(name: str, *arguments: Any, stream: Stream | None = None) -> None:
    """Put an operator of the table into a stream (default: the current one); returns before it has run.

    Arguments are those of `aclnn<name>GetWorkspaceSize` in CANN's order, results included: device arrays for tensors,
    numbers for scalars, sequences for arrays, NumPy dtypes for data types, None for what may be missing.
    """
    stream = current_stream() if stream is None else stream
    runtime = driver()
    activate(stream.device_index)
    words = OPERATORS[name].words
    if len(arguments) != len(words):
        raise TypeError(f"aclnn{name} takes {len(words)} arguments, not {len(arguments)}")
    plan, run = runtime.phases(name)
    descriptors = _Descriptors(runtime)
    try:
        converted = [
            _CONVERT[word](descriptors, value) if word in _CONVERT else value
            for word, value in zip(words, arguments, strict=True)
        ]
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        code = plan(*converted, ctypes.byref(size), ctypes.byref(executor))
        if code:
            raise failure(f"aclnn{name}GetWorkspaceSize", code, runtime.recent_message())
        workspace = None
        if size.value:
            try:
                workspace = allocator_of(stream.device_index).allocate(size.value, stream)
            except BaseException:
                runtime.call("aclDestroyAclOpExecutor", executor)
                raise
        listener = observer.listeners.device
        started = None if listener is None else listener.launch_started("kernel", name, stream, 0)
        try:
            code = run(None if workspace is None else workspace.address, size, executor, stream.handle)
        finally:
            if listener is not None:
                listener.launch_ended(started)
        if code:
            raise failure(f"aclnn{name}", code, runtime.recent_message())
    finally:
        descriptors.destroy()
