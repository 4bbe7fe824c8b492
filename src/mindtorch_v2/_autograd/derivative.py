"""Derivatives as declared by `op.vjp(...)`, turned once into plans of what to save and what to run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from .._dispatch.registry import OpSpec, functional_form

_RESULT = re.compile(r"result(\d*)$")
ARG, SHAPE, STRIDES, DTYPE, RESULT, NEEDS = range(6)


class Plan:
    """For one set of inputs that need a gradient: what to save, and the formulas with the saved values they take."""

    __slots__ = ("formulas", "saved", "saves_result")

    def __init__(self, saved: list[tuple[int, int]], formulas: list[tuple[int, Callable[..., Any], tuple[int, ...]]]) -> None:
        self.saved = tuple(saved)
        self.formulas = formulas
        self.saves_result = any(kind == RESULT for kind, _ in saved)


class Derivative:
    """The derivative of one op."""

    __slots__ = ("arguments", "formulas", "joint", "lists", "node_type", "op", "plans")

    def __init__(self, op: OpSpec, source: Any, node_type: type) -> None:
        self.op = op
        self.node_type = node_type
        index = {a.name: i for i, a in enumerate(op.schema.arguments)}
        self.joint = source if callable(source) else None
        if self.joint is not None:
            names = [a.name for a in op.schema.arguments if a.is_tensor or a.is_tensor_list]
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
        self.plans: dict[tuple[bool, ...], Plan] = {}

    def plan(self, needs: tuple[bool, ...]) -> Plan:
        made = self.plans.get(needs)
        if made is None:
            made = self.plans[needs] = self._make_plan(needs)
        return made

    def _make_plan(self, needs: tuple[bool, ...]) -> Plan:
        saved: list[tuple[int, int]] = []
        index = {a.name: i for i, a in enumerate(self.op.schema.arguments)}

        def slot(name: str) -> int:
            kind = self._meaning(name, index)
            if kind not in saved:
                saved.append(kind)
            return saved.index(kind)

        def slots(function: Callable[..., Any]) -> tuple[int, ...]:
            return tuple(slot(name) for name in list(inspect.signature(function).parameters)[1:])

        if self.joint is not None:
            return Plan(saved, [(-1, self.joint, slots(self.joint))])
        chosen = [(position, self.formulas[i]) for position, i in enumerate(self.arguments) if needs[position]]
        return Plan(saved, [(position, function, slots(function)) for position, function in chosen])

    def _meaning(self, name: str, index: dict[str, int]) -> tuple[int, int]:
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


def camel(name: str) -> str:
    """`native_layer_norm` -> `NativeLayerNorm`."""
    return "".join(part[:1].upper() + part[1:] for part in re.sub(r"(\d)([a-z])", lambda m: m[1] + m[2].upper(), name)
                   .split("_") if part)


def node_name(op: OpSpec) -> str:
    """torch's name of the node that an op leaves: declared, or the op's name and `Backward0`."""
    return op.node_name or camel(op.schema.name.rstrip("_").rpartition("::")[2]) + "Backward0"


def derivative_of(op: OpSpec, base: type) -> Derivative | None:
    """An op's derivative, or None if it has none. In-place forms take their functional form's."""
    made = op.derivative
    if made is None:
        source = getattr(op, "_derivative_source", None)
        if source is None:
            functional = functional_form(op)
            source = getattr(functional, "_derivative_source", None) if functional is not None else None
        if source is None:
            return None
        made = op.derivative = Derivative(op, source, type(node_name(op), (base,), {"__slots__": ()}))
    return made
