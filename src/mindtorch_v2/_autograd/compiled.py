"""Compiling plans: for each op and each set of inputs that need a gradient, one function that leaves the node
of a call and one that runs it, written out from the plan so that neither looks anything up.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from typing import Any

from .._core import dtype as dt
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from .._dispatch.schema import Argument
from .derivative import ARG, DTYPE, NEEDS, RESULT, SHAPE, STRIDES, Derivative, Plan, needs_of
from .node import Node
from .saved import freed, fresh_storage, save_list, unpack_list, unpack_one, unpack_result, unpack_saved

# Up to this many inputs every set of them that may require grad gets its own lines in one `record`; beyond it, each
# set gets a function when it first occurs.
_WRITTEN_OUT = 2

_F32 = dt.float32.np


# ---------------------------------------------------------------- what compiled functions call


def _requires_any(values: Sequence[Any] | None) -> int:
    """1 if a tensor of a list requires grad, else 0."""
    for value in values or ():
        if value is not None and value._keys & 1:
            return 1
    return 0


def _edges_of(values: Sequence[Any] | None) -> list[Any]:
    return [(v._node, v._output_nr) if v is not None and v._keys & 1 else None for v in values or ()]


def _shape_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value._array.shape
    return None if value is None or not isinstance(value, list | tuple) else [_shape_of(v) for v in value]


def _spread(values: Any, count: int) -> Sequence[Any]:
    """The gradients of a list of tensors."""
    return [None] * count if values is None else values


def _link(node: Node, outputs: Sequence[Any]) -> None:
    """Make a node the maker of several outputs; those that are not floating point take no part."""
    forms: list[Any] = []
    number = 0
    for output in outputs:
        if output is None:
            forms.append(None)
        else:
            array = output._array
            dtype = array.dtype
            forms.append((array.shape, dtype))
            if dtype is _F32 or dtype.kind in "fcV":
                output._keys |= 1
                output._node = node
                output._output_nr = number
        number += 1
    node.inputs = forms


def _original(target: Tensor) -> Tensor:
    """A copy of what is about to be overwritten, with its history."""
    copied: Tensor = aten.clone(target)
    return copied


_NAMES: dict[str, Any] = {
    "Tensor": Tensor, "isinstance": isinstance, "fresh_storage": fresh_storage,
    "requires_any": _requires_any, "edges_of": _edges_of, "shape_of": _shape_of, "spread": _spread, "link": _link,
    "original": _original, "freed": freed, "save_list": save_list, "unpack_list": unpack_list,
    "unpack_one": unpack_one, "unpack_result": unpack_result, "unpack_saved": unpack_saved,
    "dtype_of": dt.from_numpy, "f32": _F32, "list": list, "tuple": tuple, "len": len, "any": any,
}


# ---------------------------------------------------------------- text


class _Writer:
    """Lines of one function, and the places its values take."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.derivative = plan.derivative
        self.arguments = plan.derivative.op.schema.arguments
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += lines

    def needs(self, index: int) -> bool:
        """Whether the argument at `index` of the schema is known to be a tensor that requires grad."""
        arguments = self.derivative.arguments
        return index in arguments and bool(self.plan.mask >> arguments.index(index) & 1) \
            and not self.arguments[index].is_tensor_list

    def surely_tensor(self, index: int) -> bool:
        return self.needs(index) or _surely_tensor(self.derivative, self.arguments[index], index)

    def edges(self) -> str:
        parts = []
        for position, index in enumerate(self.derivative.arguments):
            if self.derivative.lists[position]:
                parts.append(f"*edges_of(a{index})")
            elif self.plan.mask >> position & 1:
                parts.append(f"(a{index}._node, a{index}._output_nr)")
            else:
                parts.append("None")
        return f"({', '.join(parts)},)"

    def saved(self, in_place: bool) -> str:
        """The expression of the tuple to save; the results of an in-place op are filled in later."""
        parts = []
        for kind, index in self.plan.saved:
            if kind == RESULT:
                if in_place:
                    parts.append("None, None, 0, 0")
                else:
                    parts.append(f"r{index}._array, s{index}, s{index}.version, r{index}._keys & -2")
            elif kind == ARG:
                parts.append(self._saved_argument(index, "o" if in_place and index == 0 else f"a{index}"))
            elif kind == SHAPE:
                if self.arguments[index].type_text == "Tensor[]":
                    parts.append(f"[t._array.shape for t in a{index}]")
                else:
                    parts.append(f"a{index}._array.shape" if self.surely_tensor(index) else f"shape_of(a{index})")
            elif kind == STRIDES:
                parts.append(f"a{index}._array.strides")
            elif kind == DTYPE:
                parts.append(f"a{index}._array.dtype")
        return f"({', '.join(parts)},)" if parts else ""

    def _saved_argument(self, index: int, name: str) -> str:
        argument = self.arguments[index]
        if argument.is_tensor_list:
            return f"save_list({name})"
        if argument.is_int_list:
            return f"tuple({name}) if {name}.__class__ is list else {name}"
        if not argument.is_tensor:
            return name
        version = f"0 if {name}._storage is None else {name}._storage.version"
        if not self.surely_tensor(index):
            version = f"None if not isinstance({name}, Tensor) else {version}"
        return f"{name}, ({version})"

    def unpacking(self) -> list[str]:
        """Lines that turn the saved tuple into one variable `v<i>` for each slot."""
        names, lines = [], []
        for slot, (kind, index) in enumerate(self.plan.saved):
            v, n = f"v{slot}", f"n{slot}"
            argument = self.arguments[index] if kind == ARG else None
            if kind == RESULT:
                names += [v, f"s{slot}", n, f"k{slot}"]
                lines.append(f"{v} = unpack_result(node, {index}, {v}, s{slot}, {n}, k{slot})")
            elif argument is not None and argument.is_tensor:
                names += [v, n]
                if self.surely_tensor(index):
                    lines.append(f"if (0 if {v}._storage is None else {v}._storage.version) != {n}: "
                                 f"{v} = unpack_saved(node, {v}, {n})")
                else:
                    lines.append(f"if {n} is not None: {v} = unpack_one(node, {v}, {n})")
            elif argument is not None and argument.is_tensor_list:
                names.append(v)
                lines.append(f"{v} = unpack_list(node, {v})")
            elif kind == DTYPE:
                names.append(v)
                lines.append(f"{v} = dtype_of({v})")
            elif kind != NEEDS:
                names.append(v)
        return [f"{', '.join(names)}, = saved", *lines] if names else []


def _surely_tensor(derivative: Derivative, argument: Argument, index: int) -> bool:
    """Whether an argument cannot be None or a number."""
    return argument.is_tensor and not argument.optional and (index == 0 or argument.name not in derivative.op.promoted)


def keeps_tensors(plan: Plan) -> bool:
    """Whether there is anything to free once a node ran."""
    arguments = plan.derivative.op.schema.arguments
    return any(kind == RESULT or kind == ARG and (arguments[i].is_tensor or arguments[i].is_tensor_list)
               for kind, i in plan.saved)


def _unpacked(derivative: Derivative) -> str:
    """The line that gives every argument its name `a<i>`."""
    return f"{', '.join(f'a{i}' for i in range(len(derivative.op.schema.arguments)))}, = args"


def _single(derivative: Derivative) -> bool:
    """Whether the op has one output, a tensor."""
    schema = derivative.op.schema
    return len(schema.returns) == 1 and not schema.returns_list


def _record_source(derivative: Derivative, masks: list[int], known: bool) -> str:
    """record(args, result, state): leaves the node of a call that gave `result`, if an input requires grad.

    What differs between the sets of inputs that require grad is written out for each of `masks`. `known` says that the
    caller has found out which set it is.
    """
    lines = [_unpacked(derivative)]
    if len(masks) > 1:
        lines += [f"mask = {_mask_source(derivative)}", "if not mask: return"]
    elif not known:
        lines.append(f"if not {_mask_source(derivative)}: return")
    single = _single(derivative)
    if single:
        lines += ["array = result._array", "dtype = array.dtype"]
        if derivative.op.promote not in ("same", "float"):
            lines.append("if dtype is not f32 and dtype.kind not in 'fcV': return")
    lines += ["node = NodeType()", "node.hooks = None", "n = state.sequence", "node.sequence = n", "state.sequence = n "
                                                                                                   "+ 1"]
    if len(masks) == 1:
        lines += _body(plan_for(derivative, masks[0]), single)
    else:
        for mask in masks:
            test = "if" if mask == masks[0] else "elif"
            lines.append("else:" if mask == masks[-1] else f"{test} mask == {mask}:")
            lines += ["    " + line for line in _body(plan_for(derivative, mask), single)]
    if single:
        lines += ["node.inputs = (array.shape, dtype)", "result._keys |= 1", "result._node = node", "result._output_nr "
                                                                                                    "= 0"]
    else:
        lines.append("link(node, result)")
    return _function("record(args, result, state)", lines)


def _body(plan: Plan, single: bool) -> list[str]:
    """What a node takes from a call: edges, and values to save."""
    writer = _Writer(plan)
    lines = [f"node.plan = plan_{plan.mask}", f"node.edges = {writer.edges()}"]
    for index in sorted({index for kind, index in plan.saved if kind == RESULT}):
        r = "result" if single else f"result[{index}]"
        lines += [f"r{index} = {r}", f"s{index} = r{index}._storage or fresh_storage(r{index})"]
    saved = writer.saved(False)
    return [*lines, f"node.saved = {saved}"] if saved else lines


def _make_source(plan: Plan) -> str:
    """make(args, state): the node of an in-place call that is about to happen; its results come later."""
    writer = _Writer(plan)
    lines = [_unpacked(plan.derivative), "node = NodeType()", f"node.plan = plan_{plan.mask}", "node.hooks = None",
             f"node.edges = {writer.edges()}", "node.sequence = state.sequence", "state.sequence += 1"]
    if (ARG, 0) in plan.saved:
        lines.append("o = original(a0)")
    saved = writer.saved(True)
    if saved:
        lines.append(f"node.saved = {saved}")
    return _function("make(args, state)", [*lines, "return node"])


def _function(signature: str, lines: list[str]) -> str:
    return f"def {signature}:\n" + "\n".join("    " + line for line in lines) + "\n"


def _run_source(plan: Plan, wanted: int) -> str:
    """run(node, gradients, retain_graph): the gradients of the inputs in `wanted`, None for the others."""
    writer = _Writer(plan)
    derivative = plan.derivative
    single = _single(derivative)
    frees = keeps_tensors(plan)
    unpacking = writer.unpacking()
    if unpacking:
        writer.add("saved = node.saved")
    if frees:
        writer.add("if saved is None: raise freed()")
    nothing = "[None] * len(node.edges)"
    if derivative.takes_all:
        if single:
            writer.add("g = [g]")
        writer.add(f"if not any(each is not None for each in g): return {nothing}")
    else:
        if not single:
            writer.add("g = g[0]")
        writer.add(f"if g is None: return {nothing}")
    writer.add(*unpacking)

    def call(name: str, slots: tuple[int, ...]) -> str:
        values = ["NEEDS" if plan.saved[slot][0] == NEEDS else f"v{slot}" for slot in slots]
        return f"{name}({', '.join(['g', *values])})"

    if derivative.joint is not None:
        writer.add(f"made = {call('joint', plan.formulas[0][2])}",
                   "made = list(made) if made.__class__ is tuple or made.__class__ is list else [made]")
        parts = [f"made[{position}]" for position in range(len(derivative.arguments))]
        plain = not any(derivative.lists)
    else:
        parts = ["None"] * len(derivative.arguments)
        for position, _, slots in plan.formulas:
            if wanted >> position & 1:
                parts[position] = call(f"f{position}", slots)
        plain = False
    if not plain:
        before = 0
        for position, is_list in enumerate(derivative.lists):
            if is_list:
                after = len(derivative.lists) - position - 1
                parts[position] = f"*spread({parts[position]}, len(node.edges) - {before + after})"
            before += 1
        writer.add(f"made = [{', '.join(parts)}]")
    if frees:
        writer.add("if not retain: node.saved = None")
    writer.add("return made")
    return _function("run(node, g, retain)", writer.lines)


def _compile(derivative: Derivative, what: str, tag: str, source: str, names: dict[str, Any]) -> Callable[..., Any]:
    op = derivative.op
    filename = f"<{what} {op.name}{'.' + op.schema.overload if op.schema.overload else ''}{tag}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    space = {**_NAMES, "NodeType": derivative.node_type, **names}
    exec(compile(source, filename, "exec"), space)
    made: Callable[..., Any] = space[what]
    return made


def _compile_run(plan: Plan, wanted: int) -> Callable[..., Any]:
    names: dict[str, Any] = {f"f{position}": function for position, function, _ in plan.formulas}
    names.update(joint=plan.derivative.joint, NEEDS=needs_of(wanted, len(plan.derivative.arguments)))
    return _compile(plan.derivative, "run", f" {wanted:b}", _run_source(plan, wanted), names)


def plan_for(derivative: Derivative, mask: int) -> Plan:
    """The plan of a derivative for the inputs in `mask`; what it runs is compiled when it is first run."""
    plan = derivative.plans.get(mask)
    if plan is None:
        plan = derivative.plans[mask] = derivative.lay_out(mask)
        made = plan

        def first_run(node: Node, grads: Any, retain: bool) -> Any:
            made.run = _compile_run(made, mask)
            return made.run(node, grads, retain)

        plan.run = first_run
    return plan


def partial_run(plan: Plan, wanted: int) -> Callable[..., Any]:
    """A plan's run for a pass that wants only some of its gradients."""
    wanted &= plan.mask
    if wanted == plan.mask:
        return plan.run
    run = plan.parts.get(wanted)
    if run is None:
        run = plan.parts[wanted] = _compile_run(plan, wanted)
    return run


def maker(derivative: Derivative, mask: int) -> Callable[..., Any]:
    """make(args, state) of an in-place op, for the inputs in `mask`."""
    plan = plan_for(derivative, mask)
    if plan.make is None:
        plan.make = _compile(derivative, "make", f" {mask:b}", _make_source(plan), {f"plan_{mask}": plan})
    return plan.make


def compile_record(derivative: Derivative) -> Callable[..., None]:
    """record(args, result, state) of an op."""
    count = len(derivative.arguments)
    if count <= _WRITTEN_OUT and not any(derivative.lists):
        return _compile_record(derivative, [1, *range((1 << count) - 1, 1, -1)], False)
    recorders: dict[int, Callable[..., None]] = {}

    def first(mask: int) -> Callable[..., None]:
        recorders[mask] = _compile_record(derivative, [mask], True)
        return recorders[mask]

    lines = [_unpacked(derivative), f"mask = {_mask_source(derivative)}",
             "if mask: (recorders.get(mask) or first(mask))(args, result, state)"]
    return _compile(derivative, "record", "", _function("record(args, result, state)", lines),
                    {"recorders": recorders, "first": first})


def _compile_record(derivative: Derivative, masks: list[int], known: bool) -> Callable[..., None]:
    source = _record_source(derivative, masks, known)
    return _compile(derivative, "record", f" {masks[0]:b}" if known else "", source,
                    {f"plan_{mask}": derivative.plans[mask] for mask in masks})


def _mask_source(derivative: Derivative) -> str:
    """The expression of which inputs among `a0, a1, ...` require grad, one bit each."""
    arguments = derivative.op.schema.arguments
    parts = []
    for position, index in enumerate(derivative.arguments):
        name = f"a{index}"
        if derivative.lists[position]:
            one = f"requires_any({name})"
        elif _surely_tensor(derivative, arguments[index], index):
            one = f"{name}._keys & 1"
        else:
            one = f"({name}._keys & 1 if isinstance({name}, Tensor) else 0)"
        parts.append(f"({one}) << {position}" if position else f"({one})")
    return " | ".join(parts)


def mask_of(derivative: Derivative, args: tuple[Any, ...]) -> int:
    """Which of a derivative's inputs require grad, one bit each."""
    mask = 0
    for position, index in enumerate(derivative.arguments):
        value = args[index]
        if derivative.lists[position]:
            mask |= _requires_any(value) << position
        elif isinstance(value, Tensor):
            mask |= (value._keys & 1) << position
    return mask
