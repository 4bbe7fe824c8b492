"""The dtype of every binary op for every pair of operands, as real PyTorch gave it: promotion_table.json.

An operand is a number of each kind, or a tensor of each dtype with no dims or with one. A cell is one letter: a dtype, or "!"
where the call is refused. Run this file with a Python that has PyTorch to record the table again.
"""

from __future__ import annotations

import json
import string
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_name("promotion_table.json")
DTYPES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex32",
    "complex64",
    "complex128",
]
LETTERS = dict(zip(DTYPES, string.ascii_letters, strict=False))
NUMBERS = [True, 2, 1.5, 1 + 1j]
REFUSED = "!"

Binary = Callable[[Any, Any], Any]
OPERATORS = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": lambda a, b: a**b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
}
FUNCTIONS = [
    "add",
    "sub",
    "rsub",
    "mul",
    "div",
    "true_divide",
    "floor_divide",
    "remainder",
    "fmod",
    "pow",
    "float_power",
    "maximum",
    "minimum",
    "fmax",
    "fmin",
    "atan2",
    "hypot",
    "copysign",
    "nextafter",
    "logaddexp",
    "logaddexp2",
    "xlogy",
    "gcd",
    "lcm",
    "heaviside",
    "ldexp",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bitwise_left_shift",
    "bitwise_right_shift",
    "logical_and",
    "logical_or",
    "logical_xor",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "isclose",
    "special.zeta",
    "special.xlog1py",
    "special.entr",
    "result_type",
    "can_cast",
    "promote_types",
    "outer",
    "dot",
    "clamp_min",
    "clamp_max",
]


def ops(torch: Any) -> dict[str, Binary]:
    """Every op of the table by the name of its row."""

    def found(name: str) -> Binary:
        at = torch
        for part in name.split("."):
            at = getattr(at, part)
        return at

    named = {
        name: found(name) for name in FUNCTIONS if name not in ("special.entr", "can_cast", "promote_types", "outer", "dot")
    }
    mask = torch.tensor([True, False])
    return {
        **OPERATORS,
        **named,
        "div floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
        "div trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
        "add alpha": lambda a, b: torch.add(a, b, alpha=2),
        "where": lambda a, b: torch.where(mask, a, b),
        "clamp": lambda a, b: torch.clamp(a, b, 100),
        "lerp": lambda a, b: torch.lerp(a, b, 0.5),
        "addcmul": lambda a, b: torch.addcmul(a, b, b),
        "addcdiv": lambda a, b: torch.addcdiv(a, b, b),
        "masked_fill": lambda a, b: torch.masked_fill(a, mask, b),
        "cat": lambda a, b: torch.cat([a, b]),
        "stack": lambda a, b: torch.stack([a, b]),
        "addr": lambda a, b: torch.addr(torch.ones(2, 2).to(a.dtype), a, b),
        "outer": lambda a, b: torch.outer(a, b),
        "+=": lambda a, b: a.add_(b),
        "-=": lambda a, b: a.sub_(b),
        "*=": lambda a, b: a.mul_(b),
        "/=": lambda a, b: a.div_(b),
        "//=": lambda a, b: a.floor_divide_(b),
        "**=": lambda a, b: a.pow_(b),
        "%=": lambda a, b: a.remainder_(b),
        "copy_": lambda a, b: a.copy_(b),
        "eq_": lambda a, b: a.eq_(b),
    }


def operands(torch: Any) -> list[Any]:
    """The numbers, then tensors without dims, then tensors of one dim. Values that every op takes."""
    tensors = [torch.tensor(2).to(getattr(torch, name)) for name in DTYPES]
    return [
        *NUMBERS,
        *tensors,
        *(torch.stack([one, one]) if one.dtype != torch.complex32 else one.expand(2) for one in tensors),
    ]


def answer(torch: Any, op: Binary, left: Any, right: Any) -> str:
    """The letter of a call."""
    left, right = (one.clone() if isinstance(one, torch.Tensor) else one for one in (left, right))
    try:
        result = op(left, right)
    except Exception:
        return REFUSED
    return LETTERS[str(getattr(result, "dtype", result)).rpartition(".")[2]]


def row(torch: Any, op: Binary) -> str:
    """The letters of an op for all pairs that have a tensor, the left operand changing slowest."""
    return "".join(
        answer(torch, op, left, right)
        for left in operands(torch)
        for right in operands(torch)
        if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor)
    )


def pairs(torch: Any) -> Iterator[str]:
    """What stands for each letter of a row."""

    def named(one: Any) -> str:
        return f"{one.ndim}-d {one.dtype}" if isinstance(one, torch.Tensor) else repr(one)

    for left in operands(torch):
        for right in operands(torch):
            if isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor):
                yield f"{named(left)}, {named(right)}"


def casts(torch: Any, function: str) -> str:
    """The answers of can_cast or promote_types for all pairs of dtypes."""

    def one(a: Any, b: Any) -> str:
        try:
            value = getattr(torch, function)(a, b)
        except Exception:
            return REFUSED
        return LETTERS[str(value).rpartition(".")[2]] if not isinstance(value, bool) else "TF"[not value]

    dtypes = [getattr(torch, name) for name in DTYPES]
    return "".join(one(a, b) for a in dtypes for b in dtypes)


def table(torch: Any) -> dict[str, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = {name: row(torch, op) for name, op in ops(torch).items()}
        return {**rows, **{name: casts(torch, name) for name in ("can_cast", "promote_types")}}


if __name__ == "__main__":
    import torch

    TABLE.write_text(json.dumps(table(torch), indent=0) + "\n")
    sys.exit()
