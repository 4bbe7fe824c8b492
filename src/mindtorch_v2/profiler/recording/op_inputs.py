"""Op inputs: while recording, the arguments of a call become a small hashable key; afterwards `decode` reads the key.

In: a call's arguments, through a capture function that is generated per op (`Captures`). Out: rows that refer to a key by
number, and `InputInfo` of each key: shapes, types, strides and values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core import memory_format as formats
from ..._core.code_cache import compiled
from ..._core.cpython import DATA_OFFSET, WORD_SHIFT, data_words
from ..._core.dtype import DTYPES, dtype, from_numpy
from ..._core.size import Size
from ..._core.storage import owner_of
from ..._core.threads import threads
from ..._dispatch import observer
from ..store.store import InputInfo
from .op_facts import has_generator_after_size, has_number_form, keeps_pin_memory_open
from .tensor_notes import MOST_ARGUMENTS, STRIDED, touch_all, touch_one

if TYPE_CHECKING:
    from ..._dispatch.schema import Schema

Key = tuple[Any, ...]
Capture = Callable[..., None]  # start, end, sequence number, and the op's arguments one by one
AppendRow = Callable[[tuple[int, ...]], None]
Decoded = tuple[Any, str, Any, Any]  # dims, type, strides and concrete value of one argument

# A note is a hashable value that keeps nothing alive but small tuples:
#   int, str, None              as they are (not bool: 1 and True are equal, so they could not share a table)
#   (float, 0.5), (bool, True)  other numbers, with their type
#   (_TENSOR, shape, strides, numpy dtype)
#   (_LIST, note, ...)
#   dtype, memory_format, layout: as they are, they live for ever
_TENSOR = "tensor"
_LIST = "list"
_OTHER = (_LIST, None)  # anything that traces do not show: generators, objects of the user

# torch passes these as numbers, and that is how traces show them.
SCALAR_TYPES = [
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
    "quint4x2",
    "quint2x4",
    "bits1x8",
    "bits2x4",
    "bits4x2",
    "bits8",
    "bits16",
    "float8_e5m2",
    "float8_e4m3fn",
    "float8_e5m2fnuz",
    "float8_e4m3fnuz",
    "uint16",
    "uint32",
    "uint64",
]
_NUMBERS: dict[Any, int] = {DTYPES[name]: i for i, name in enumerate(SCALAR_TYPES) if name in DTYPES}
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

# The inputs of a record_function that was given `args`.
TEXT_INPUT = InputInfo(((),), ("",), ((),), (None,))


def _outlined(inputs: observer.InputOutline) -> InputInfo:
    """The inputs of a span: tensors and numbers, or nothing where one was missing."""
    dims, types, strides, concrete = zip(*map(_outlined_input, inputs), strict=True)
    return InputInfo(dims, types, strides, concrete)


def _outlined_input(outline: tuple[Any, ...] | None) -> Decoded:
    if outline is None:
        return (), "", (), None
    head = outline[0]
    if head is list:
        return (), "ScalarList", (), tuple([value for _, value in outline[1:]])
    if isinstance(head, type):
        return (), "Scalar", (), outline[1]
    _, strides, np_dtype = outline
    return head, from_numpy(np_dtype).cpp_name, tuple(s // np_dtype.itemsize for s in strides), None


def inputs_of(values: Sequence[Any], keywords: Mapping[str, Any]) -> InputInfo:
    """The inputs of a range that was given values of its own, without a schema."""
    columns = [_decode_one(note(value), "") for value in values]
    dims, types, strides, concrete = zip(*columns, strict=True) if columns else ((), (), (), ())
    shown = tuple((name, _hashable(value)) for name, value in keywords.items())
    return InputInfo(dims, types, strides, concrete, shown)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list | tuple) else value


def note(value: Any) -> Any:
    """The note that stands for an argument in a key, see the list above."""
    kind = value.__class__
    if kind is int or kind is str or value is None:
        return value
    if kind is float or kind is bool or kind is complex:
        return kind, value
    if kind is list or kind is tuple or kind is Size:
        return (_LIST, *map(note, value))
    array = getattr(value, "_array", None)
    if array is not None:
        return _TENSOR, array.shape, array.strides, array.dtype
    if isinstance(value, list | tuple):
        return (_LIST, *map(note, value))
    if isinstance(value, dtype | formats.memory_format | formats.layout):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, np.generic):
        return note(value.item())
    return _OTHER


def _notes(op: int, args: tuple[Any, ...]) -> Key:
    """The key of a call in which an argument is no tensor although the schema says Tensor."""
    return (~op, *map(note, args))


# How the types of lists of numbers begin.
_NUMBER_LISTS = ("int[", "SymInt[", "bool[", "float[", "Scalar[")
_SEQUENCES = frozenset((list, tuple, Size))
_NUMBER_CLASSES = frozenset((int, bool, float))


def _identities(value: Any) -> tuple[tuple[Any, ...], list[int] | None]:
    """The numbers of a list and their identities, which are theirs alone while they are kept; None if not all are numbers."""
    if value.__class__ not in _SEQUENCES or not _NUMBER_CLASSES.issuperset(map(type, value)):
        return (), None
    return (*value,), [*map(id, value)]


# Types whose values a capture may keep to see whether those of a later call are the same: they keep nothing alive.
_KEPT = frozenset((int, str, float, bool, type(None)))


def _source(type_texts: tuple[str, ...], follows: bool) -> tuple[str, list[str]]:
    """The source of the capture function for ops whose arguments have these types, and the globals in which it keeps state.

    Globals cost a function nothing when it is called, unlike names that it closes over.

    The usual case, a tensor wherever the schema says Tensor, has the key (op, shape, strides, dtype, ...), with a note for an
    argument of any other type. Any other case has a key that starts with ~op and has one note per argument. A call that is
    like the op's first one is known by comparing, which takes 40 ns less than looking up the key; an array that is passed
    twice is compared once. (To compare with the last call instead costs a training step more, where shapes alternate: 900 ns
    for an `add` of two tensors, not 660.) A list of numbers is known by their identities, in half the time that a note takes:
    comparing values would call the `==` of a tensor that is among them. With `follows` the function also notes which tensors
    the op was given.
    """
    names = [f"a{i}" for i in range(len(type_texts))]
    tensors = [i for i, type_text in enumerate(type_texts) if type_text == "Tensor"]
    optional = [i for i, type_text in enumerate(type_texts) if type_text == "Tensor?"]
    lists = [i for i, type_text in enumerate(type_texts) if type_text.startswith(_NUMBER_LISTS)]
    others = [i for i in range(len(names)) if i not in {*tensors, *optional, *lists}]
    parts = ("shape", "strides", "dtype")
    key = ["op"]
    for i in range(len(names)):
        looks = ", ".join(f"b{i}.{part}" for part in parts)
        if i in tensors:
            key.append(looks)
        elif i in optional:
            key.append(f"None if b{i} is None else (TENSOR, {looks})")
        elif i in lists:
            key.append(f"n{i}")
        else:
            key.append(f"a{i} if a{i}.__class__ is int or a{i} is None else note(a{i})")
    same = [f"a{i} is first{i}" for i in others] + [f"n{i} is note{i}" for i in lists]
    kept = [f"first{i}" for i in others]
    remember = [f"first{i} = a{i} if a{i}.__class__ in kept else nothing" for i in others]
    for i in lists:
        kept += [f"note{i}", f"numbers{i}", f"ids{i}"]
        remember += [f"note{i} = n{i}", f"numbers{i}, ids{i} = identities(a{i})"]
    for i in tensors:
        kept += [f"{part}{i}" for part in parts]
        remember += [f"{part}{i} = b{i}.{part}" for part in parts]
        if i == tensors[0]:
            same.append(_looks_as_first(i))
        else:
            first = tensors[0]
            same.append(f"(like{i} if b{i} is b{first} else {_looks_as_first(i)})")
            kept.append(f"like{i}")
            remember.append(f"like{i} = " + " and ".join(f"{part}{i} == {part}{first}" for part in parts))
    for i in optional:
        kept += [f"{part}{i}" for part in parts]
        values = ", ".join(f"b{i}.{part}" for part in parts)
        remember.append(f"shape{i}, strides{i}, dtype{i} = (None, None, None) if b{i} is None else ({values})")
        same.append(f"(shape{i} is None if b{i} is None else {_looks_as_first(i)})")
    lines: list[str] = []
    if tensors or optional:
        lines += ["try:", *(f"    b{i} = a{i}._array" for i in tensors)]
        lines += [f"    b{i} = None if a{i} is None else a{i}._array" for i in optional]
        lines += ["except AttributeError:"]
        lines += [f"    touch_all(op, ({', '.join(names)},), start)"] if follows else []
        lines += [f"    return extend((op, start, end, sequence, numbers[notes(op, ({', '.join(names)},))]))"]
    if follows:
        lines += _touching(tensors)
        for i in optional:
            lines += [f"if b{i} is not None:", *(f"    {line}" for line in _touching([i]))]
        lines += [f"if a{i} is not None: touch_one(place{i}, a{i}, start)" for i in others if "Tensor" in type_texts[i]]
    for i in lists:
        lines += [
            f"if a{i}.__class__ in sequences and [*map(id, a{i})] == ids{i}: n{i} = note{i}",
            f"else: n{i} = a{i} if a{i}.__class__ is int or a{i} is None else note(a{i})",
        ]
    if names:
        lines += [
            f"if not ({' and '.join(same)}):",
            f"    found = numbers[({', '.join(key)},)]",
            "    if number is not nothing: return extend((op, start, end, sequence, found))",
            "    number = found",
            *(f"    {line}" for line in remember),
        ]
    else:
        lines += ["if number is nothing: number = numbers[(op,)]"]
    lines += ["extend((op, start, end, sequence, number))"]
    text = "\n".join(lines).replace("\n", "\n    ")
    remembered = ["number", *kept]
    return (
        f"def capture({', '.join(['start', 'end', 'sequence', *names])}):\n    global {', '.join(remembered)}\n    {text}\n"
    ), remembered


def _looks_as_first(i: int) -> str:
    """The condition that an array looks like the one that a capture has first had in its place."""
    return f"b{i}.shape == shape{i} and b{i}.strides == strides{i} and b{i}.dtype is dtype{i}"


def _touching(tensors: list[int]) -> list[str]:
    """The lines of a capture that note which tensors an op was given: what `touch_one` does, for all plain ones in one row."""
    each = [f"touch_one(place{i}, a{i}, start)" for i in tensors]
    if not tensors or not DATA_OFFSET:
        return each
    owners: list[str] = []
    for i in tensors:
        # NumPy gives most views the owner itself as their base: looking takes a quarter of the time of the call.
        owners += [
            f"o{i} = b{i}.base",
            f"if o{i} is None: o{i} = b{i}",
            f"elif o{i}.__class__ is not ndarray or o{i}.base is not None: o{i} = owner_of(b{i})",
            f"i{i} = id(o{i})",
        ]
    rows = [f"start, i{i}, o{i}.nbytes, place{i}, id(a{i}), data_words[i{i} >> {WORD_SHIFT}], {STRIDED}" for i in tensors]
    plain = " is ".join([*(f"b{i}.__class__" for i in tensors), "ndarray"])
    return [
        f"if {plain}:",
        *(f"    {line}" for line in owners),
        f"    touch(({', '.join(rows)}))",
        "else:",
        *(f"    {line}" for line in each),
    ]


_FILE = "<capture inputs::op>"  # a name of this runtime's inside, so that tracers of Python calls leave it out

_codes: dict[tuple[tuple[str, ...], bool], tuple[CodeType, list[str]]] = {}


def _code(type_texts: tuple[str, ...], follows: bool) -> tuple[CodeType, list[str]]:
    known = _codes.get((type_texts, follows))
    if known is None:
        text, remembered = _source(type_texts, follows)
        space: dict[str, Any] = {}
        exec(compiled(text, _FILE), space)
        known = _codes[type_texts, follows] = space["capture"].__code__, remembered
    return known


class Captures(dict[int, Capture]):
    """By op id the op's capture function, made at its first look-up: takes start, end, sequence number and arguments."""

    def __init__(self, extend: AppendRow, numbers: Mapping[Key, int], touched: list[int] | None = None) -> None:
        """`extend` takes the rows, whose last entry is the number of the key; `numbers` numbers keys, new ones too.

        `touched`, if it is not None, gets a row for every tensor that an op was given.
        """
        self._extend = extend
        self._numbers = numbers
        self._touched = touched

    def __missing__(self, op: int) -> Capture:
        begun = observer.clock()
        schema, follows, known = observer.op_schemas[op], self._touched is not None, len(_codes)
        touch: AppendRow | None = self._touched.extend if self._touched is not None else None
        capture: Capture
        if schema is None:
            capture = _without_schema(op, self._extend, self._numbers, touch)
        else:
            code, remembered = _code(tuple([argument.type_text for argument in schema.arguments]), follows)
            nothing = object()
            # A code object of its own, since Python specializes it for the globals that it runs with.
            capture = FunctionType(
                code.replace(),
                dict.fromkeys(remembered, nothing)
                | {f"place{i}": op * MOST_ARGUMENTS + i for i in range(len(schema.arguments))}
                | {
                    "op": op,
                    "TENSOR": _TENSOR,
                    "extend": self._extend,
                    "numbers": self._numbers,
                    "note": note,
                    "notes": _notes,
                    "kept": _KEPT,
                    "nothing": nothing,
                    "sequences": _SEQUENCES,
                    "identities": _identities,
                    "touch": touch,
                    "owner_of": owner_of,
                    "data_words": data_words,
                    "ndarray": np.ndarray,
                    "touch_one": touch and partial(touch_one, touch),
                    "touch_all": touch and partial(touch_all, touch),
                },
            )
        self[op] = capture
        return capture if len(_codes) == known else self._first_use(op, capture, begun)

    def _first_use(self, op: int, capture: Capture, begun: int) -> Capture:
        """Note the op, which has ended, then that code for it was compiled since `begun`; later calls do only the first.

        Where several recordings note the op, one after another, the time stays that of the range around: the row would come
        before the op's in some.
        """
        is_noted = False

        def capture_first(start: int, end: int, sequence: int, *args: Any) -> None:
            nonlocal is_noted
            capture(start, end, sequence, *args)
            if not is_noted and threads.state.capture_by_op is self:
                observer.note_first_use(observer.op_names[op], begun)
            is_noted = True

        return capture_first


def _without_schema(op: int, extend: AppendRow, numbers: Mapping[Key, int], touch: AppendRow | None) -> Capture:
    def capture(start: int, end: int, sequence: int, *args: Any) -> None:
        if touch is not None:
            touch_all(touch, op, args, start)
        extend((op, start, end, sequence, numbers[_notes(op, args)]))

    return capture


def decode(key: Key) -> InputInfo:
    """The inputs that a key stands for, one entry per argument. The key of a span is its outline, or the InputInfo itself."""
    if isinstance(key, InputInfo):
        return key
    op = key[0]
    if not isinstance(op, int):
        return _outlined(key)
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
        if schema is not None and has_number_form(schema.name):
            wanted = ["Scalar" if type_text == "Tensor" else type_text for type_text in wanted]
    if schema is not None:
        _as_torch_passes(schema, notes, wanted)
    wanted += [""] * (len(notes) - len(wanted))
    columns = [_decode_one(noted, type_text) for noted, type_text in zip(notes, wanted, strict=False)]
    dims, types, strides, concrete = zip(*columns, strict=True) if columns else ((), (), (), ())
    return InputInfo(dims, types, strides, concrete)


def _as_torch_passes(schema: Schema, notes: list[Any], wanted: list[str]) -> None:
    """Fill in the values that torch passes for arguments left out, and put the arguments into the order of its overload."""
    for at, argument in enumerate(schema.arguments):
        if argument.name == "pin_memory":
            if notes[at] is None and not keeps_pin_memory_open(schema.name):
                notes[at] = (bool, False)
        elif (
            argument.type_text == "ScalarType?"
            and isinstance(argument.default, str)  # the name of a dtype
            and (notes[at] is None or notes[at] == argument.default)
        ):
            notes[at] = DTYPES[argument.default]
    if has_generator_after_size(schema.name) and schema.arguments[-1].name == "generator":
        generator, type_text = notes.pop(), wanted.pop()
        if generator is not None:
            notes.insert(1, generator)
            wanted.insert(1, type_text)


def _decode_one(noted: Any, type_text: str) -> Decoded:
    """(dims, type, strides, concrete value) of one note."""
    if noted is None or noted is _OTHER or isinstance(noted, str):
        return (), "", (), None
    if isinstance(noted, tuple):
        head = noted[0]
        if head is _TENSOR:
            _, shape, strides, np_dtype = noted
            return shape, from_numpy(np_dtype).cpp_name, tuple(s // np_dtype.itemsize for s in strides), None
        if head is _LIST:
            return _decode_list(noted[1:], type_text)
        value = noted[1]
    else:
        value = _NUMBERS.get(noted, noted)
    if type_text.startswith("Tensor"):
        return (), _NUMBER_TYPES[type(value)], (), None
    return (), "Scalar", (), value


def _decode_list(items: tuple[Any, ...], type_text: str) -> Decoded:
    if type_text.startswith(("Tensor?[", "Tensor[][")):  # torch shows no such list, unless it is empty
        return ((), "", (), None) if items or type_text.startswith("Tensor?") else ((), "ScalarList", (), ())
    if type_text.startswith("Tensor[") or any(isinstance(i, tuple) and i[0] is _TENSOR for i in items):
        decoded = [_decode_one(i, "Tensor") for i in items]
        return tuple(d[0] for d in decoded), "TensorList", tuple(d[2] for d in decoded), None
    values = tuple(i[1] if isinstance(i, tuple) else i for i in items)
    if not all(isinstance(v, int | float | complex) for v in values):
        return (), "", (), None
    return (), "ScalarList", (), values
