"""A reader of pickles that runs nothing but what a checkpoint of weights needs, and takes no number on trust.

pickle.Unpickler would do for trusted files. A hostile one can make it reserve gigabytes (memo numbers, lengths), set
attributes of whatever it can name, and crash or hang the interpreter with keys that are tuples in tuples. Here every
length is compared with the file's, calls and attributes are on lists, and keys are looked at before they are hashed.
"""

from __future__ import annotations

import collections
import pickle
import struct
from collections.abc import Callable, Iterable
from typing import Any, BinaryIO

from .._core.device import device as Device
from .._core.size import Size
from .._core.tensor import Tensor
from .names import SAFE, latin_bytes

# Parts of one key, and keys beyond 61 bits, where Python's hash of numbers repeats itself.
_MOST_PARTS = 1000
_MOST_LARGE_KEYS = 1000
_LARGEST_KEY = (1 << 61) - 2
_PLAIN = frozenset({str, int, float, bool, bytes, complex, type(None)})
_MAPPINGS = (dict, collections.OrderedDict, collections.Counter, collections.defaultdict)
_SETS = (set, frozenset)
_OF_PLAIN = (Device, complex, slice, latin_bytes)
# What may be called: everything that is safe to name and makes something.
_CALLABLE = frozenset(id(value) for value in SAFE.values() if callable(value) and value is not Tensor)
# Modules whose names no list can allow.
_BLOCKED = frozenset({"sys", "os", "posix", "nt"})
_CHANGED = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
_DOCUMENTED = (
    "\n\nCheck the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)


def _refused(reason: str) -> pickle.UnpicklingError:
    """What a file that may be trusted gets: torch's words on how to trust it."""
    return pickle.UnpicklingError(
        "Weights only load failed. This file can still be loaded, to do so you have two options, \x1b[1mdo those steps only "
        f"if you trust the source of the checkpoint\x1b[0m. \n\t(1) {_CHANGED}\n\t(2) Alternatively, to load with "
        "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler error: "
        f"{reason}{_DOCUMENTED}"
    )


_MARK = object()


class _Stop(Exception):
    """Raised by the STOP opcode; its value is the loaded object."""


class RestrictedUnpickler:
    """Reads one pickle: plain values, containers, tensors, and what the user allowed by (module, name).

    pickle.UnpicklingError: anything else, and anything that is not a pickle.
    """

    def __init__(
        self,
        file: BinaryIO,
        size: int,
        storages: Callable[..., Any],
        allowed: dict[tuple[str, str], Any],
        encoding: str = "utf-8",
        errors: str = "strict",
        fix_imports: bool = True,
    ) -> None:
        self._file = file
        self._size = size
        self._storages = storages
        self._allowed = allowed
        self._allowed_ids = frozenset(map(id, allowed.values()))
        self._encoding, self._errors = encoding, errors
        self._memo: dict[int, Any] = {}
        self._stack: list[Any] = []
        self._large_keys = 0

    def load(self) -> Any:
        """Run the pickle to its end and return the object; UnpicklingError for what is not allowed."""
        read, steps = self._file.read, _STEPS
        try:
            while True:
                code = read(1)
                if not code:
                    raise pickle.UnpicklingError("Weights only load failed. The pickle breaks off.")
                step = steps.get(code[0])
                if step is None:
                    raise pickle.UnpicklingError(f"Weights only load failed. Unsupported operand {code[0]}")
                step(self)
        except _Stop as end:
            return end.args[0]
        except (pickle.UnpicklingError, MemoryError, OSError):
            raise
        except RecursionError:
            raise pickle.UnpicklingError("Weights only load failed. It is nested too deeply.") from None
        except RuntimeError:
            raise  # about tensors and storages, with a message of its own
        except Exception as error:
            raise pickle.UnpicklingError(f"Weights only load failed. {type(error).__name__}: {error}") from error

    # ------------------------------------------------------------------ pieces

    def _read(self, count: int) -> bytes:
        if count > self._size:
            raise pickle.UnpicklingError(f"Weights only load failed. {count} bytes are wanted, the file has {self._size}.")
        data = self._file.read(count)
        if len(data) < count:
            raise pickle.UnpicklingError("Weights only load failed. The pickle breaks off.")
        return data

    def _line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise pickle.UnpicklingError("Weights only load failed. The pickle breaks off.")
        return line[:-1]

    def _number(self, width: int) -> int:
        return int.from_bytes(self._read(width), "little")

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise pickle.UnpicklingError("Weights only load failed. A mark is where a value should be.")
        return value

    def _popped_to_mark(self) -> list[Any]:
        stack = self._stack
        at = len(stack) - 1
        while stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise pickle.UnpicklingError("Weights only load failed. A mark is missing.")
        values = stack[at + 1 :]
        del stack[at:]
        return values

    def _top(self, *kinds: type) -> Any:
        value = self._stack[-1]
        if type(value) not in kinds and id(type(value)) not in self._allowed_ids:
            raise pickle.UnpicklingError(f"Weights only load failed. Items cannot be added to a {type(value).__name__}.")
        return value

    def _hashable(self, key: Any) -> Any:
        """The key, if hashing it takes neither a deep stack nor long."""
        kind = type(key)
        if kind is str:
            return key
        left = [key]
        parts = 0
        while left:
            part = left.pop()
            kind = type(part)
            parts += 1
            if parts > _MOST_PARTS:
                raise pickle.UnpicklingError("Weights only load failed. A key has too many parts.")
            if kind in (tuple, frozenset, Size):
                if len(part) > _MOST_PARTS:
                    raise pickle.UnpicklingError("Weights only load failed. A key has too many parts.")
                left.extend(part)
            elif kind is int and not -_LARGEST_KEY <= part <= _LARGEST_KEY:
                self._large_keys += 1
                if self._large_keys > _MOST_LARGE_KEYS:
                    raise pickle.UnpicklingError("Weights only load failed. Too many keys of more than 61 bits.")
        return key

    def _set_items(self, target: Any, flat: list[Any]) -> None:
        if len(flat) % 2:
            raise pickle.UnpicklingError("Weights only load failed. A key has no value.")
        for at in range(0, len(flat), 2):
            target[self._hashable(flat[at])] = flat[at + 1]

    # ------------------------------------------------------------------ names and calls

    def find_class(self, module: str, name: str) -> Any:
        """The object of a global name; UnpicklingError if the name is on no list."""
        if module.partition(".")[0] in _BLOCKED:
            raise pickle.UnpicklingError(
                f"Weights only load failed. {_CHANGED}\n\n\nTrying to load unsupported GLOBAL {module}.{name} whose module "
                f"{module} is blocked.{_DOCUMENTED}"
            )
        known = SAFE.get((module, name))
        if known is None:
            known = self._allowed.get((module, name))
        if known is None:
            path = name if module in ("builtins", "__builtin__") else f"{module}.{name}"
            raise _refused(
                f"Unsupported global: GLOBAL {path} was not an allowed global by default. Please use "
                f"`torch.serialization.add_safe_globals([{path}])` or the `torch.serialization.safe_globals([{path}])` "
                "context manager to allowlist this global if you trust this class/function."
            )
        return known

    def _call(self, function: Any, args: Any) -> Any:
        if type(args) is not tuple:
            raise pickle.UnpicklingError("Weights only load failed. Arguments are not a tuple.")
        if id(function) in self._allowed_ids:
            return function(*args)
        if id(function) not in _CALLABLE:
            raise pickle.UnpicklingError(
                "Weights only load failed. Trying to call something that is not an allowed function: "
                f"a {type(function).__name__}."
            )
        if function in _SETS and args:
            return function([self._hashable(entry) for entry in _listed(args[0])])
        if (function in _OF_PLAIN and not all(type(entry) in _PLAIN for entry in args)) or (
            function is Size and not all(type(entry) is int for source in args for entry in _listed(source))
        ):
            raise pickle.UnpicklingError(f"Weights only load failed. A {function.__name__} is made of plain values.")
        if function is bytearray and args and type(args[0]) not in (bytes, str, bytearray):
            raise pickle.UnpicklingError("Weights only load failed. A bytearray is made of bytes.")
        if function is collections.defaultdict:
            return self._filled(collections.defaultdict(*args[:1]), args[1:])
        if function in _MAPPINGS:
            return self._filled(function(), args)
        return function(*args)

    def _filled(self, mapping: Any, args: tuple[Any, ...]) -> Any:
        """A mapping with the items of a mapping or of a list of pairs."""
        if len(args) > 1:
            raise pickle.UnpicklingError("Weights only load failed. A mapping is made of one thing.")
        for source in args:
            pairs = source.items() if type(source) in _MAPPINGS else _listed(source)
            for key, value in pairs:
                mapping[self._hashable(key)] = value
        return mapping

    def _new(self, kind: Any, args: Any, named: Any) -> Any:
        if type(args) is not tuple or type(named) is not dict:
            raise pickle.UnpicklingError("Weights only load failed. Arguments are not a tuple.")
        if id(kind) in self._allowed_ids and isinstance(kind, type):
            return kind.__new__(kind, *args, **named)
        if named:
            raise pickle.UnpicklingError("Weights only load failed. Arguments by name are for allowed classes.")
        return self._call(kind, args)

    def _build(self, target: Any, state: Any) -> None:
        kind = type(target)
        if id(kind) in self._allowed_ids:
            _restore(target, state)
        elif kind in (collections.OrderedDict, collections.Counter) and type(state) is dict:
            target.__dict__.update(state)
        else:
            raise pickle.UnpicklingError(
                "Weights only load failed. Can only build Tensor, Parameter, OrderedDict or types "
                f"allowlisted via `add_safe_globals`, but got {kind.__name__}"
            )


def _listed(value: Any) -> Iterable[Any]:
    if type(value) not in (list, tuple, set, frozenset):
        raise pickle.UnpicklingError(f"Weights only load failed. A {type(value).__name__} is where a list should be.")
    return value  # type: ignore[no-any-return]


def _restore(target: Any, state: Any) -> None:
    """Apply an object's state, as pickle's BUILD opcode does."""
    restore = getattr(target, "__setstate__", None)
    if restore is not None:
        restore(state)
        return
    slots = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        target.__dict__.update(state)
    for name, value in (slots or {}).items():
        setattr(target, name, value)


# ---------------------------------------------------------------------- the steps of a pickle, by their byte

_STEPS: dict[int, Callable[[RestrictedUnpickler], None]] = {}
_Step = Callable[[RestrictedUnpickler], Any]


def _pushes(code: bytes, make: _Step) -> None:
    """A step that puts one value on the stack."""

    def step(self: RestrictedUnpickler) -> None:
        self._stack.append(make(self))

    _STEPS[code[0]] = step


def _does(code: bytes, act: Callable[[RestrictedUnpickler], None]) -> None:
    _STEPS[code[0]] = act


def _whole(line: bytes) -> Any:
    """An integer of protocol 0, which writes truth values as 00 and 01."""
    return line == b"01" if line in (b"00", b"01") else int(line)


def _signed(width: int) -> _Step:
    return lambda self: int.from_bytes(self._read(width), "little", signed=True)


def _counted(width: int, make: Callable[[RestrictedUnpickler, bytes], Any]) -> _Step:
    return lambda self: make(self, self._read(self._number(width)))


def _text(self: RestrictedUnpickler, data: bytes) -> str:
    return data.decode("utf-8", "surrogatepass")


def _old_text(self: RestrictedUnpickler, data: bytes) -> Any:
    return data if self._encoding == "bytes" else data.decode(self._encoding, self._errors)


def _as_is(self: RestrictedUnpickler, data: bytes) -> bytes:
    return data


def _long(self: RestrictedUnpickler, data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)


def _tuple(count: int) -> _Step:
    return lambda self: tuple([self._pop() for _ in range(count)][::-1])


def _frozen(self: RestrictedUnpickler) -> Any:
    return frozenset(self._hashable(entry) for entry in self._popped_to_mark())


def _new_dict(self: RestrictedUnpickler) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    self._set_items(entries, self._popped_to_mark())
    return entries


def _append(self: RestrictedUnpickler) -> None:
    value = self._pop()
    self._top(list).append(value)


def _appends(self: RestrictedUnpickler) -> None:
    values = self._popped_to_mark()
    self._top(list).extend(values)


def _set_item(self: RestrictedUnpickler) -> None:
    value, key = self._pop(), self._pop()
    self._set_items(self._top(*_MAPPINGS), [key, value])


def _set_all(self: RestrictedUnpickler) -> None:
    values = self._popped_to_mark()
    self._set_items(self._top(*_MAPPINGS), values)


def _add_all(self: RestrictedUnpickler) -> None:
    values = self._popped_to_mark()
    self._top(set).update([self._hashable(value) for value in values])


def _remember(key: Callable[[RestrictedUnpickler], int]) -> Callable[[RestrictedUnpickler], None]:
    def step(self: RestrictedUnpickler) -> None:
        if self._stack[-1] is _MARK:
            raise pickle.UnpicklingError("Weights only load failed. A mark cannot be kept.")
        self._memo[key(self)] = self._stack[-1]

    return step


def _named(self: RestrictedUnpickler) -> Any:
    return self.find_class(self._line().decode(), self._line().decode())


def _named_on_stack(self: RestrictedUnpickler) -> Any:
    name, module = self._pop(), self._pop()
    if type(name) is not str or type(module) is not str:
        raise pickle.UnpicklingError("Weights only load failed. A name is not text.")
    return self.find_class(module, name)


def _reduce(self: RestrictedUnpickler) -> Any:
    args, function = self._pop(), self._pop()
    return self._call(function, args)


def _new_object(self: RestrictedUnpickler) -> Any:
    args, kind = self._pop(), self._pop()
    return self._new(kind, args, {})


def _new_object_named(self: RestrictedUnpickler) -> Any:
    named, args, kind = self._pop(), self._pop(), self._pop()
    return self._new(kind, args, named)


def _persistent(self: RestrictedUnpickler) -> Any:
    pid = self._pop()
    if type(pid) is not tuple or not pid or type(pid[0]) not in (str, bytes) or pid[0] not in ("storage", b"storage"):
        raise pickle.UnpicklingError("Weights only load failed. A persistent id is not that of a storage.")
    return self._storages(*pid[1:])


def _build(self: RestrictedUnpickler) -> None:
    state = self._pop()
    self._build(self._stack[-1], state)


def _protocol(self: RestrictedUnpickler) -> None:
    version = self._number(1)
    if version > pickle.HIGHEST_PROTOCOL:
        raise pickle.UnpicklingError(f"Weights only load failed. Unsupported pickle protocol {version}")


def _stop(self: RestrictedUnpickler) -> None:
    raise _Stop(self._pop())


def _quoted(self: RestrictedUnpickler) -> Any:
    line = self._line().strip()
    if len(line) < 2 or line[:1] not in b"'\"" or line[:1] != line[-1:]:
        raise pickle.UnpicklingError("Weights only load failed. A string has no quotes.")
    return _old_text(self, line[1:-1].decode("unicode_escape").encode("latin-1"))


for _code, _make in {
    pickle.NONE: lambda self: None,
    pickle.NEWTRUE: lambda self: True,
    pickle.NEWFALSE: lambda self: False,
    pickle.MARK: lambda self: _MARK,
    pickle.EMPTY_LIST: lambda self: [],
    pickle.EMPTY_TUPLE: lambda self: (),
    pickle.EMPTY_DICT: lambda self: {},
    pickle.EMPTY_SET: lambda self: set(),
    pickle.INT: lambda self: _whole(self._line()),
    pickle.LONG: lambda self: int(self._line().rstrip(b"L")),
    pickle.BININT: _signed(4),
    pickle.BININT1: lambda self: self._number(1),
    pickle.BININT2: lambda self: self._number(2),
    pickle.LONG1: _counted(1, _long),
    pickle.LONG4: _counted(4, _long),
    pickle.FLOAT: lambda self: float(self._line()),
    pickle.BINFLOAT: lambda self: struct.unpack(">d", self._read(8))[0],
    pickle.UNICODE: lambda self: self._line().decode("raw-unicode-escape"),
    pickle.SHORT_BINUNICODE: _counted(1, _text),
    pickle.BINUNICODE: _counted(4, _text),
    pickle.BINUNICODE8: _counted(8, _text),
    pickle.STRING: _quoted,
    pickle.SHORT_BINSTRING: _counted(1, _old_text),
    pickle.BINSTRING: _counted(4, _old_text),
    pickle.SHORT_BINBYTES: _counted(1, _as_is),
    pickle.BINBYTES: _counted(4, _as_is),
    pickle.BINBYTES8: _counted(8, _as_is),
    pickle.BYTEARRAY8: _counted(8, lambda self, data: bytearray(data)),
    pickle.TUPLE1: _tuple(1),
    pickle.TUPLE2: _tuple(2),
    pickle.TUPLE3: _tuple(3),
    pickle.TUPLE: lambda self: tuple(self._popped_to_mark()),
    pickle.LIST: lambda self: self._popped_to_mark(),
    pickle.DICT: _new_dict,
    pickle.FROZENSET: _frozen,
    pickle.DUP: lambda self: self._stack[-1],
    pickle.GET: lambda self: self._memo[int(self._line())],
    pickle.BINGET: lambda self: self._memo[self._number(1)],
    pickle.LONG_BINGET: lambda self: self._memo[self._number(4)],
    pickle.GLOBAL: _named,
    pickle.STACK_GLOBAL: _named_on_stack,
    pickle.REDUCE: _reduce,
    pickle.NEWOBJ: _new_object,
    pickle.NEWOBJ_EX: _new_object_named,
    pickle.BINPERSID: _persistent,
}.items():
    _pushes(_code, _make)
for _code, _act in {
    pickle.PROTO: _protocol,
    pickle.FRAME: lambda self: self._number(8) and None,
    pickle.STOP: _stop,
    pickle.POP: lambda self: self._stack.pop() and None,
    pickle.POP_MARK: lambda self: self._popped_to_mark() and None,
    pickle.APPEND: _append,
    pickle.APPENDS: _appends,
    pickle.SETITEM: _set_item,
    pickle.SETITEMS: _set_all,
    pickle.ADDITEMS: _add_all,
    pickle.BUILD: _build,
    pickle.PUT: _remember(lambda self: int(self._line())),
    pickle.BINPUT: _remember(lambda self: self._number(1)),
    pickle.LONG_BINPUT: _remember(lambda self: self._number(4)),
    pickle.MEMOIZE: _remember(lambda self: len(self._memo)),
}.items():
    _does(_code, _act)
