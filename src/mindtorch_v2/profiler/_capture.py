"""Op arguments: what is noted of them while recording, and what is read back from those notes afterwards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .._core import memory_format as formats
from .._core.dtype import DTYPES, dtype, from_numpy
from .._dispatch import observer
from ._store import InputInfo

Key = tuple[Any, ...]
Capture = Callable[[tuple[Any, ...]], int]

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


def _source(op: int, type_texts: list[str]) -> str:
    """The text of a function that makes an op's capture.

    The usual case, a tensor wherever the schema says Tensor, is written out: (op, shape, strides, dtype, ...).
    Everything else gives a key that starts with ~op and has one note per argument. A call is mostly like the last
    one of its op, and comparing two keys costs less than looking one up.
    """
    names = [f"a{i}" for i in range(len(type_texts))]
    arrays, parts = [], []
    for name, type_text in zip(names, type_texts, strict=True):
        if type_text == "Tensor":
            arrays.append(f"            {name} = {name}._array\n")
            parts.append(f"{name}.shape, {name}.strides, {name}.dtype")
        else:
            parts.append(f"{name} if {name} is None or {name}.__class__ is int else note({name})")
    unpack = f"        {', '.join(names)}, = args\n" if names else ""
    guard = f"        except AttributeError:\n            return numbers[notes({op}, args)]\n"
    return (
        "def make(numbers, note, notes):\n"
        "    last = number = None\n"
        "    def capture(args):\n"
        "        nonlocal last, number\n"
        f"{unpack}"
        + (f"        try:\n{''.join(arrays)}{guard}" if arrays else "")
        + f"        key = ({', '.join([str(op), *parts])},)\n"
        "        if key != last:\n"
        "            number = numbers[key]\n"
        "            last = key\n"
        "        return number\n"
        "    return capture\n"
    )


_makers: dict[int, Callable[..., Capture]] = {}


class Captures(dict[int, Capture]):
    """For each op the function from its arguments to the number of their key; made when the op is first seen."""

    def __init__(self, numbers: Mapping[Key, int]) -> None:
        """`numbers` gives every key a number, also one that it has not seen yet."""
        self._numbers = numbers

    def __missing__(self, op: int) -> Capture:
        schema = observer.op_schemas[op]
        if schema is None:
            made = self[op] = self._general(op)
            return made
        make = _makers.get(op)
        if make is None:
            space: dict[str, Any] = {}
            exec(_source(op, [argument.type_text for argument in schema.arguments]), space)
            make = _makers[op] = space["make"]
        made = self[op] = make(self._numbers, note, _notes)
        return made

    def _general(self, op: int) -> Capture:
        """For an op that has no schema."""
        numbers = self._numbers

        def capture(args: tuple[Any, ...]) -> int:
            return numbers[_notes(op, args)]

        return capture


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
