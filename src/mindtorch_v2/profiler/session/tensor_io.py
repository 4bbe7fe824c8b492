"""The tensors that each op takes and returns, for execution traces."""

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
from ..._dispatch import observer

# torch's numbers of dtypes and memory formats.
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


RANGE = -1  # in place of an op id


class Call(NamedTuple):
    """The inputs and outputs of one op, and a moment after its start at which no op inside it had begun."""

    thread: ThreadState
    moment: int
    op: int
    inputs: list[Value]
    outputs: list[Value]


class TensorIoListener:
    """Between start() and stop(), `calls` gets the arguments and results of every op of the thread that started it."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self.calls: list[Call] = []
        self._clock = clock

    def start(self) -> None:
        """Listen to the ops of the calling thread."""
        observer.add_op_listener(self)

    def stop(self) -> None:
        """Listen no longer; `calls` keeps what it has."""
        observer.remove_op_listener(self)

    def op_started(self, op: int, args: tuple[Any, ...]) -> tuple[ThreadState, int, list[Value]]:
        """Describe the arguments, to which the op may write."""
        moment = self._clock()
        arguments = observer.op_schemas[op].arguments
        inputs = [described(value, argument.type_text) for argument, value in zip(arguments, args, strict=True)]
        return threads.state, moment, inputs

    def op_ended(self, op: int, started: tuple[ThreadState, int, list[Value]], result: Any) -> None:
        """Add the call with its results."""
        state, moment, inputs = started
        returns = observer.op_schemas[op].returns
        results = () if not returns else (result,) if len(returns) == 1 else result
        self.calls.append(Call(state, moment, op, inputs, [described(value) for value in results]))

    def range_started(self, values: tuple[Any, ...]) -> None:
        """Add the values that a range was given; a range has no results."""
        self.calls.append(Call(threads.state, self._clock(), RANGE, [_range_input(value) for value in values], []))


def _range_input(value: Any) -> Value:
    """A value of a range, where a tuple is told from a list; an op takes either for a list."""
    noted = described(value)
    return noted._replace(type=noted.type.replace("GenericList", "Tuple", 1)) if isinstance(value, tuple) else noted


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
