"""Arithmetic with a number as an op of its own: `add.Scalar` and the others, whose nodes are `AddBackward1` ...

A number in Python code meets the Tensor overload, as in torch, where it is wrapped; so these overloads take
no part in resolving calls. Composed ops call them by the names below, as torch's own compositions do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..._dispatch.facts import Promotion
from ..._dispatch.registry import OpSpec, aten, op, packets
from . import arithmetic
from .arithmetic import count


def _declare(
    name: str, arguments: str, kernel: Callable[..., Any], promote: Promotion = Promotion.SAME
) -> tuple[OpSpec, Any, Any]:
    """The Scalar overload of `name`, and what to call for it and for its in-place form."""
    tensor_forms = {form: packets[form].function for form in (name, f"{name}_")}
    spec = op(
        f"{name}.Scalar(Tensor self, {arguments}) -> Tensor",
        kernel,
        promote=promote,
        promoted=("self", "other"),
        inplace=True,
        node=f"{name.title()}Backward1",
        flops=count,
        samples=lambda make: [(make(3, 4), 2.0)],
        number_first=True,
        wide_numbers=name in ("mul", "div"),
        torch_counts_flops=packets[name].overloads["Tensor"].torch_counts_flops,
    )
    for form, function in tensor_forms.items():
        packets[form].function = function
        setattr(aten, form, function)
    return spec, spec.call, packets[f"{name}_"].overloads["Scalar"].call


_add, add_number, add_number_ = _declare("add", "Scalar other, Scalar alpha=1", arithmetic.add.kernel)
_add.vjp(self=lambda g: g)

_sub, sub_number, sub_number_ = _declare("sub", "Scalar other, Scalar alpha=1", arithmetic.sub.kernel)
_sub.vjp(self=lambda g: g)

_mul, mul_number, mul_number_ = _declare("mul", "Scalar other", np.multiply)
_mul.vjp(self=lambda g, other: mul_number(g, arithmetic.conj(other)))

_div, div_number, div_number_ = _declare("div", "Scalar other", np.divide, promote=Promotion.FLOAT)
_div.vjp(self=lambda g, other: div_number(g, arithmetic.conj(other)))


def number_minus(number: float, tensor: Any) -> Any:
    """number - tensor, as torch's compositions write it: a tensor filled with the number, less the other in place."""
    return aten.sub_(aten.fill_(aten.empty_like(tensor), number), tensor)
