"""Chooses among the overloads of a name by the types of a call's arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import AUTOGRAD
from .._core.memory_format import layout, memory_format
from .._core.tensor import Tensor, make_tensor
from . import observer
from .callers import is_method_call, only_a_method
from .errors import type_name
from .facts import Promotion
from .promotion import as_number, number_like
from .registry import OpSpec, Packet, aten
from .schema import REQUIRED, Argument, Schema

_INTEGERS = (int, np.integer)
_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
# NumPy's spellings, which torch takes as well.
ALIASES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "x1": "input", "x2": "other"}


def _is_integer(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, Tensor):
        return value._array.ndim == 0 and value._array.dtype.kind in "iu"
    return isinstance(value, _INTEGERS)


def _is_list_of(value: Any, check: Callable[[Any], bool]) -> bool:
    return isinstance(value, list | tuple) and all(map(check, value))


def _is_tensor(value: Any) -> bool:
    return isinstance(value, Tensor) or hasattr(type(value), "__torch_function__")


_CHECKS: dict[str, Callable[[Any], bool]] = {
    "Tensor": _is_tensor,
    "Tensor[]": lambda v: _is_list_of(v, _is_tensor),
    "Tensor?[]": lambda v: _is_list_of(v, lambda i: i is None or isinstance(i, Tensor)),
    "int": _is_integer,
    "float": lambda v: isinstance(v, (int, float, np.number)) and not isinstance(v, bool),
    "bool": lambda v: isinstance(v, bool | np.bool_),
    "str": lambda v: isinstance(v, str),
    # A tensor may stand for a number unless it requires grad.
    "Scalar": lambda v: isinstance(v, _NUMBERS) or (isinstance(v, Tensor) and v._array.ndim == 0 and not v._keys & AUTOGRAD),
    "ScalarType": lambda v: isinstance(v, dt.dtype) or v in (bool, int, float, complex),
    "Device": lambda v: isinstance(v, str | int | Device),
    "MemoryFormat": lambda v: isinstance(v, memory_format),
    "Layout": lambda v: isinstance(v, layout),
    "Generator": lambda v: type(v).__name__ == "Generator",
}


def accepts(spec: OpSpec, argument: Argument, value: Any, lenient: bool = True) -> bool:
    """Whether a value may be passed for an argument; with `lenient` a 0-d tensor may stand for a number."""
    if value is None:
        return argument.optional
    kind = argument.type_text.removesuffix("?")
    if not lenient and kind in ("int", "Scalar") and _is_tensor(value):
        return False
    if argument.is_tensor and argument.name in spec.promoted and argument.name != "self" and not spec.tensors_only:
        return isinstance(value, _NUMBERS) or _is_tensor(value)
    if kind.startswith("int["):
        return _is_list_of(value, _is_integer) or (kind != "int[]" and _is_integer(value))
    if kind.startswith(("float[", "Scalar[", "bool[")):
        return isinstance(value, list | tuple)
    check = _CHECKS.get(kind)
    return check is None or check(value)


def number_as_tensor(op: OpSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...] | None:
    """`torch.mul(2.0, x)`: the arguments with the number as a tensor that leaves x's dtype as a number does; else None."""
    if op.number_source and len(args) > 1 and isinstance(args[1], _NUMBERS):
        number = as_number(args[1])
        return args[0], make_tensor(np.asarray(number, dt.number_dtype(number).np)), *args[2:]
    if not op.number_first or not args or not isinstance(args[0], _NUMBERS):
        return None
    # Composite ops have no promotion: of those that take a number first, all divide.
    divides = op.promote in (Promotion.FLOAT, Promotion.FITTING, None) and kwargs.get("rounding_mode") is None
    return number_like(as_number(args[0]), args[1] if len(args) > 1 else kwargs.get("other"), divides), *args[1:]


def varargs(schema: Schema) -> Argument | None:
    """The int[] argument that a call may spell out as several positional ints, as in `x.view(2, 8)`; None without one."""
    positional = [a for a in schema.arguments if not a.keyword_only]
    own = positional[1:] if positional and positional[0].name == "self" else positional
    return own[0] if len(own) == 1 and own[0].type_text == "int[]" else None


def bind(schema: Schema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
    """The values of a call by the names of a schema's arguments, or None if there are too many or one has no place.

    Arguments that the call leaves out are not in it, and `out` and `requires_grad`, which no schema names, are skipped.
    """
    positional = [a for a in schema.arguments if not a.keyword_only]
    spread = varargs(schema)
    if len(args) > len(positional):
        first = len(positional) - 1
        if spread is None or not all(map(_is_integer, args[first:])):
            return None
        args = (*args[:first], tuple(args[first:]))
    elif spread is not None and len(args) == len(positional) and _is_integer(args[-1]):
        args = (*args[:-1], (args[-1],))
    values = dict(zip((a.python_name for a in positional), args, strict=False))
    names = {a.python_name for a in schema.arguments}
    for keyword, value in kwargs.items():
        name = keyword if keyword in names else ALIASES.get(keyword, keyword)
        if name in ("out", "requires_grad"):
            continue
        if name == "self":
            name = "input"
        if name not in names or name in values:
            return None
        values[name] = value
    return values


def fits(spec: OpSpec, args: tuple[Any, ...], kwargs: dict[str, Any], lenient: bool = True) -> bool:
    """Whether a call can be bound to an overload."""
    if "out" in kwargs and not (spec.out_keyword or any(a.name == "out" for a in spec.schema.arguments)):
        return False
    values = bind(spec.schema, args, kwargs)
    return values is not None and all(
        accepts(spec, a, values[a.python_name], lenient) if a.python_name in values else a.default is not REQUIRED
        for a in spec.schema.arguments
    )


def resolve(packet: Packet, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[OpSpec, bool]:
    """The first overload that fits, and whether the arguments' types alone decide; TypeError in torch's words if none does.

    A 0-d tensor may stand for a number, but only where no overload takes the tensor as such.
    """
    for lenient in (False, True):
        for spec in packet:
            if fits(spec, args, kwargs, lenient):
                return spec, not lenient
    raise TypeError(_mismatch_message(packet, args, kwargs))


def _with_numbers(spec: OpSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with the numbers for which 0-d tensors stand."""
    numbers = [a.python_name for a in spec.schema.arguments if a.type_text.removesuffix("?") == "Scalar"]
    names = [a.python_name for a in spec.schema.arguments]

    def number(name: str, value: Any) -> Any:
        return aten.item(value) if name in numbers and isinstance(value, Tensor) else value

    positional = tuple(number(name, value) for name, value in zip(names, args, strict=False))
    return (*positional, *args[len(names) :]), {name: number(name, value) for name, value in kwargs.items()}


def _mismatch_message(packet: Packet, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """torch's message for a call that no overload takes. It does not list the tensor before the dot of a method's call."""
    skipped = int(bool(args) and (only_a_method(packet) or is_method_call(packet.name, len(args) + len(kwargs))))
    types = [type_name(a) for a in args[skipped:]]
    got = ", ".join([*types, *(f"{name}={type_name(kwargs[name])}" for name in sorted(kwargs))])
    if not types and kwargs:
        got += ", "
    lines = [f"{packet.name}() received an invalid combination of arguments - got ({got}), but expected one of:"]
    for spec in packet:
        parts = _described(spec.schema, skipped)
        lines.append(f" * ({', '.join(parts)})")
        if len(types) == max(len(parts), 1) and not kwargs:
            words = [part.partition(" ")[0] if part.count(" ") == 1 else "" for part in parts or [""]]
            marked = [kind if kind == word else f"!{kind}!" for kind, word in zip(types, words, strict=True)]
            lines.append(f"      didn't match because some of the arguments have invalid types: ({', '.join(marked)})")
    return "\n".join(lines) + "\n"


def _described(schema: Schema, skipped: int) -> list[str]:
    """A signature in torch's words, from the argument after the skipped ones on."""
    parts: list[str] = []
    for a in schema.arguments[skipped:]:
        if a.keyword_only and "*" not in parts:
            parts.append("*")
        parts.append(f"{type_word(a)} {a.python_name}" + ("" if a.default is REQUIRED else f" = {a.default}"))
    return parts


_TYPE_WORDS = {
    "int[]": "tuple of ints",
    "float[]": "tuple of floats",
    "Tensor[]": "tuple of Tensors",
    "Scalar": "Number",
    "ScalarType": "torch.dtype",
    "Device": "torch.device",
    "Layout": "torch.layout",
    "MemoryFormat": "torch.memory_format",
}


def type_word(argument: Argument) -> str:
    """The type of an argument as torch's messages call it."""
    kind = argument.type_text.rstrip("?")
    return _TYPE_WORDS.get(kind.partition("[")[0] + "[]" if "[" in kind else kind, kind)


def _chooser(packet: Packet, operator: bool, entries: dict[Any, Any]) -> Callable[[tuple[Any, ...], dict[str, Any]], Any]:
    """What `packet_function` calls for types that are not in `entries`: adds the entry that fits, and calls it."""

    def choose(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        key: Any = (*map(type, args), *[part for name, value in kwargs.items() for part in (name, type(value))])
        if len(args) == 1 and not kwargs:
            key = type(args[0])
        entry: Any = entries.get(key)
        if entry is None:
            lifted = number_as_tensor(next(iter(packet)), args, kwargs)
            if lifted is not None:
                return choose(lifted, kwargs)
            try:
                spec, by_type = resolve(packet, args, kwargs)
            except TypeError:
                if operator:
                    return NotImplemented
                raise
            entry = spec.call
            if by_type:
                entries[key] = entry
            else:
                args, kwargs = _with_numbers(spec, args, kwargs)
        return entry(*args, **kwargs)

    return choose


def packet_function(packet: Packet, operator: bool = False) -> Any:
    """The function of a name with several overloads: chooses once per combination of argument types.

    Most calls have one or two positional arguments and nothing else, so these take the shortest way. As an operator it
    returns NotImplemented for arguments that no overload takes.
    """
    entries: dict[Any, Any] = {}
    find = entries.get
    choose = _chooser(packet, operator, entries)

    def call(first: Any = REQUIRED, second: Any = REQUIRED, /, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and not args:
            if second is REQUIRED:
                entry = find(first.__class__)
                if entry is not None:
                    return entry(first)
            else:
                entry = find((first.__class__, second.__class__))
                if entry is not None:
                    return entry(first, second)
        elif second is REQUIRED and len(kwargs) == 1:
            for name, value in kwargs.items():
                entry = find((first.__class__, name, value.__class__))
                if entry is not None:
                    return entry(first, **kwargs)
        elif len(args) == 1 and not kwargs:
            (third,) = args
            entry = find((first.__class__, second.__class__, third.__class__))
            if entry is not None:
                return entry(first, second, third)
        return choose(tuple([a for a in (first, second) if a is not REQUIRED]) + args, kwargs)

    call.__name__ = call.__qualname__ = packet.name
    return call


observer.dispatch_code["choose"] = packet_function(Packet("")).__code__
