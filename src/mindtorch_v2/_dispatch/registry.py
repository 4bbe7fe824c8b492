"""The registry: every op declared once, with its kernel, its derivative and all that other rooms want to know of it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any, Unpack

from .._core.single_pass import LARGE
from . import observer
from .facts import (
    Batching,
    ComplexError,
    Facts,
    Kernel,
    Layout,
    OutDtype,
    OutGrad,
    OutRule,
    Overlap,
    Promotion,
    Surface,
)
from .offered import surface_of
from .out_dtypes import castable, exact, same
from .schema import Schema


class OpSpec:
    """One op overload: everything that its declaration says of it. Calling it runs the op.

    Declaring an op stores what was said; what follows from that, and the defaults of the facts that were not mentioned, are
    worked out when they are first read (`_DEFAULTS`), so that declaring a thousand ops stays quick.
    """

    __slots__ = (
        "_derivative_source",
        "aliases",
        "autocast",
        "batching",
        "batching_rule",
        "below_autograd",
        "call",
        "checks_overlap",
        "complex_error",
        "composite",
        "deprecated",
        "derivative",
        "differentiable_results",
        "dispatched",
        "doc",
        "elementwise",
        "flops",
        "forward",
        "generator_after_size",
        "half_in_float32",
        "handwritten",
        "home",
        "host_made",
        "id",
        "inner_row",
        "inplace_of",
        "kernel",
        "kernel_name",
        "kernels",
        "last_first",
        "layout",
        "name",
        "node_name",
        "nondiff",
        "not_followed",
        "number_first",
        "number_form",
        "number_source",
        "out",
        "out_dtype",
        "out_form",
        "out_grad",
        "out_kernel",
        "out_keyword",
        "out_overload",
        "out_rule",
        "packet",
        "pin_memory_stays_open",
        "promote",
        "promoted",
        "recorded_form",
        "recorded_form_in_place",
        "refuses_integer_results",
        "reshapes",
        "results",
        "samples",
        "schema",
        "shape",
        "shared_from",
        "shares_memory",
        "stops_at_integers",
        "surface",
        "takes_all_grads",
        "takes_out",
        "tensors_only",
        "torch_counts_flops",
        "wide_numbers",
        "wraps_number",
    )

    # See `Facts`.
    aliases: tuple[str, ...]
    autocast: Any  # Autocast, a dtype, or None
    batching: Batching | None
    checks_overlap: Overlap | None
    complex_error: ComplexError | None
    deprecated: tuple[str, ...]
    differentiable_results: int | None
    dispatched: bool
    doc: str | None
    generator_after_size: bool
    handwritten: Surface
    host_made: bool
    kernel_name: str
    last_first: bool
    layout: Layout | None
    number_first: bool
    number_form: bool
    number_source: bool
    out: bool
    out_dtype: OutDtype
    out_form: Kernel | None
    out_grad: OutGrad
    out_kernel: Kernel | None
    out_overload: str
    out_rule: OutRule | None
    pin_memory_stays_open: bool
    inner_row: tuple[OpSpec, tuple[Any, ...]] | None
    recorded_form: Kernel | None
    recorded_form_in_place: Kernel | None
    refuses_integer_results: bool
    shared_from: int
    half_in_float32: str
    shares_memory: bool
    stops_at_integers: bool
    reshapes: bool
    surface: Surface
    takes_all_grads: bool
    tensors_only: bool
    torch_counts_flops: bool
    wide_numbers: bool
    wraps_number: bool
    # The module that declares it.
    home: str
    # What vmap runs in place of the op; `func` fills it in.
    batching_rule: Kernel | None
    # The op that an in-place form was made from, None for one that was declared on its own.
    inplace_of: OpSpec | None
    forward: dict[str, Kernel]
    # Whether it works element by element over operands that broadcast.
    elementwise: bool
    # Whether the function has a keyword `out`.
    out_keyword: bool
    kernels: dict[str, Kernel]
    not_followed: tuple[str, ...]
    promoted: tuple[str, ...]
    takes_out: bool

    def __init__(
        self,
        schema: Schema,
        kernel: Kernel,
        composite: bool,
        promote: Promotion | None = None,
        promoted: tuple[str, ...] | None = None,
        shape: Kernel | None = None,
        flops: Kernel | None = None,
        nondiff: bool = False,
        node: str | None = None,
        samples: Kernel | None = None,
        facts: Facts | None = None,
    ) -> None:
        if promote is None:
            self.promoted = ()
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
        self.derivative: Any = None
        # What a call with several results returns: a kind of tuple.
        self.results: Callable[..., Any] | None = None
        self.packet: Packet | None = None
        self.call: FunctionType | None = None
        if facts:
            for fact, value in facts.items():
                setattr(self, fact, value)
        names = observer.op_names
        self.id = len(names)
        names.append(name)
        observer.op_overloads.append(schema.overload)
        observer.op_schemas.append(schema)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.call(*args, **kwargs)  # type: ignore[misc]

    def __getattr__(self, attribute: str) -> Any:
        # Reached for slots that are still empty, so that looking one up costs nothing once it is filled.
        default = _DEFAULTS.get(attribute)
        if default is None:
            raise AttributeError(f"'OpSpec' object has no attribute '{attribute}'")
        value = default(self)
        setattr(self, attribute, value)
        return value

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

    def with_out(self, form: Kernel) -> Kernel:
        """`@matmul.with_out` declares a composite op's `out_form`."""
        self.out_form = form
        return form

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


def _has_out_keyword(spec: OpSpec) -> bool:
    """Whether a call may have `out=`, a tensor that a fresh result is written into. Some backward ops have an argument of that
    name: the forward's result."""
    schema = spec.schema
    fresh = bool(schema.returns) and schema.returns[0].startswith("Tensor") and not schema.mutates and not schema.is_view
    return fresh and spec.out and not schema.returns_list and not any(a.name == "out" for a in schema.arguments)


def usual_out_overload(name: str, overload: str) -> str:
    """The name that torch gives the overload with `out=` of most ops."""
    if name.endswith("_backward"):
        return "grad_input"
    return f"{overload}_out" if overload else "out"


def _default_doc(spec: OpSpec) -> str | None:
    if spec.inplace_of is not None:
        return spec.inplace_of.doc
    return spec.kernel.__doc__ if isinstance(spec.kernel, FunctionType) else None


def _default_layout(spec: OpSpec) -> Layout | None:
    if spec.batching is Batching.REDUCTION:
        return Layout.ROW_MAJOR
    return Layout.OPERANDS if spec.batching is Batching.POINTWISE and spec.promote is None and not spec.composite else None


def _default_out_dtype(spec: OpSpec) -> OutDtype:
    if spec.composite:
        return castable
    if spec.promote is None:
        return same if spec.batching is Batching.POINTWISE else exact
    return same if spec.promote in (Promotion.SAME, Promotion.REAL) and len(spec.promoted) == 1 else castable


def _default_out_grad(spec: OpSpec) -> OutGrad:
    if spec.promote is Promotion.COMPARE:
        return OutGrad.NONE
    return OutGrad.WRITTEN if spec.nondiff else OutGrad.ANY


# A name of its own: looking up a member of a Flag takes ten times as long, for a thousand ops.
_NONE = Surface.NONE

_DEFAULTS: dict[str, Callable[[OpSpec], Any]] = {
    **dict.fromkeys(
        (
            "dispatched",
            "generator_after_size",
            "host_made",
            "last_first",
            "number_first",
            "number_form",
            "number_source",
            "pin_memory_stays_open",
            "refuses_integer_results",
            "shares_memory",
            "stops_at_integers",
            "reshapes",
            "takes_all_grads",
            "tensors_only",
            "torch_counts_flops",
            "wide_numbers",
            "wraps_number",
        ),
        lambda spec: False,
    ),
    **dict.fromkeys(
        (
            "autocast",
            "batching",
            "batching_rule",
            "checks_overlap",
            "complex_error",
            "differentiable_results",
            "inner_row",
            "inplace_of",
            "out_form",
            "out_kernel",
            "out_rule",
            "recorded_form",
            "recorded_form_in_place",
        ),
        lambda spec: None,
    ),
    "shared_from": lambda spec: LARGE if getattr(spec.kernel, "nout", 0) == 1 else 0,
    "half_in_float32": lambda spec: "",
    "aliases": lambda spec: (),
    "deprecated": lambda spec: (),
    "doc": _default_doc,
    "forward": lambda spec: {},
    "handwritten": lambda spec: _NONE,
    "home": lambda spec: spec.inplace_of.home if spec.inplace_of is not None else "",
    "elementwise": lambda spec: not spec.composite and (spec.promote is not None or spec.batching is Batching.POINTWISE),
    "kernel_name": lambda spec: spec.schema.name.removesuffix("_") + "_cpu",
    "kernels": lambda spec: {} if spec.composite else {"cpu": spec.kernel},
    "layout": _default_layout,
    "not_followed": lambda spec: (),
    "out": lambda spec: not spec.composite or spec.out_form is not None,
    "out_dtype": _default_out_dtype,
    "out_grad": _default_out_grad,
    "out_keyword": _has_out_keyword,
    "out_overload": lambda spec: usual_out_overload(spec.schema.name, spec.schema.overload),
    "promoted": lambda spec: tuple(a.name for a in spec.schema.arguments if a.is_tensor),
    "surface": lambda spec: surface_of(spec.schema.name),
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

    @property
    def doc(self) -> str | None:
        """What help() tells of the name: the text of the overload that has the example, else of the first that has one."""
        texts = [spec.doc for spec in self if spec.doc]
        return next((text for text in texts if ">>>" in text), texts[0] if texts else None)


def offered_names(module: str, *places: Surface) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module of torch that has the functions of all ops offered at one of `places`."""

    def is_offered(name: str) -> bool:
        return name in packets and next(iter(packets[name])).surface in places

    def load(name: str) -> Any:
        if not is_offered(name):
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        return packets[name].function

    return load, lambda: sorted(name for name in packets if "::" not in name and is_offered(name))


class Aten:
    """`aten.add(...)`: each op name as an attribute; the value is the packet's function."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"no op named aten::{name}")


packets: dict[str, Packet] = {}
aten: Any = Aten()
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
    promote: Promotion | None = None,
    promoted: tuple[str, ...] | None = None,
    inplace: bool = False,
    nondiff: bool = False,
    shape: Kernel | None = None,
    flops: Kernel | None = None,
    node: str | None = None,
    samples: Kernel | None = None,
    **facts: Unpack[Facts],
) -> Any:
    """Declare an op whose body is its CPU kernel: arrays in, array out.

    With `inplace=True` the form with a trailing underscore comes along. `promote` says how operands meet, `nondiff=True` that
    there is no derivative on purpose. `samples=lambda make: [(make(3, 4), 1)]` lists arguments for the generated tests, where
    values in (0.1, 0.9) of a few shapes would not do. The other keywords are those of `Facts`.
    """

    home = sys._getframe(1).f_globals["__name__"]

    def build(kernel: Kernel) -> OpSpec:
        spec = OpSpec(Schema(schema), kernel, False, promote, promoted, shape, flops, nondiff, node, samples, facts)
        return _declare(spec, home, facts, inplace, promoted)

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
    **facts: Unpack[Facts],
) -> Any:
    """Declare an op that is Tensor code calling other ops, composed as torch composes it."""

    home = sys._getframe(1).f_globals["__name__"]

    def build(body: Kernel) -> OpSpec:
        spec = OpSpec(Schema(schema), body, True, None, None, shape, flops, nondiff, node, samples, facts)
        return _declare(spec, home, facts, inplace)

    return build if body is None else build(body)


def _declare(spec: OpSpec, home: str, facts: Facts, inplace: bool, promoted: tuple[str, ...] | None = None) -> OpSpec:
    """Enter an op, its in-place form and its second names."""
    spec.home = home
    register(spec)
    written = register(_in_place_form(spec, facts, promoted)) if inplace else None
    for name in facts.get("aliases", ()):
        _declare_alias(name, spec)
        if written is not None and not name.startswith("special_"):
            _declare_alias(name + "_", written)
    return spec


# What an in-place form says like the op it was made from.
_SHARED_FACTS = frozenset(
    {
        "checks_overlap",
        "complex_error",
        "deprecated",
        "kernel_name",
        "number_form",
        "shares_memory",
        "takes_all_grads",
        "tensors_only",
        "wide_numbers",
        "wraps_number",
    }
)


def _in_place_form(spec: OpSpec, facts: Facts, promoted: tuple[str, ...] | None) -> OpSpec:
    """`mul_` from `mul`: same operands, result written into `self`."""
    head, _, rest = spec.schema.text.partition("(")
    name, dot, overload = head.partition(".")
    arguments, _, _ = rest.rpartition("->")
    written = arguments.replace("Tensor self", "Tensor(a!) self", 1).replace("Tensor(a) self", "Tensor(a!) self", 1)
    schema = Schema(f"{name}_{dot}{overload}({written}-> Tensor(a!)")
    form = OpSpec(
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
    )
    for fact, value in facts.items():
        if fact in _SHARED_FACTS:
            setattr(form, fact, value)
    # Other batching rules make a new tensor, which an in-place op must not.
    if facts.get("batching") in (Batching.POINTWISE, Batching.BY_SAMPLE, Batching.GATHER):
        form.batching = spec.batching
    form.inplace_of = spec
    form.recorded_form = spec.recorded_form_in_place
    return form


def _declare_alias(name: str, spec: OpSpec) -> None:
    """A second name: an op of its own that calls the first one."""
    schema = spec.schema
    written = schema.mutates
    facts: Facts = {
        "doc": f"Alias of `{schema.name}`.",
        "number_first": spec.number_first,
        "out": not written and spec.out,
        "out_overload": spec.out_overload,
    }
    alias = OpSpec(Schema(name + schema.text[len(schema.name) :]), _calls(spec), True, samples=spec.samples, facts=facts)
    alias.out_form = _calls(spec, "out")
    register(alias)
    if len(spec.promoted) == 2 and not spec.tensors_only and all(a.is_tensor for a in schema.arguments[:2]):
        # A number in place of the second tensor: only kernels take both under one declaration.
        head, _, rest = schema.text.partition("(")
        overload = head.partition(".")[2].replace("Tensor", "Scalar") or "Scalar"
        arguments = rest.replace(f"Tensor {schema.arguments[1].name}", f"Scalar {schema.arguments[1].name}", 1)
        keywords = any(a.keyword_only for a in schema.arguments)
        with_number = OpSpec(
            Schema(f"{name}.{overload}({arguments}"),
            _calls(spec),
            True,
            samples=lambda make: [] if keywords else [(make(3, 4), 0.5)],
            facts=facts,
        )
        with_number.out_form = alias.out_form
        register(with_number)


def _calls(spec: OpSpec, *added: str) -> Kernel:
    """Tensor code that calls an op with the same arguments, and after them those that are `added` as keywords."""
    keywords = (*[a.python_name for a in spec.schema.arguments if a.keyword_only], *added)
    positional = len(spec.schema.arguments) + len(added) - len(keywords)

    def body(*args: Any) -> Any:
        return spec(*args[:positional], **dict(zip(keywords, args[positional:], strict=True)))

    return body
