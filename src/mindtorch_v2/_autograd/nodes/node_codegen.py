"""Source code of the functions of an op's nodes, written from plans, so that at run time nothing is looked up in a plan.

`record(args, result, state)` leaves the node of a call, `make(args, state)` makes that of an in-place call, and
`run(node, g, retain)` computes gradients in a backward pass. `node_compiler` compiles them. In the source `a<i>` are the
arguments of the call, `o<i>` its outputs, `g` the gradient that arrived, and `v<i>` the saved values.
"""

from __future__ import annotations

from ..._core.keys import AUTOGRAD
from ..._dispatch.facts import Promotion
from ..._dispatch.schema import Argument
from .derivative import ARG, DTYPE, NEEDS, RESULT, SHAPE, STRIDES, Derivative, Plan


class _Writer:
    """Collects the lines of one function of a plan, and writes the expressions for edges and saved values."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.derivative = plan.derivative
        self.arguments = plan.derivative.op.schema.arguments
        self.lines: list[str] = []

    def add(self, *lines: str) -> None:
        self.lines += lines

    def needs(self, index: int) -> bool:
        """Whether the plan's mask says that the argument at `index` of the schema is a tensor that requires grad."""
        arguments = self.derivative.arguments
        return (
            index in arguments
            and bool(self.plan.mask >> arguments.index(index) & 1)
            and not self.arguments[index].is_tensor_list
        )

    def surely_tensor(self, index: int) -> bool:
        """Whether the argument at `index` of the schema cannot be None or a number."""
        return self.needs(index) or _surely_tensor(self.derivative, self.arguments[index], index)

    def edges(self) -> str:
        """The expression of a node's `edges`, from the arguments `a<i>`."""
        parts = []
        for position, index in enumerate(self.derivative.arguments):
            if self.derivative.lists[position]:
                parts.append(
                    f"*edges_of(a{index})"
                    if self.arguments[index].type_text != "Tensor[]"
                    else f"*[(t._node, t._output_nr) if t._keys & {AUTOGRAD} else None for t in a{index}]"
                )
            elif self.plan.mask >> position & 1:
                parts.append(f"(a{index}._node, a{index}._output_nr)")
            else:
                parts.append("None")
        return f"({', '.join(parts)},)"

    def saved(self, in_place: bool) -> str:
        """The expression of a node's `saved`; the results of an in-place op are filled in later."""
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
        """The expressions of an argument's slot: a tensor with its version, a list of such pairs, or the value alone."""
        argument = self.arguments[index]
        if argument.is_tensor_list:
            return f"save_list({name})"
        if argument.is_int_list:
            return f"tuple({name}) if {name}.__class__ is list else {name}"
        if not argument.is_tensor:
            return name
        version = f"0 if {name}._storage is None else {name}._storage.version"
        if not self.surely_tensor(index):
            version = f"None if not {_tensor_test(self.derivative, argument, name)} else {version}"
        return f"{name}, ({version})"

    def unpacking(self) -> list[str]:
        """Lines that unpack `saved` into one variable `v<i>` for each slot, and check the versions of tensors."""
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
                    lines.append(
                        f"if (0 if {v}._storage is None else {v}._storage.version) != {n}: {v} = unpack_saved(node, {v}, {n})"
                    )
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


def _tensor_test(derivative: Derivative, argument: Argument, name: str) -> str:
    """The test whether an argument that may be None, or a number where numbers are promoted, is a tensor."""
    return f"isinstance({name}, Tensor)" if argument.name in derivative.op.promoted else f"({name} is not None)"


def unpacked(derivative: Derivative) -> str:
    """The line that unpacks `args` into one variable `a<i>` for each argument."""
    return f"{', '.join(f'a{i}' for i in range(len(derivative.op.schema.arguments)))}, = args"


def single_output(derivative: Derivative) -> bool:
    """Whether the op has one output, a tensor."""
    schema = derivative.op.schema
    return len(schema.returns) == 1 and not schema.returns_list


def record_source(derivative: Derivative, plans: list[Plan], others: bool, known: bool) -> str:
    """record(args, result, state): leaves the node of a call that returned `result`, if an input requires grad.

    What differs between the sets of inputs that require grad is written out for each of `plans`. `others`: there are further
    sets, which the function of that name records. `known`: the caller knows that the set is that of the only plan.
    """
    lines = [unpacked(derivative), *([] if known else _refusals(derivative))]
    if others:
        lines += [f"mask = {mask_source(derivative)}", f"if mask != {plans[0].mask}: return others(mask, args, result, state)"]
    elif len(plans) > 1:
        lines += [f"mask = {mask_source(derivative)}", "if not mask: return"]
    elif not known and not _only_input(derivative):
        lines.append(f"if not {mask_source(derivative)}: return")
    single = single_output(derivative)
    if single:
        lines += ["array = result._array", "dtype = array.dtype"]
        if derivative.op.promote in (None, Promotion.COMPARE, Promotion.NUMBER):
            refused = "raise no_history(result)" if derivative.op.refuses_integer_results else "return"
            lines.append(f"if dtype is not f32 and dtype.kind not in 'fcVW': {refused}")
    lines += ["node = NodeType()", "node.hooks = None", "n = state.sequence", "node.sequence = n", "state.sequence = n + 1"]
    if len(plans) == 1:
        lines += _body(plans[0], single)
    else:
        for plan in plans:
            test = "if" if plan is plans[0] else "elif"
            lines.append("else:" if plan is plans[-1] else f"{test} mask == {plan.mask}:")
            lines += ["    " + line for line in _body(plan, single)]
    if single:
        lines += [
            "node.inputs = (array.shape, dtype)",
            f"result._keys |= {AUTOGRAD}",
            "result._node = node",
            "result._output_nr = 0",
        ]
    elif derivative.op.schema.returns_list:
        lines.append("link(node, result)")
    else:
        lines += _linked(derivative.op.schema.returns, derivative.constants)
    return function("record(args, result, state)", lines)


def _refusals(derivative: Derivative) -> list[str]:
    """Lines that raise if an argument requires grad by which the op is declared not differentiable."""
    schema = derivative.op.schema
    lines = []
    for index in derivative.refused:
        argument, name = schema.arguments[index], f"a{index}"
        test = "" if _surely_tensor(derivative, argument, index) else f"{_tensor_test(derivative, argument, name)} and "
        lines.append(f"if {test}{name}._keys & {AUTOGRAD}: raise not_differentiable({schema.name!r}, {argument.name!r})")
    return lines


def _only_input(derivative: Derivative) -> bool:
    """Whether only one argument of an op, a tensor or list of tensors, can require grad: there is no other and no number,
    in whose place a 0-d tensor is accepted."""
    kinds = [a.type_text for a in derivative.op.schema.arguments]
    return sum(kind.startswith("Tensor") for kind in kinds) == 1 and not any(
        kind.startswith(("Scalar", "float")) and not kind.startswith("ScalarType") for kind in kinds
    )


def _linked(returns: tuple[str, ...], constants: tuple[int, ...]) -> list[str]:
    """Lines that set the history of several outputs, except for constants and for those that are not floating point."""
    count = len(returns)
    lines = [f"{', '.join(f'o{i}' for i in range(count))} = result"]
    for i, returned in enumerate(returns):
        if not returned.startswith("Tensor"):  # a custom op's number
            lines.append(f"i{i} = None")
            continue
        lines += [
            f"if o{i} is None: i{i} = None",
            "else:",
            f"    array = o{i}._array",
            "    dtype = array.dtype",
            f"    i{i} = (array.shape, dtype)",
        ]
        if i not in constants:
            lines += [
                "    if dtype is f32 or dtype.kind in 'fcVW':",
                f"        o{i}._keys |= {AUTOGRAD}; o{i}._node = node; o{i}._output_nr = {i}",
            ]
    return [*lines, f"node.inputs = [{', '.join(f'i{i}' for i in range(count))}]"]


def _body(plan: Plan, single: bool) -> list[str]:
    """Lines that set what differs by plan: the node's plan, edges and saved values."""
    writer = _Writer(plan)
    lines = [f"node.plan = plan_{plan.mask}", f"node.edges = {writer.edges()}"]
    for index in sorted({index for kind, index in plan.saved if kind == RESULT}):
        r = "result" if single else f"result[{index}]"
        lines += [
            f"r{index} = {r}",
            f"s{index} = r{index}._storage",
            f"if s{index} is None: s{index} = fresh_storage(r{index})",
        ]
    saved = writer.saved(False)
    return [*lines, f"node.saved = {saved}"] if saved else lines


def make_source(plan: Plan) -> str:
    """make(args, state): the node of an in-place call, made before the call overwrites its target; results are saved later."""
    writer = _Writer(plan)
    lines = [
        unpacked(plan.derivative),
        *_refusals(plan.derivative),
        "node = NodeType()",
        f"node.plan = plan_{plan.mask}",
        "node.hooks = None",
        f"node.edges = {writer.edges()}",
        "node.sequence = state.sequence",
        "state.sequence += 1",
    ]
    if (ARG, 0) in plan.saved:
        lines.append("o = original(a0)")
    saved = writer.saved(True)
    if saved:
        lines.append(f"node.saved = {saved}")
    return function("make(args, state)", [*lines, "return node"])


def function(signature: str, lines: list[str]) -> str:
    """The source of a function with that signature and body."""
    return f"def {signature}:\n" + "\n".join("    " + line for line in lines) + "\n"


def run_source(plan: Plan, wanted: int) -> str:
    """run(node, gradients, retain_graph): returns the gradients of the inputs in `wanted`, None for the others."""
    writer = _Writer(plan)
    derivative = plan.derivative
    unpacking = writer.unpacking()
    if unpacking:
        writer.add("saved = node.saved")
    if plan.keeps_tensors:
        writer.add("if saved is None: raise freed()")
    writer.add(*_gradient_lines(derivative), *unpacking)
    parts = _call_joint(writer) if derivative.joint is not None else _call_formulas(writer, wanted)
    # What a joint formula returned is a list already, which holds one gradient per edge unless an argument is a list.
    if derivative.joint is None or any(derivative.lists):
        for position, is_list in enumerate(derivative.lists):
            if is_list:
                parts[position] = f"*spread({parts[position]}, len(node.edges) - {len(derivative.lists) - 1})"
        writer.add(f"results = [{', '.join(parts)}]")
    if plan.keeps_tensors:
        writer.add("if not retain: node.saved = None")
    writer.add("return results")
    return function("run(node, g, retain)", writer.lines)


def _gradient_lines(derivative: Derivative) -> list[str]:
    """Lines that make `g` what the formulas take, and return early if no gradient arrived."""
    single = single_output(derivative)
    no_gradients = "[None] * len(node.edges)"
    if derivative.takes_all:
        return [*(["g = [g]"] if single else []), f"if not any(each is not None for each in g): return {no_gradients}"]
    return [*([] if single else ["g = g[0]"]), f"if g is None: return {no_gradients}"]


def _call(plan: Plan, name: str, slots: tuple[int, ...]) -> str:
    """The call of a formula with the gradient and the saved values that it takes."""
    values = ["NEEDS" if plan.saved[slot][0] == NEEDS else f"v{slot}" for slot in slots]
    return f"{name}({', '.join(['g', *values])})"


def _call_joint(writer: _Writer) -> list[str]:
    """Add the call of a formula for all inputs; returns the expressions of their gradients."""
    writer.add(
        f"results = {_call(writer.plan, 'joint', writer.plan.formulas[0][2])}",
        "results = list(results) if results.__class__ is tuple or results.__class__ is list else [results]",
    )
    return [f"results[{position}]" for position in range(len(writer.derivative.arguments))]


def _call_formulas(writer: _Writer, wanted: int) -> list[str]:
    """Add the calls of the formulas of the inputs in `wanted`; returns the expressions of the gradients of all inputs."""
    derivative = writer.derivative
    parts = ["None"] * len(derivative.arguments)
    # torch runs the formulas in the order of their inputs' names, which a profile shows.
    names = [writer.arguments[index].name for index in derivative.arguments]
    for position, _, slots in sorted(writer.plan.formulas, key=lambda formula: names[formula[0]]):
        if wanted >> position & 1:
            parts[position] = f"g{position}"
            writer.add(f"g{position} = {_call(writer.plan, f'f{position}', slots)}")
    return parts


def mask_source(derivative: Derivative) -> str:
    """The expression of the mask, one bit for each input among `a0, a1, ...` that requires grad."""
    arguments = derivative.op.schema.arguments
    parts = []
    for position, index in enumerate(derivative.arguments):
        name = f"a{index}"
        if derivative.lists[position]:
            bit = f"requires_any({name})" if arguments[index].type_text != "Tensor[]" else f"listed_keys({name}) & {AUTOGRAD}"
        elif _surely_tensor(derivative, arguments[index], index):
            bit = f"{name}._keys & {AUTOGRAD}"
        else:
            bit = f"({name}._keys & {AUTOGRAD} if {_tensor_test(derivative, arguments[index], name)} else 0)"
        parts.append(f"({bit}) << {position}" if position else f"({bit})")
    return " | ".join(parts)
