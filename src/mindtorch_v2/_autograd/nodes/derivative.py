"""The derivative of an op, from what `op.vjp(...)` declares: one plan, of what to save and what to run, for each set of
inputs that require grad. `node_codegen` writes functions from plans, `node_compiler` compiles them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

from ..._dispatch.registry import OpSpec

_RESULT = re.compile(r"result(\d*)$")
ARG, SHAPE, STRIDES, DTYPE, RESULT, NEEDS = range(6)

# One formula: the position of its input among the derivative's inputs, the function, and the slots of `saved` it takes.
Formula = tuple[int, Callable[..., Any], tuple[int, ...]]


class Plan:
    """For one set of inputs that require grad: what to save, and the formulas with the saved values they take.

    `run(node, gradients, retain_graph)`, compiled from that, returns the gradients of the inputs.
    """

    __slots__ = ("derivative", "formulas", "keeps_tensors", "make", "mask", "parts", "pushes", "run", "saved")

    def __init__(
        self, derivative: Derivative, mask: int, saved: list[tuple[int, int]], formulas: list[Formula], pushes: list[Formula]
    ) -> None:
        self.derivative = derivative
        # Bit i: the derivative's i-th input requires grad.
        self.mask = mask
        self.saved = tuple(saved)
        # Whether there is anything to free once a node has run.
        arguments = derivative.op.schema.arguments
        self.keeps_tensors = any(
            kind == RESULT or (kind == ARG and (arguments[i].is_tensor or arguments[i].is_tensor_list)) for kind, i in saved
        )
        self.formulas = formulas
        # Formulas of tangents, for an op that declares a jvp.
        self.pushes = pushes
        self.run: Callable[..., Any]
        # make(args, state), compiled at the first call of an in-place op: see `node_codegen.make_source`.
        self.make: Callable[..., Any] | None = None
        # By mask: variants of `run` that compute only some of the gradients, for passes with targets.
        self.parts: dict[int, Callable[..., Any]] = {}

    @property
    def needs(self) -> tuple[bool, ...]:
        """For each input of the derivative whether it requires grad."""
        return needs_of(self.mask, len(self.derivative.arguments))


def needs_of(mask: int, count: int) -> tuple[bool, ...]:
    """The lowest `count` bits of a mask, lowest first, as a formula's `needs` argument has them."""
    return tuple(bool(mask >> i & 1) for i in range(count))


class Derivative:
    """The derivative of one op: its formulas, the class of its nodes, and its plans by mask."""

    __slots__ = (
        "arguments",
        "constants",
        "formulas",
        "forward",
        "joint",
        "lists",
        "node_type",
        "op",
        "plans",
        "record",
        "refused",
        "takes_all",
    )

    def __init__(self, op: OpSpec, source: Any, node_type: type, declared: OpSpec) -> None:
        self.op = op
        not_followed = declared.not_followed
        self.node_type = node_type
        index = {a.name: i for i, a in enumerate(op.schema.arguments)}
        refused = [name for name in not_followed if not _RESULT.match(name)]
        # Positions of the arguments that must not require grad, and of the results that never do.
        self.refused = tuple(index[name] for name in refused)
        self.constants = tuple(int(name.removeprefix("result")) for name in not_followed if name not in refused)
        self.joint = source if callable(source) else None
        if self.joint is not None:
            names = [a.name for a in op.schema.arguments if (a.is_tensor or a.is_tensor_list) and a.name not in refused]
            self.formulas: dict[int, Any] = {}
        else:
            unknown = set(source) - set(index)
            if unknown:
                raise ValueError(f"{op.schema.full_name}: vjp names unknown arguments {sorted(unknown)}")
            names = [a.name for a in op.schema.arguments if a.name in source]
            self.formulas = {index[name]: source[name] for name in names}
        # Positions of the arguments that may take a gradient, and which of them are lists of tensors.
        self.arguments = tuple(index[name] for name in names)
        self.lists = tuple(op.schema.arguments[i].is_tensor_list for i in self.arguments)
        if sum(self.lists) > 1:
            raise ValueError(f"{op.schema.full_name}: a derivative by more than one list of tensors")
        if declared.forward and list(declared.forward) != names:
            raise ValueError(f"{op.schema.full_name}: jvp names {sorted(declared.forward)}, not {names}")
        # Formulas of tangents in the order of `arguments`, for an op that declares a jvp.
        self.forward = tuple(declared.forward.values())
        # Whether the formulas take the gradients of all outputs, or that of the first one.
        self.takes_all = op.takes_all_grads
        # By mask of the inputs that need a gradient.
        self.plans: dict[int, Plan] = {}
        # record(args, result, thread state): leaves the node of one call, if an input requires grad.
        self.record: Callable[..., None]
        # The same for a call of whose results only the first is a tensor and the others are arrays; compiled at its first use.

    def lay_out(self, mask: int) -> Plan:
        """A new plan for the inputs in `mask`, not compiled yet."""
        saved: list[tuple[int, int]] = []
        index = {a.name: i for i, a in enumerate(self.op.schema.arguments)}

        def slot(name: str) -> int:
            source = self._source(name, index)
            if source not in saved:
                saved.append(source)
            return saved.index(source)

        def slots(function: Callable[..., Any]) -> tuple[int, ...]:
            return tuple(slot(name) for name in _parameters(function)[1:])

        def wanted(functions: Iterable[Callable[..., Any]]) -> list[Formula]:
            return [
                (position, function, slots(function)) for position, function in enumerate(functions) if mask >> position & 1
            ]

        formulas = (
            wanted(self.formulas[i] for i in self.arguments) if self.joint is None else [(-1, self.joint, slots(self.joint))]
        )
        return Plan(self, mask, saved, formulas, wanted(self.forward))

    def _source(self, name: str, index: dict[str, int]) -> tuple[int, int]:
        """What a formula's parameter takes its value from: the kind, and the position among arguments or results."""
        if name in index:
            return ARG, index[name]
        result = _RESULT.match(name)
        if result:
            return RESULT, int(result[1] or 0)
        if name == "needs":
            return NEEDS, 0
        for suffix, kind in (("_shape", SHAPE), ("_strides", STRIDES), ("_dtype", DTYPE)):
            if name.endswith(suffix) and name[: -len(suffix)] in index:
                return kind, index[name[: -len(suffix)]]
        raise ValueError(f"{self.op.schema.full_name}: vjp asks for {name!r}, which is neither an argument nor a result")


def _parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters, from its code object where that says it all: inspect takes 40 times as long."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_flags & inspect.CO_VARARGS or code.co_kwonlyargcount:
        return list(inspect.signature(function).parameters)
    return list(code.co_varnames[: code.co_argcount])


def camel(name: str) -> str:
    """`native_layer_norm` -> `NativeLayerNorm`."""
    return "".join(
        part[:1].upper() + part[1:] for part in re.sub(r"(\d)([a-z])", lambda m: m[1] + m[2].upper(), name).split("_") if part
    )


def node_name(op: OpSpec) -> str:
    """torch's name of the node that an op leaves: the declared one, or the op's name in camel case and `Backward0`."""
    return op.node_name or camel(op.schema.name.rstrip("_").rpartition("::")[2]) + "Backward0"


_node_types: dict[str, type] = {}


def node_type_of(name: str, base: type) -> type:
    """The class of the nodes of that name, one in the process; a namespace in it goes to the class's `title` alone."""
    node_type = _node_types.get(name)
    if node_type is None:
        title = name if "::" in name else None
        node_type = _node_types[name] = type(name.rpartition("::")[2], (base,), {"__slots__": (), "title": title})
    return node_type


def declared_derivative(op: OpSpec, base: type) -> Derivative | None:
    """A new Derivative for an op, None if it declares none. An in-place op takes the formulas of its functional form."""
    source = getattr(op, "_derivative_source", None)
    declared: OpSpec | None = op
    if source is None:
        declared = op.inplace_of
        source = getattr(declared, "_derivative_source", None)
    if source is None or declared is None:
        return None
    return Derivative(op, source, node_type_of(node_name(op), base), declared)
