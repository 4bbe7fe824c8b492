"""Ops on lists of tensors: `_foreach_add([a, b], 1)` is `[a.add(1), b.add(1)]`, one call that contains the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._core.tensor import Tensor
from ..._dispatch import registry
from ..._dispatch.overloads import resolve
from ..._dispatch.registry import aten, composite
from ..._dispatch.signatures import describe

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
]
# name: (the op for a tensor and a number, the op for two tensors, whether lists take alpha, whether one tensor will do)
_BINARY = {
    "add": ("add", "add", True, True),
    "sub": ("sub", "sub", True, False),
    "mul": ("mul", "mul", False, True),
    "div": ("div", "div", False, True),
    "clamp_min": ("clamp_min", "maximum", False, False),
    "clamp_max": ("clamp_max", "minimum", False, False),
    "maximum": ("clamp_min", "maximum", False, False),
    "minimum": ("clamp_max", "minimum", False, False),
}


def _same_length(*lists: Sequence[Any], what: str = "Tensor lists") -> None:
    if not lists[0]:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for other in lists[1:]:
        if len(other) != len(lists[0]):
            if what == "Tensor lists":
                raise RuntimeError(f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(other)}")
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")


def _in_place(name: str) -> Callable[..., Any]:
    """The in-place form of an op, or the op and a copy where it has none."""
    function = getattr(aten, name + "_", None)
    if function is not None:
        return function
    plain = getattr(aten, name)
    return lambda tensor, *args, **kwargs: aten.copy_(tensor, plain(tensor, *args, **kwargs))


def _declare(name: str, arguments: str, single: str, body: Callable[..., Any], samples: Any = None) -> None:
    """One overload in both forms. `body(function, self, ...)` applies the op called `single` to each tensor."""
    base, _, overload = name.partition(".")
    dot = f".{overload}" if overload else ""

    def functional(self: Any, *args: Any) -> list[Tensor]:
        return body(getattr(aten, single), self, *args)

    def in_place(self: Any, *args: Any) -> None:
        body(_in_place(single), self, *args)

    rest = f", {arguments}" if arguments else ""
    composite(f"{base}{dot}(Tensor[] self{rest}) -> Tensor[]", functional, samples=samples)
    composite(f"{base}_{dot}(Tensor(a!)[] self{rest}) -> ()", in_place, samples=lambda make: [])


def _pair(make: Any) -> list[Tensor]:
    return [make(3, 4), make(2)]


# ---------------------------------------------------------------- one list

for _name in _UNARY:
    _declare(f"_foreach_{_name}", "", _name, lambda function, self: [function(t) for t in self], lambda make: [(_pair(make),)])


@composite("_foreach_zero_(Tensor(a!)[] self) -> ()", samples=lambda make: [])
def foreach_zero_(self):
    for tensor in self:
        aten.zero_(tensor)


@composite("_foreach_max(Tensor[] self) -> Tensor[]", samples=lambda make: [(_pair(make),)])
def foreach_max(self):
    return [aten.max(t) for t in self]


@composite(
    "_foreach_norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    samples=lambda make: [(_pair(make),)],
)
def foreach_norm(self, ord, dtype):
    return [aten.linalg_vector_norm(t, ord, dtype=dtype) for t in self]


@composite(
    "_foreach_powsum.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
    samples=lambda make: [(_pair(make),)],
)
def foreach_powsum(self, ord, dtype):
    return [aten.sum(aten.pow(aten.abs(t), ord), dtype=dtype) for t in self]


@composite(
    "_foreach_clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", samples=lambda make: [(_pair(make),)]
)
def foreach_clone(self, memory_format):
    return [aten.clone(t, memory_format=memory_format) for t in self]


@composite("_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()", samples=lambda make: [])
def foreach_copy_(self, src, non_blocking):
    _same_length(self, src)
    for tensor, source in zip(self, src, strict=True):
        aten.copy_(tensor, source, non_blocking)


@composite("_foreach_mm(Tensor[] self, Tensor[] mat2) -> Tensor[]", samples=lambda make: [([make(3, 4)], [make(4, 2)])])
def foreach_mm(self, mat2):
    _same_length(self, mat2)
    return [aten.mm(a, b) for a, b in zip(self, mat2, strict=True)]


# ---------------------------------------------------------------- a list and a number, a list, a list of numbers


def _with_scalar(function: Any, self: Any, scalar: Any) -> list[Any]:
    return [function(t, scalar) for t in self]


def _with_scalars(function: Any, self: Any, scalars: Any) -> list[Any]:
    _same_length(self, scalars, what="scalars")
    return [function(t, s) for t, s in zip(self, scalars, strict=True)]


def _with_list(function: Any, self: Any, other: Any) -> list[Any]:
    _same_length(self, other)
    return [function(a, b) for a, b in zip(self, other, strict=True)]


def _with_list_times(function: Any, self: Any, other: Any, alpha: Any) -> list[Any]:
    _same_length(self, other)
    return [function(a, b, alpha=alpha) for a, b in zip(self, other, strict=True)]


def _check_number(other: Tensor) -> None:
    if other._array.size != 1:
        raise RuntimeError(
            f"scalar tensor expected to be 0 dim but it has {other._array.ndim} dimensions and {other._array.size} elements."
        )


def _with_tensor(function: Any, self: Any, other: Any) -> list[Any]:
    _check_number(other)
    return [function(t, other) for t in self]


def _with_tensor_times(function: Any, self: Any, other: Any, alpha: Any) -> list[Any]:
    _check_number(other)
    return [function(t, other, alpha=alpha) for t in self]


for _name, (_scalar_op, _tensor_op, _alpha, _takes_tensor) in _BINARY.items():
    _factor = ", *, Scalar alpha=1" if _alpha else ""
    _declare(f"_foreach_{_name}.Scalar", "Scalar scalar", _scalar_op, _with_scalar, lambda make: [(_pair(make), 0.5)])
    _declare(
        f"_foreach_{_name}.List",
        f"Tensor[] other{_factor}",
        _tensor_op,
        _with_list_times if _alpha else _with_list,
        lambda make: [(_pair(make), _pair(make))],
    )
    _declare(
        f"_foreach_{_name}.ScalarList", "Scalar[] scalars", _scalar_op, _with_scalars, lambda make: [(_pair(make), [0.5, 2.0])]
    )
    if _takes_tensor:
        _declare(
            f"_foreach_{_name}.Tensor",
            f"Tensor other{_factor}",
            _tensor_op,
            _with_tensor_times if _alpha else _with_tensor,
            lambda make: [(_pair(make), make())],
        )

_declare("_foreach_pow.List", "Tensor[] exponent", "pow", _with_list, lambda make: [(_pair(make), _pair(make))])
_declare("_foreach_pow.Scalar", "Scalar exponent", "pow", _with_scalar, lambda make: [(_pair(make), 2.0)])
_declare("_foreach_pow.ScalarList", "Scalar[] exponent", "pow", _with_scalars, lambda make: [(_pair(make), [2.0, 3.0])])


@composite(
    "_foreach_pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", samples=lambda make: [(2.0, _pair(make))]
)
def foreach_pow_of_number(self, exponent):
    return [aten.pow(self, t) for t in exponent]


# ---------------------------------------------------------------- three lists


def _pointwise(function: Any, self: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> list[Any]:
    _same_length(self, tensor1, tensor2)
    return [function(a, b, c, value=value) for a, b, c in zip(self, tensor1, tensor2, strict=True)]


def _pointwise_list(function: Any, self: Any, tensor1: Any, tensor2: Any, scalars: Any) -> list[Any]:
    _same_length(self, tensor1, tensor2)
    values = scalars.tolist() if isinstance(scalars, Tensor) else scalars  # type: ignore[attr-defined]
    _same_length(self, values, what="scalars")
    return [function(a, b, c, value=v) for a, b, c, v in zip(self, tensor1, tensor2, values, strict=True)]


for _name in ("addcdiv", "addcmul"):
    _lists = "Tensor[] tensor1, Tensor[] tensor2"
    _declare(
        f"_foreach_{_name}.Scalar",
        f"{_lists}, Scalar value=1",
        _name,
        _pointwise,
        lambda make: [(_pair(make), _pair(make), _pair(make))],
    )
    _declare(
        f"_foreach_{_name}.ScalarList",
        f"{_lists}, Scalar[] scalars",
        _name,
        _pointwise_list,
        lambda make: [(_pair(make), _pair(make), _pair(make), [0.5, 2.0])],
    )
    _declare(f"_foreach_{_name}.Tensor", f"{_lists}, Tensor scalars", _name, _pointwise_list, lambda make: [])


def _lerp(function: Any, self: Any, tensors1: Any, weight: Any) -> list[Any]:
    _same_length(self, tensors1)
    return [function(a, b, weight) for a, b in zip(self, tensors1, strict=True)]


def _lerp_lists(function: Any, self: Any, tensors1: Any, weights: Any) -> list[Any]:
    _same_length(self, tensors1, weights)
    return [function(a, b, w) for a, b, w in zip(self, tensors1, weights, strict=True)]


_declare(
    "_foreach_lerp.Scalar", "Tensor[] tensors1, Scalar weight", "lerp", _lerp, lambda make: [(_pair(make), _pair(make), 0.3)]
)
_declare(
    "_foreach_lerp.List",
    "Tensor[] tensors1, Tensor[] weights",
    "lerp",
    _lerp_lists,
    lambda make: [(_pair(make), _pair(make), _pair(make))],
)
_declare(
    "_foreach_lerp.ScalarList",
    "Tensor[] tensors1, Scalar[] weight",
    "lerp",
    _lerp_lists,
    lambda make: [(_pair(make), _pair(make), [0.3, 0.7])],
)


# ---------------------------------------------------------------- choosing the overload


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return "Tensor"
    if isinstance(value, list | tuple):
        return "List" if value and isinstance(value[0], Tensor) else "ScalarList"
    return "Scalar"


def _chooser(name: str) -> Callable[..., Any]:
    """The function of a name whose overloads differ in what their last list holds, which its type does not tell."""
    packet = registry.packets[name]
    entries = {overload: spec.call for overload, spec in packet.overloads.items()}
    deciding = 3 if "addc" in name else 2 if "lerp" in name else 1

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(self, list | tuple):
            spec, _ = resolve(packet, (self, *args), kwargs)  # a number before the list, or TypeError
            return spec.call(self, *args, **kwargs)
        named = [v for k, v in kwargs.items() if k in ("scalar", "scalars", "other", "exponent", "value", "weight", "weights")]
        operand = args[deciding - 1] if len(args) >= deciding else named[0] if named else 1
        kind = _kind(operand)
        if kind == "Tensor" and kind not in entries:  # a tensor of one element will do for a number
            operand = operand.item()
            return entries["Scalar"](self, *args[: deciding - 1], operand)
        if kind not in entries:
            resolve(packet, (self, *args), kwargs)  # raises, but where the other lists are empty and fit anything
            raise TypeError(f"{name}() received an invalid combination of arguments: a list of tensors for numbers")
        return entries[kind](self, *args, **kwargs)

    call.__name__ = call.__qualname__ = name
    return call


for _name in (*_BINARY, "pow", "addcdiv", "addcmul", "lerp"):
    for _form in (f"_foreach_{_name}", f"_foreach_{_name}_"):
        registry.packets[_form].function = _chooser(_form)
        describe(registry.packets[_form])
        setattr(aten, _form, registry.packets[_form].function)
