"""In what two runs of a program differ."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .machine import COMPLEX, FLOATS, Machine, Outcome, Statement
from .table import EXACT

# What a tensor's description holds, in the order of Machine.describe.
PARTS = ("dtype", "shape", "stride", "requires_grad", "is_leaf", "shares", "base", "version", "values")
# The order in which they are compared: what is worse comes first.
ORDER = ("dtype", "shape", "values", "requires_grad", "is_leaf", "shares", "base", "version", "stride")
TOLERANCE = {"float64": 1e-8, "complex128": 1e-8, "float32": 1e-4, "complex64": 1e-4, "float16": 8e-3, "bfloat16": 5e-2}


# Words of torch's exceptions that tell of a failure inside, or of a derivative that it lacks, not of a program that is wrong.
TORCH_FAILS = (
    "INTERNAL ASSERT FAILED",
    "Could this error message be improved",
    "invalid python storage",
    "the derivative for 'inplace version",
    "does not support automatic differentiation for outputs with complex dtype",
    "Autograd not support dtype",  # of integers that it let require grad
    "unsupported operand type(s) for *: 'NoneType'",  # a hook gets None for one of several results
)
# Words of a refusal here: some of torch's ops write several elements into one place.
REPEATED = "more than one element of the written-to tensor refers to a single memory location"
OVERLAPPING = "some elements of the input tensor and the written-to tensor"

# Words of refusals that are kinds of their own: what torch forbids and this package has no need to.
KINDS = {
    "modified by an inplace operation": "accepts, saves less",
    "returns multiple views": "accepts, one of several views",
    "was created in no_grad mode": "accepts, view made in no_grad",
    OVERLAPPING: "accepts, overlapping memory",
    "not implemented for 'ComplexHalf'": "accepts, complex32",
}


# What is added to a kind where `out=` looks at memory that matters otherwise: it is an operand itself, it is a view that shares
# memory with one, so that kernels may read what they wrote, or a view without elements, which is given some.
INTO_OPERAND, INTO_PART, INTO_EMPTY = ", into an operand", ", into a part of an operand", ", into an empty view"
# The same where the operand has another shape than the result.
INTO_OTHER_SHAPE = ", into an operand of another shape"
# What is added where only those values differ that are infinite or nan in torch.
NOT_FINITE = ", not finite"


@dataclass(frozen=True)
class Difference:
    """The first thing in which a program's runs differ."""

    at: int  # the statement; the number of statements for gradients at the end
    op: str
    kind: str
    dtype: str
    text: str
    circumstances: frozenset[str] = frozenset()  # of the operands: names of CIRCUMSTANCES


def _equal_elements(tensor: Any) -> bool:
    numbers = [str(one) for one in tensor.detach().reshape(-1).tolist()]
    return len(set(numbers)) < len(numbers)


def _odd_strides(tensor: Any) -> bool:
    """Whether a tensor lies row by row although its strides do not say so: those of dims of one element are others."""
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if stride != step:
            return bool(tensor.is_contiguous())
        step *= size
    return False


def _shares_places(tensor: Any) -> bool:
    """Whether two elements have one place though no stride is 0."""
    if 0 in tensor.stride() or not tensor.numel():
        return False
    places = {0}
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        places = {place + i * stride for place in places for i in range(size)}
    return len(places) < tensor.numel()


# What a reason for a difference may ask of the tensors that a statement reads, each by a name.
CIRCUMSTANCES: dict[str, Callable[[list[Any]], bool]] = {
    "no elements": lambda tensors: any(not one.numel() for one in tensors),
    "several dtypes": lambda tensors: len({one.dtype for one in tensors}) > 1,
    "equal elements": lambda tensors: any(map(_equal_elements, tensors)),
    "dims of one element": lambda tensors: any(1 in one.shape for one in tensors),
    "odd strides of dims of one element": lambda tensors: any(map(_odd_strides, tensors)),
    "not finite": lambda tensors: any(not bool(one.detach().isfinite().all()) for one in tensors),
    "shared places": lambda tensors: any(map(_shares_places, tensors)),
    "shared memory": lambda tensors: (
        len({one.untyped_storage().data_ptr() for one in tensors if one.numel()}) < sum(bool(one.numel()) for one in tensors)
    ),
    "a single element": lambda tensors: any(one.numel() == 1 for one in tensors),
}


def circumstances_of(tensors: list[Any]) -> frozenset[str]:
    """The names of the circumstances in which tensors are."""
    return frozenset(name for name, holds in CIRCUMSTANCES.items() if holds(tensors))


def op_of(statement: Statement) -> str:
    """How findings name a statement."""
    do, name = statement["do"], statement.get("name", "")
    text = {"operator": f"operator {name}", "inplace_operator": f"operator {name}", "out": f"{name}(out=)"}.get(do, name or do)
    if name.startswith(("var", "std")) and statement["args"][1:] == [[]]:
        text += " (no dims)"
    return f"{text} (no_grad)" if statement.get("no_grad") else text


def close(wanted: list[Any], got: list[Any], dtype: str, exact: bool) -> bool:
    """Whether values agree: all of them where nothing was computed, else to the digits of a dtype."""
    if wanted == got:
        return True
    if len(wanted) != len(got):
        return False
    tolerance = 0.0 if exact else TOLERANCE.get(dtype, 0.0)
    scale = max((abs(one) for one in wanted if math.isfinite(one)), default=0.0) if tolerance else 0.0
    allowed = tolerance * max(1.0, scale) / 10
    if dtype in COMPLEX:
        # Which part of a complex number is nan or infinite is a matter of how a product is computed.
        finite = [all(map(math.isfinite, pair)) for pair in zip(wanted[::2], wanted[1::2], strict=True)]
        if not exact and finite == [all(map(math.isfinite, pair)) for pair in zip(got[::2], got[1::2], strict=True)]:
            wanted, got = ([value for at, value in enumerate(one) if finite[at // 2]] for one in (wanted, got))
    for one, two in zip(wanted, got, strict=True):
        if one == two or (one != one and two != two):
            continue
        if not tolerance or not abs(one - two) <= allowed + tolerance * abs(one):
            return False
    return True


def _finite_ones_agree(wanted: list[Any], got: list[Any], dtype: str) -> bool:
    """Whether values agree wherever those of torch are finite; for complex numbers both parts count."""
    if dtype not in TOLERANCE or len(wanted) != len(got):
        return False
    width = 2 if dtype in COMPLEX else 1
    finite = [all(map(math.isfinite, wanted[at : at + width])) for at in range(0, len(wanted), width)]
    kept = [[one for at, one in enumerate(values) if finite[at // width]] for values in (wanted, got)]
    return close(*kept, dtype, False)


def strides_differ(wanted: list[Any], got: list[Any]) -> bool:
    """Whether elements lie elsewhere: strides of dims of one element, and of tensors of at most one, mean nothing."""
    if 0 in wanted[1]:
        return False
    return any(size > 1 and one != two for size, one, two in zip(wanted[1], wanted[2], got[2], strict=True))


def described_difference(wanted: list[Any], got: list[Any], exact: bool, computed: str = "") -> tuple[str, str] | None:
    """(kind, text) for two descriptions of a tensor, which may hold what was computed in another dtype."""
    one, two = dict(zip(PARTS, wanted, strict=True)), dict(zip(PARTS, got, strict=True))
    for part in ORDER:
        if part == "values":
            differs = not close(one[part], two[part], coarser(one["dtype"], computed), exact)
        elif part == "stride":
            differs = strides_differ(wanted, got)
        else:
            differs = one[part] != two[part]
        if differs:
            if part == "is_leaf" and one[part] == "RuntimeError":
                part = "is_leaf refused"
                two[part], one[part] = two["is_leaf"], one["is_leaf"]
            if part == "values" and _finite_ones_agree(one[part], two[part], one["dtype"]):
                return part + NOT_FINITE, f"{two[part]!r:.200}, not {one[part]!r:.200}"
            return part, f"{two[part]!r:.200}, not {one[part]!r:.200}"
    return None


def result_difference(wanted: Any, got: Any, exact: bool, computed: str = "") -> tuple[str, str] | None:
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(wanted) != len(got):
            return "results", f"{got!r:.100}, not {len(wanted)} results"
        for one, two in zip(wanted, got, strict=True):
            found = result_difference(one, two, exact, computed)
            if found:
                return found
        return None
    if isinstance(got, list) or wanted.keys() != got.keys():
        return "results", f"{got!r:.150}, not {wanted!r:.150}"
    ((kind, one),) = wanted.items()
    two = got[kind]
    if kind == "tensor":
        return described_difference(one, two, exact, computed)
    if kind == "float":
        return None if close([one], [two], "float32", False) else ("values", f"{two}, not {one}")
    return None if one == two and type(one) is type(two) else ("results", f"{two!r}, not {one!r}")


def coarser(dtype: str, other: str) -> str:
    """Of two floating dtypes the one with fewer digits, as a dtype of the first one's kind: what was computed in float32 has no
    more of them in float64."""
    if dtype not in TOLERANCE or TOLERANCE.get(other, 0.0) <= TOLERANCE[dtype]:
        return dtype
    return other if (dtype in COMPLEX) == (other in COMPLEX) else "complex64" if dtype in COMPLEX else "float32"


def computed_dtype(statement: Statement, machine: Machine) -> str:
    """The coarsest dtype in which a statement with `out=` may compute before it stores."""
    dtypes = [Machine.dtype(tensor) for tensor in tensors_of(statement["args"], machine)]
    return max((dtype if dtype in TOLERANCE else "float32" for dtype in dtypes), key=TOLERANCE.__getitem__, default="")


def coarsest_dtype(machine: Machine) -> str:
    """The coarsest dtype of all tensors, through any of which a gradient may have gone."""
    dtypes = [Machine.dtype(tensor) for tensor in machine.tensors.values()]
    return max((dtype for dtype in dtypes if dtype in TOLERANCE), key=TOLERANCE.__getitem__, default="")


def tensors_of(argument: Any, machine: Machine) -> list[Any]:
    """The tensors among the arguments of a statement that exist."""
    if isinstance(argument, list):
        return [tensor for one in argument for tensor in tensors_of(one, machine)]
    known = isinstance(argument, dict) and argument.get("tensor") in machine.tensors
    return [machine.tensors[argument["tensor"]]] if known else []


def memory_written(statement: Statement, machine: Machine, wanted: Outcome) -> str:
    """What is added to the kinds of a statement with `out=`."""
    (out,) = tensors_of([statement["kwargs"]["out"]], machine) or (None,)
    operands = tensors_of(statement["args"], machine)
    if out is None:
        return ""
    if any(one is out for one in operands):
        label = statement["kwargs"]["out"]["tensor"]
        after = wanted.get("changed", {}).get(label, machine.known[label])
        return INTO_OTHER_SHAPE if "error" in wanted or after[1] != list(out.shape) else INTO_OPERAND
    storage = out.untyped_storage()
    if not storage.nbytes():
        return ""
    if not out.numel():
        return INTO_EMPTY
    return INTO_PART if any(one.untyped_storage().data_ptr() == storage.data_ptr() for one in operands) else ""


def outcome_difference(
    statement: Statement, wanted: Outcome, got: Outcome, messages: bool, computed: str = ""
) -> tuple[str, str] | None:
    if "absent" in wanted or "absent" in got:
        return None if wanted.keys() == got.keys() else ("results", "a tensor that is not there")
    theirs, ours = wanted.get("error"), got.get("error")
    if theirs and any(words in theirs[1] for words in TORCH_FAILS) and (not ours or theirs[0] != ours[0]):
        return "torch fails", f"torch: {theirs[1]}"
    forbidden = next((kind for words, kind in KINDS.items() if words in theirs[1]), "") if theirs else ""
    if theirs and not ours:
        return forbidden or "accepts", f"torch: {theirs[0]}: {theirs[1]}"
    if ours and not theirs:
        more = ", repeated memory" if REPEATED in ours[1] else ", overlapping memory" if OVERLAPPING in ours[1] else ""
        return f"raises{more}", f"{ours[0]}: {ours[1]}"
    if theirs and ours and theirs[0] != ours[0]:
        # What is not forbidden here may be refused for the next reason.
        return forbidden or "error class", f"{ours[0]}: {ours[1]!r:.150}, not {theirs[0]}: {theirs[1]!r:.150}"
    if theirs and ours and messages and theirs[1] != ours[1]:
        return "message", f"{ours[1]!r}, not {theirs[1]!r}"
    exact = statement.get("name", statement["do"]).rstrip("_") in EXACT or statement["do"] in ("input", "get", "set")
    through = computed if statement["do"] == "grad" else ""
    found = None if theirs else result_difference(wanted["results"], got["results"], exact, through)
    if found:
        return found
    before, after = wanted.get("changed", {}), got.get("changed", {})
    for label in sorted(before.keys() | after.keys()):
        if label not in before or label not in after:
            which, where = (after, "only here") if label in after else (before, "only in torch")
            kind = f"refused but changes {where}" if theirs else "changes"
            return kind, f"t{label.replace('.', '_')} becomes {which[label]!r:.150} {where}"
        found = described_difference(before[label], after[label], exact, computed)
        if found:
            return f"{'refused but ' if theirs else ''}changes {found[0]}", f"t{label.replace('.', '_')}: {found[1]}"
    return None


def gradients_difference(wanted: dict[str, Any], got: dict[str, Any], computed: str) -> tuple[str, str] | None:
    for label in sorted(wanted.keys() | got.keys()):
        if label not in wanted or label not in got:
            return "gradient", f"t{label.replace('.', '_')}.grad is there {'here' if label in got else 'in torch'} only"
        one, two = wanted[label], got[label]
        for at, part in enumerate(("dtype", "shape", "requires_grad")):
            if one[at] != two[at]:
                return f"gradient {part}", f"t{label.replace('.', '_')}.grad: {two[at]}, not {one[at]}"
        if not close(one[3], two[3], coarser(one[0], computed), False):
            return "gradient values", f"t{label.replace('.', '_')}.grad: {two[3]!r:.200}, not {one[3]!r:.200}"
    return None


def overwrite(machine: Machine, label: str, described: list[Any]) -> None:
    """Give a tensor the digits that torch's has, so that rounding does not add up to a difference in later statements."""
    dtype = described[0]
    known = machine.known.get(label)
    if known is None or str(known[8]) == str(described[8]) or (dtype not in FLOATS and dtype not in COMPLEX):
        return
    values = described[8]
    if dtype in COMPLEX:
        values = [complex(*pair) for pair in zip(values[::2], values[1::2], strict=True)]
    tensor = machine.tensors[label]
    torch = machine.torch
    try:
        with torch.no_grad():
            tensor.data.copy_(torch.tensor(values, dtype=tensor.dtype).reshape(tensor.shape))
    except RuntimeError:
        return  # elements that share a place stay what they are
    machine.known[label] = machine.describe(tensor, label)


def first_difference(
    torch: Any,
    program: list[Statement],
    outcomes: list[Outcome],
    gradients: dict[str, Any],
    messages: bool = False,
) -> Difference | None:
    """Run a program here, beside what torch did, up to the first difference."""
    machine = Machine(torch)
    for at, (statement, wanted) in enumerate(zip(program, outcomes, strict=True)):
        computed = into = ""
        if statement["do"] == "out":
            computed, into = computed_dtype(statement, machine), memory_written(statement, machine, wanted)
        elif statement["do"] == "grad":
            computed = coarsest_dtype(machine)
        got = machine.run(statement)
        found = outcome_difference(statement, wanted, got, messages, computed)
        if found:
            found = found[0] + into, found[1]
        if found and found[0] == "requires_grad" and statement.get("no_grad"):
            found = "requires_grad, in no_grad", found[1]
        if found:
            operands = tensors_of([*statement.get("args", ()), *statement.get("kwargs", {}).values()], machine)
            dtype = dtype_of(statement, machine, wanted)
            return Difference(at, op_of(statement), found[0], dtype, found[1], circumstances_of(operands))
        for label, described in labeled(str(statement["id"]), wanted.get("results")):
            overwrite(machine, label, described)
        for label, described in wanted.get("changed", {}).items():
            overwrite(machine, label, described)
    if any("error" in outcome and one["do"] in ("backward", "grad") for one, outcome in zip(program, outcomes, strict=True)):
        return None  # which gradients were there when a backward pass failed is a matter of order
    found = gradients_difference(gradients, machine.finish(), coarsest_dtype(machine))
    if not found:
        return None
    return Difference(len(program), "gradient", found[0], "", found[1], circumstances_of(list(machine.tensors.values())))


def labeled(label: str, result: Any) -> list[tuple[str, list[Any]]]:
    """The tensors of a result with their labels."""
    if isinstance(result, list):
        return [one for at, item in enumerate(result) for one in labeled(f"{label}.{at}", item)]
    return [(label, result["tensor"])] if isinstance(result, dict) and "tensor" in result else []


def dtype_of(statement: Statement, machine: Machine, wanted: Outcome) -> str:
    """The dtype that a finding names: that of the first tensor among the arguments."""
    for argument in statement.get("args", ()):
        if isinstance(argument, dict) and argument.get("tensor") in machine.tensors:
            return Machine.dtype(machine.tensors[argument["tensor"]])
    return statement.get("dtype", "")
