"""Beside a recording: which tensors each op was given and which it gave back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..._core.device import device as Device
from ..._core.dtype import dtype as Dtype
from ..._core.memory_format import layout as Layout
from ..._core.memory_format import memory_format as MemoryFormat
from ..._core.storage import owner_of
from ..._core.tensor import Tensor
from ..._core.threads import ThreadState, threads
from ..._dispatch import entry_globals, observer
from ..._dispatch.interception import Mode, proceed

# torch's numbers of what an op can be told beside tensors and numbers.
_DTYPES = {
    name: number
    for number, name in enumerate(
        (
            "uint8",
            "int8",
            "int16",
            "int32",
            "int64",
            "float16",
            "float32",
            "float64",
            "complex32",
            "complex64",
            "complex128",
            "bool",
            "qint8",
            "quint8",
            "qint32",
            "bfloat16",
        )
    )
}
_FORMATS = {"contiguous_format": 0, "preserve_format": 1, "channels_last": 2, "channels_last_3d": 3}
_TYPES = {bool: "Bool", int: "Int", float: "Double", complex: "ComplexDouble", str: "String"}


class Value(NamedTuple):
    """One input or output. A tensor is a tuple (tensor, storage, offset, elements, bytes per element, device)."""

    value: Any
    shape: Any
    type: str
    stride: Any


class Call(NamedTuple):
    """What one op was given and gave back, and a moment at which nothing inside it had begun."""

    thread: ThreadState
    moment: int
    op: int
    inputs: list[Value]
    outputs: list[Value]


class TensorIoMode(Mode):
    """While it is on a thread, notes the arguments and results of every op that the thread runs."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.calls: list[Call] = []
        self._clock = clock
        self._state: ThreadState | None = None

    def start(self) -> None:
        """Begin to look at the calling thread."""
        self._state = threads.state
        self._state.modes.append(self)
        observer.acquire()

    def stop(self) -> None:
        """Look no more."""
        if self._state is not None:
            self._state.modes.remove(self)
            self._state = None
            observer.release()

    def run(self, op: Any, args: tuple[Any, ...]) -> Any:
        """Run an op as it would have run, and note what it was given and what came of it."""
        state, moment = threads.state, self._clock()
        # Before the op: it may write to them.
        inputs = [described(value, argument.type_text) for argument, value in zip(op.schema.arguments, args, strict=True)]
        modes = state.modes
        if modes:  # somebody else's: what they do inside is theirs
            result = proceed(op, args)
        else:
            modes.append(self)
            try:
                result = entry_globals.run_kernel(op, args)
            except (AttributeError, ValueError, TypeError) as error:
                result = entry_globals.recover(op, args, error)  # as the op's entry would have done
            finally:
                modes.remove(self)
        returns = op.schema.returns
        results = () if not returns else (result,) if len(returns) == 1 else result
        self.calls.append(Call(state, moment, op.id, inputs, [described(value) for value in results]))
        return result


def described(value: Any, wanted: str = "") -> Value:
    """A value as an execution trace shows it; of a tensor, which one it is but not what is in it."""
    if isinstance(value, Tensor):
        tensor: Any = value
        array = tensor._array
        place = (id(value), id(owner_of(array)), value.storage_offset(), array.size, array.itemsize, str(value.device))
        return Value(place, list(value.shape), f"Tensor({value.dtype.cpp_name})", list(value.stride()))
    if isinstance(value, list | tuple):
        items = [described(item) for item in value]
        return Value(
            [i.value for i in items],
            [i.shape for i in items],
            f"GenericList[{','.join(i.type for i in items)}]",
            [i.stride for i in items],
        )
    if isinstance(value, Device) or (isinstance(value, str) and wanted.startswith("Device")):
        return Value(str(value), [], "Device", [])
    if isinstance(value, Dtype):
        return Value(_DTYPES.get(value.name, -1), [], "Int", [])
    if isinstance(value, Layout):
        return Value(0, [], "Int", [])
    if isinstance(value, MemoryFormat):
        return Value(_FORMATS.get(repr(value).removeprefix("torch."), -1), [], "Int", [])
    if value is None:
        return Value("<None>", [], "None", [])
    kind = next((name for base, name in _TYPES.items() if isinstance(value, base)), type(value).__name__)
    return Value(value if isinstance(value, bool | int | float | str) else str(value), [], kind, [])
