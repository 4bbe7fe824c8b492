"""Op arguments: what is noted of them while recording, and what is read back from those notes afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from .._core import memory_format as formats
from .._core.dtype import DTYPES, dtype, from_numpy
from .._core.storage import owner_of
from .._dispatch import observer
from ._store import InputInfo

Key = tuple[Any, ...]
Capture = Callable[[tuple[Any, ...], int], int]
Extend = Callable[[tuple[int, ...]], None]

TOUCH_WIDTH = 4  # start of the op, address, bytes, op id and position of the argument
MOST_ARGUMENTS = 64

# A note is a hashable value that keeps nothing alive but small tuples:
#   int, str, None              as they are (not bool: 1 and True are equal, so they could not share a table)
#   (float, 0.5), (bool, True)  other numbers, with their type
#   (_TENSOR, shape, strides, numpy dtype)
#   (_LIST, note, ...)
#   dtype, memory_format, layout: as they are, they live for ever
_TENSOR = "tensor"
_LIST = "list"
_OTHER = (_LIST, None)  # anything that leaves no trace: generators, objects of the user

# torch passes these as numbers, and that is how traces show them.
_SCALAR_TYPES = (
    "uint8 int8 int16 int32 int64 float16 float32 float64 complex32 complex64 complex128 bool qint8 quint8 qint32 "
    "bfloat16 quint4x2 quint2x4 bits1x8 bits2x4 bits4x2 bits8 bits16 float8_e5m2 float8_e4m3fn float8_e5m2fnuz "
    "float8_e4m3fnuz uint16 uint32 uint64"
).split()
_NUMBERS: dict[Any, int] = {DTYPES[name]: i for i, name in enumerate(_SCALAR_TYPES) if name in DTYPES}
_NUMBERS |= {
    formats.contiguous_format: 0,
    formats.preserve_format: 1,
    formats.channels_last: 2,
    formats.channels_last_3d: 3,
    formats.strided: 0,
    formats.sparse_coo: 1,
    formats.sparse_csr: 2,
    formats._mkldnn: 3,
    formats.sparse_csc: 4,
    formats.sparse_bsr: 5,
    formats.sparse_bsc: 6,
    formats.jagged: 7,
}
# How a Python number shows where the op wants a tensor.
_NUMBER_TYPES = {int: "long int", bool: "bool", float: "double", complex: "c10::complex<double>"}

# What a record_function's `args` text adds to its event.
TEXT_INPUT = InputInfo(((),), ("",), ((),), (None,))


def outlined(inputs: observer.Outline) -> InputInfo:
    """The inputs of a span: tensors, or nothing where one was missing."""
    missing = ((), "", ())
    columns = [missing if one is None else (one[0], from_numpy(one[2]).cpp_name, tuple(s // one[2].itemsize for s in one[1]))
               for one in inputs]
    dims, types, strides = zip(*columns, strict=True)
    return InputInfo(dims, types, strides, (None,) * len(columns))


def note(value: Any) -> Any:
    """The note of any argument."""
    kind = value.__class__
    if kind is int or kind is str or value is None:
        return value
    if kind is float or kind is bool or kind is complex:
        return kind, value
    if isinstance(value, list | tuple):
        return (_LIST, *map(note, value))
    array = getattr(value, "_array", None)
    if array is not None:
        return _TENSOR, array.shape, array.strides, array.dtype
    if isinstance(value, dtype | formats.memory_format | formats.layout):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.generic):
        return note(value.item())
    return _OTHER


def _notes(op: int, args: tuple[Any, ...]) -> Key:
    """The key of a call whose arguments are not what the schema leads one to expect."""
    return (~op, *map(note, args))


# Values that may be kept from one call to the next to see whether they are the same again: they hold nothing else.
_KEPT = frozenset((int, str, float, bool, type(None)))


def _source(op: int, type_texts: list[str], follows: bool) -> str:
    """The text of a function that makes an op's capture.

    The usual case, a tensor wherever the schema says Tensor, is written out: (op, shape, strides, dtype, ...).
    Everything else gives a key that starts with ~op and has one note per argument. A call is mostly like the last
    one of its op, and comparing with that costs less than looking a key up. With `follows` it is also noted which
    memory the op was given.
    """
    names = [f"a{i}" for i in range(len(type_texts))]
    tensors = [f"b{i}" for i, type_text in enumerate(type_texts) if type_text == "Tensor"]
    others = [f"a{i}" for i, type_text in enumerate(type_texts) if type_text != "Tensor"]
    seen = [f"{b}.{part}" for b in tensors for part in ("shape", "strides", "dtype")]
    key: list[str] = [str(op)]
    for i, type_text in enumerate(type_texts):
        key += [f"b{i}.shape, b{i}.strides, b{i}.dtype"] if type_text == "Tensor" else [f"note(a{i})"]
    same = [f"{a} is last_{a}" for a in others] + ["seen == last"]
    kept = [f"last_{a}" for a in others]
    lines = [f"{', '.join(names)}, = args"] if names else []
    if tensors:
        lines += ["try:", *(f"    {b} = a{b[1:]}._array" for b in tensors), "except AttributeError:"]
        lines += [f"    touch_all({op}, args, start)"] if follows else []
        lines += [f"    return numbers[notes({op}, args)]"]
    if follows:
        lines += [f"if {b}.base is None: c{b[1:]} = {b}\nelse: c{b[1:]} = owner_of({b})" for b in tensors]
        parts = [f"start, id(c{b[1:]}), c{b[1:]}.nbytes, {op * MOST_ARGUMENTS + int(b[1:])}" for b in tensors]
        lines += [f"touch(({', '.join(parts)}))"] if parts else []
        lines += [f"if {a} is not None: touch_one({op * MOST_ARGUMENTS + int(a[1:])}, {a}, start)"
                  for a in others if "Tensor" in type_texts[int(a[1:])]]
    lines += [f"seen = ({', '.join(seen)},)" if seen else "seen = ()", f"if {' and '.join(same)}: return number"]
    lines += [f"number = numbers[({', '.join(key)},)]", "last = seen"]
    lines += [f"last_{a} = {a} if {a}.__class__ in kept else nothing" for a in others]
    lines += ["return number"]
    text = "\n".join(lines).replace("\n", "\n        ")
    return (
        "def make(numbers, note, notes, kept, nothing, touch, touch_one, touch_all, owner_of):\n"
        f"    {' = '.join(['number', 'last', *kept])} = nothing\n"
        "    def capture(args, start):\n"
        f"        nonlocal {', '.join(['number', 'last', *kept])}\n"
        f"        {text}\n"
        "    return capture\n"
    )


_makers: dict[tuple[int, bool], Callable[..., Capture]] = {}


class Captures:
    """For each op the function from its arguments and start to the number of their key, made when first needed."""

    def __init__(self, numbers: Mapping[Key, int], touched: list[int] | None = None) -> None:
        """`numbers` gives every key a number, also one that it has not seen yet.

        `touched` takes a row for every piece of memory that an op was given, if anybody wants to know.
        """
        self._numbers = numbers
        self._touched = touched
        self._made: list[Capture | None] = [None] * len(observer.op_names)

    def recorded_by(self, extend: Extend) -> Callable[[int, int, int, int, tuple[Any, ...]], None]:
        """What a thread calls with each op: hands on a row that ends with the number of the arguments."""
        made, make = self._made, self._make

        def detail(op: int, start: int, end: int, sequence: int, args: tuple[Any, ...]) -> None:
            try:
                capture = made[op] or make(op)
            except IndexError:  # an op that was declared since
                capture = make(op)
            extend((op, start, end, sequence, capture(args, start)))

        return detail

    def _make(self, op: int) -> Capture:
        made = self._made
        made += [None] * (op + 1 - len(made))
        schema, follows = observer.op_schemas[op], self._touched is not None
        touch: Extend | None = self._touched.extend if self._touched is not None else None
        if schema is None:
            capture = _without_schema(op, self._numbers, touch)
        else:
            make = _makers.get((op, follows))
            if make is None:
                space: dict[str, Any] = {}
                exec(_source(op, [argument.type_text for argument in schema.arguments], follows), space)
                make = _makers[op, follows] = space["make"]
            capture = make(self._numbers, note, _notes, _KEPT, object(), touch,
                           touch and partial(_touch_one, touch), touch and partial(_touch_all, touch), owner_of)
        made[op] = capture
        return capture


def _without_schema(op: int, numbers: Mapping[Key, int], touch: Extend | None) -> Capture:
    def capture(args: tuple[Any, ...], start: int) -> int:
        if touch is not None:
            _touch_all(touch, op, args, start)
        return numbers[_notes(op, args)]

    return capture


def _touch_all(touch: Extend, op: int, args: tuple[Any, ...], start: int) -> None:
    for position, value in enumerate(args):
        _touch_one(touch, op * MOST_ARGUMENTS + position, value, start)


def _touch_one(touch: Extend, place: int, value: Any, start: int) -> None:
    """Note the memory behind an argument of any kind, without keeping it."""
    for one in value if isinstance(value, list | tuple) else (value,):
        array = getattr(one, "_array", None)
        if array is not None:
            owner = owner_of(array)
            touch((start, id(owner), owner.nbytes, place))


def decode(key: Key) -> InputInfo:
    """The inputs that a key stands for, one entry per argument."""
    op = key[0]
    schema = observer.op_schemas[op if op >= 0 else ~op]
    wanted = [a.type_text for a in schema.arguments] if schema is not None else []
    items = list(key[1:])
    if op >= 0:
        notes: list[Any] = []
        for type_text in wanted:
            if type_text == "Tensor":
                notes.append((_TENSOR, *items[:3]))
                del items[:3]
            else:
                notes.append(items.pop(0))
    else:
        notes = items
    wanted += [""] * (len(notes) - len(wanted))
    columns = [_decode_one(one, type_text) for one, type_text in zip(notes, wanted, strict=False)]
    dims, types, strides, concrete = zip(*columns, strict=True) if columns else ((), (), (), ())
    return InputInfo(dims, types, strides, concrete)


def _decode_one(one: Any, type_text: str) -> tuple[Any, str, Any, Any]:
    """(dims, type, strides, concrete value) of one note."""
    if one is None or one is _OTHER or isinstance(one, str):
        return (), "", (), None
    if isinstance(one, tuple):
        head = one[0]
        if head is _TENSOR:
            _, shape, strides, np_dtype = one
            return shape, from_numpy(np_dtype).cpp_name, tuple(s // np_dtype.itemsize for s in strides), None
        if head is _LIST:
            return _decode_list(one[1:], type_text)
        value = one[1]
    else:
        value = _NUMBERS.get(one, one)
    if type_text.startswith("Tensor"):
        return (), _NUMBER_TYPES[type(value)], (), None
    return (), "Scalar", (), value


def _decode_list(items: tuple[Any, ...], type_text: str) -> tuple[Any, str, Any, Any]:
    if type_text.startswith("Tensor?["):
        return (), "", (), None
    if type_text.startswith("Tensor[") or any(isinstance(i, tuple) and i[0] is _TENSOR for i in items):
        decoded = [_decode_one(i, "Tensor") for i in items]
        return tuple(d[0] for d in decoded), "TensorList", tuple(d[2] for d in decoded), None
    values = tuple(i[1] if isinstance(i, tuple) else i for i in items)
    if not all(isinstance(v, int | float | complex) for v in values):
        return (), "", (), None
    return (), "ScalarList", (), values
