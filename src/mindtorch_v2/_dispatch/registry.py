"""The registry: every op declared once, with its kernel, derivative, shape rule and FLOPs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from . import observer
from .schema import REQUIRED, Schema

Kernel = Callable[..., Any]

# How operands are brought to one dtype before the kernel sees them.
#   same     torch's promotion                            add, mul, maximum
#   float    the same, and integers become floats         div, exp, sigmoid
#   compare  operands promoted, the result is bool        eq, lt
#   number   the same as `same`, and bools are refused    sub, rsub
#   real     the same as `same`, and complex ones are     maximum, fmin
#   one      none at all: all have one dtype              lerp
#   fitting  the same as `same`, but the kernel sees a number as it was given, to refuse what does not fit: where, pow
PROMOTIONS = (None, "same", "float", "compare", "number", "real", "one", "fitting")


class OpSpec:
    """One op overload: what `@op` declared. Calling it runs the op.

    Declaring an op notes what it was given; what follows from that is worked out when somebody asks (`_FOLLOWS`).
    """

    __slots__ = (
        "_derivative_source",
        "below_autograd",
        "call",
        "composite",
        "derivative",
        "flops",
        "forward",
        "id",
        "kernel",
        "kernels",
        "name",
        "node_name",
        "nondiff",
        "not_followed",
        "packet",
        "promote",
        "promoted",
        "results",
        "samples",
        "schema",
        "shape",
        "tags",
        "takes_out",
    )

    forward: dict[str, Kernel]
    kernels: dict[str, Kernel]
    not_followed: tuple[str, ...]
    promoted: tuple[str, ...]
    takes_out: bool

    def __init__(
        self,
        schema: Schema,
        kernel: Kernel,
        composite: bool,
        promote: str | None,
        promoted: tuple[str, ...] | None,
        shape: Kernel | None,
        flops: Kernel | None,
        nondiff: bool,
        node: str | None,
        samples: Kernel | None,
        tags: frozenset[str],
    ) -> None:
        if promote is None:
            self.promoted = ()
        elif promote not in PROMOTIONS:
            raise ValueError(f"{schema.full_name}: promote={promote!r} is none of {PROMOTIONS}")
        elif promoted is not None:
            self.promoted = promoted
        name = schema.name
        self.schema = schema
        self.name = name = name if "::" in name else "aten::" + name
        self.kernel = kernel
        self.composite = composite
        # Composites run as they are and leave a trail of other ops' nodes; one with its own derivative is
        # a kernel written in Tensor code, so what it calls stays out of the graph.
        self.below_autograd = False
        self.promote = promote
        self.shape = shape
        self.flops = flops
        self.nondiff = nondiff
        self.node_name = node
        # Arguments to test the op with, where those that follow from the schema would not do.
        self.samples = samples
        self.tags = tags
        self.derivative: Any = None
        # What a call with several results returns: a kind of tuple.
        self.results: Callable[..., Any] | None = None
        self.packet: Packet | None = None
        self.call: FunctionType | None = None
        names = observer.op_names
        self.id = len(names)
        names.append(name)
        observer.op_overloads.append(schema.overload)
        observer.op_schemas.append(schema)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # type: ignore[misc]

    def __getattr__(self, attribute: str) -> Any:
        # Reached for slots that are still empty, so that looking one up costs nothing once it is filled.
        work_out = _FOLLOWS.get(attribute)
        if work_out is None:
            raise AttributeError(f"'OpSpec' object has no attribute '{attribute}'")
        found = work_out(self)
        setattr(self, attribute, found)
        return found

    def __repr__(self) -> str:
        return f"<op {self.name}{'.' + self.schema.overload if self.schema.overload else ''}>"

    def kernel_for(self, device: str) -> Callable[[Kernel], Kernel]:
        """`@mul.kernel_for("npu")` registers another device's kernel beside this one."""

        def register(kernel: Kernel) -> Kernel:
            self.kernels[device] = kernel
            return kernel

        return register

    def vjp(self, joint: Kernel | None = None, /, **formulas: Kernel) -> OpSpec:
        """Declare the derivative: one formula per input, or one function for all.

        `mul.vjp(self=lambda g, other: g * other, other=lambda g, self: g * self)`: each formula takes the
        output's gradient and, by name, what it needs saved: arguments, `result` (or `result0`, ...), or
        `self_shape`, `self_strides` (in bytes), `self_dtype` of an argument. Only formulas of inputs that
        require grad are run and saved for.
        A function for all (`@op.vjp`) may ask for `needs`, a tuple telling which inputs want a gradient.
        """
        if joint is None and not formulas:
            raise ValueError(f"{self.name}: vjp() needs formulas")
        self._derivative_source = joint if joint is not None else formulas
        self.below_autograd = self.composite
        return self

    def jvp(self, /, **formulas: Kernel) -> OpSpec:
        """Declare the forward derivative, for an op whose tangents do not follow from its `vjp`: one that picks one of
        several gradients, or whose formula is not linear in `g` alone. Each takes the input's tangent and, by name, what it
        needs; it gives the tangent of the output, or a tuple of those of all outputs.
        """
        self.forward = formulas
        return self

    def not_differentiable(self, *names: str) -> OpSpec:
        """Declare what the derivative leaves out. An argument: a call in which it requires grad raises, and a function for
        all inputs returns nothing for it. A result (`result1`): it never requires grad.
        """
        self.not_followed = names
        return self


def _takes_out(spec: OpSpec) -> bool:
    """Whether the kernel can write into an array it is given as `out=`."""
    if type(spec.kernel).__name__ == "ufunc":
        return True
    code = getattr(spec.kernel, "__code__", None)
    return code is not None and "out" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


_FOLLOWS: dict[str, Callable[[OpSpec], Any]] = {
    "forward": lambda spec: {},
    "kernels": lambda spec: {} if spec.composite else {"cpu": spec.kernel},
    "not_followed": lambda spec: (),
    "promoted": lambda spec: tuple(a.name for a in spec.schema.arguments if a.is_tensor),
    "takes_out": _takes_out,
}


class Packet:
    """All overloads of one name, and the one Python function that serves them."""

    __slots__ = ("function", "name", "overloads")

    def __init__(self, name: str) -> None:
        self.name = name
        self.overloads: dict[str, OpSpec] = {}
        self.function: FunctionType | None = None

    def __iter__(self) -> Iterator[OpSpec]:
        return iter(self.overloads.values())


class Aten:
    """`aten.add(...)`: each op name as an attribute; the value is the packet's function."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no op named aten::{name}")


packets: dict[str, Packet] = {}
aten: Any = Aten()
# What an op asks of `out=` beyond that the result can be cast to it, by name: (op, arguments, the tensor given) -> the
# arguments to compute with, or an error.
out_rules: dict[str, Callable[[OpSpec, tuple[Any, ...], Any], tuple[Any, ...]]] = {}
# Told of every new overload; the dispatcher sets it, so that the registry need not know how calls are compiled.
on_register: list[Callable[[OpSpec], None]] = []


def register(spec: OpSpec) -> OpSpec:
    """Enter an op under its name; a second declaration of one overload is an error."""
    name = spec.schema.name
    packet = packets.get(name)
    if packet is None:
        packet = packets[name] = Packet(name)
    if spec.schema.overload in packet.overloads:
        raise ValueError(f"{spec.schema.full_name} is declared twice")
    packet.overloads[spec.schema.overload] = spec
    spec.packet = packet
    for told in on_register:
        told(spec)
    return spec


def op(
    schema: str,
    kernel: Kernel | None = None,
    *,
    promote: str | None = None,
    promoted: tuple[str, ...] | None = None,
    inplace: bool = False,
    nondiff: bool = False,
    shape: Kernel | None = None,
    flops: Kernel | None = None,
    node: str | None = None,
    samples: Kernel | None = None,
    tags: tuple[str, ...] = (),
) -> Any:
    """Declare an op whose body is its CPU kernel: arrays in, array out.

    With `inplace=True` the form with a trailing underscore comes along. `promote` says how operands meet
    (see PROMOTIONS), `nondiff=True` that there is no derivative on purpose. `samples=lambda make: [(make(3, 4), 1)]`
    lists arguments for the generated tests, where values in (0.1, 0.9) of a few shapes would not do.
    """

    def build(kernel: Kernel) -> OpSpec:
        spec = register(
            OpSpec(Schema(schema), kernel, False, promote, promoted, shape, flops, nondiff, node, samples, frozenset(tags))
        )
        if inplace:
            register(_in_place_form(spec, promoted))
        return spec

    return build if kernel is None else build(kernel)


def composite(
    schema: str,
    body: Kernel | None = None,
    *,
    inplace: bool = False,
    shape: Kernel | None = None,
    flops: Kernel | None = None,
    node: str | None = None,
    nondiff: bool = False,
    samples: Kernel | None = None,
    tags: tuple[str, ...] = (),
) -> Any:
    """Declare an op that is Tensor code calling other ops, composed as torch composes it."""

    def build(body: Kernel) -> OpSpec:
        spec = register(OpSpec(Schema(schema), body, True, None, None, shape, flops, nondiff, node, samples, frozenset(tags)))
        if inplace:
            register(_in_place_form(spec, None))
        return spec

    return build if body is None else build(body)


def _in_place_form(spec: OpSpec, promoted: tuple[str, ...] | None) -> OpSpec:
    """`mul_` from `mul`: same operands, result written into `self`."""
    head, _, rest = spec.schema.text.partition("(")
    name, dot, overload = head.partition(".")
    arguments, _, _ = rest.rpartition("->")
    written = arguments.replace("Tensor self", "Tensor(a!) self", 1).replace("Tensor(a) self", "Tensor(a!) self", 1)
    schema = Schema(f"{name}_{dot}{overload}({written}-> Tensor(a!)")
    return OpSpec(
        schema,
        spec.kernel,
        spec.composite,
        spec.promote,
        promoted or None,
        spec.shape,
        spec.flops,
        spec.nondiff,
        spec.node_name,
        spec.samples,
        spec.tags | {"inplace_of:" + spec.schema.full_name},
    )


def functional_form(spec: OpSpec) -> OpSpec | None:
    """The op that an in-place form was made from, or None if it was declared on its own."""
    for tag in spec.tags:
        if tag.startswith("inplace_of:"):
            name, _, overload = tag[len("inplace_of:") :].partition(".")
            return packets[name].overloads[overload]
    return None


def signature_of(spec: OpSpec) -> inspect.Signature:
    """The Python signature of an overload, for documentation."""
    parameters = [
        inspect.Parameter(
            a.python_name,
            inspect.Parameter.KEYWORD_ONLY if a.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if a.default is REQUIRED else a.default,
        )
        for a in spec.schema.arguments
    ]
    return inspect.Signature(parameters)
