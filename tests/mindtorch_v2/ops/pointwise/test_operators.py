"""Binary operators: with strangers they answer NotImplemented, and Python does the rest."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2.profiler import profile

SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "floordiv": "//",
    "mod": "%",
    "pow": "** or pow()",
    "matmul": "@",
    "and_": "&",
    "or_": "|",
    "xor": "^",
    "lshift": "<<",
    "rshift": ">>",
}


class Stranger:
    """Takes part in some operators, on either side."""

    def __radd__(self, other):
        return "radd"

    def __rmatmul__(self, other):
        return "rmatmul"

    def __gt__(self, other):
        return "gt"


def words(call, *args):
    with pytest.raises(TypeError) as caught:
        call(*args)
    return str(caught.value)


@pytest.mark.parametrize("name", SYMBOLS)
def test_python_says_what_is_not_supported(name):
    tensor, call, symbol = torch.tensor([1.0, 2.0]), getattr(operator, name), SYMBOLS[name]
    assert words(call, tensor, None) == f"unsupported operand type(s) for {symbol}: 'Tensor' and 'NoneType'"
    assert words(call, None, tensor) == f"unsupported operand type(s) for {symbol}: 'NoneType' and 'Tensor'"
    inplace = getattr(operator, "i" + name.rstrip("_"))
    short = symbol.partition(" ")[0] + "="
    assert words(inplace, tensor, None) == f"unsupported operand type(s) for {short}: 'Tensor' and 'NoneType'"
    assert tensor.tolist() == [1, 2]


@pytest.mark.parametrize("symbol", ["<", "<=", ">", ">="])
def test_comparisons_with_strangers(symbol):
    call = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[symbol]
    assert words(call, torch.ones(2), "a") == f"'{symbol}' not supported between instances of 'Tensor' and 'str'"


def test_equality_with_strangers_is_identity():
    tensor = torch.ones(2)
    assert (tensor == "a") is False and (tensor != None) is True  # noqa: E711


def test_texts():
    tensor = torch.ones(2)
    assert words(operator.add, tensor, "a") == "unsupported operand type(s) for +: 'Tensor' and 'str'"
    assert words(operator.add, "a", tensor) == 'can only concatenate str (not "Tensor") to str'
    assert words(operator.mul, tensor, "a") == "only integer tensors of a single element can be converted to an index"


@pytest.mark.parametrize(
    "name",
    [
        "__add__",
        "__radd__",
        "__rsub__",
        "__mul__",
        "__truediv__",
        "__rtruediv__",
        "__rfloordiv__",
        "__rmod__",
        "__rpow__",
        "__rmatmul__",
        "__rlshift__",
        "__lt__",
        "__eq__",
        "__iadd__",
        "__rdiv__",
    ],
)
def test_the_methods_answer_not_implemented(name):
    assert getattr(torch.ones(2), name)("a") is NotImplemented


def test_the_other_side_is_asked():
    tensor = torch.ones(2)
    assert (tensor + Stranger(), tensor @ Stranger(), tensor < Stranger()) == ("radd", "rmatmul", "gt")


def test_functions_and_methods_still_say_what_is_wrong():
    for call in (lambda: torch.add(torch.ones(2), "a"), lambda: torch.ones(2).mul("a"), lambda: torch.lt(torch.ones(2), "a")):
        assert "argument 'other'" in words(call)
    assert "invalid combination of arguments" in words(lambda: torch.pow(torch.ones(2), "a"))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda t, a: t + a, [4.0, 6.0]),
        (lambda t, a: t - a, [-2.0, -2.0]),
        (lambda t, a: t * a, [3.0, 8.0]),
        (lambda t, a: a / t, [3.0, 2.0]),
        (lambda t, a: t % a, [1.0, 2.0]),
        (lambda t, a: t**a, [1.0, 16.0]),
        (lambda t, a: t @ a, 11.0),
        (lambda t, a: t == a - 2, [True, True]),
    ],
)
def test_arrays_on_the_right_take_over(call, expected):
    made = call(torch.tensor([1.0, 2.0]), np.array([3.0, 4.0]))
    assert isinstance(made, torch.Tensor) and made.tolist() == expected


def test_numpy_numbers_floor_divided():
    assert (np.float32(3) // torch.tensor([1.0, 2.0])).tolist() == [3, 1]
    made = np.int64(3) // torch.tensor([1, 2])
    assert made.tolist() == [3, 1] and made.dtype is torch.int64


def test_an_operator_is_recorded_as_its_op():
    x = torch.ones(2)
    with profile() as prof:
        x + 1
        _ = x < 1
        assert x.__add__("a") is NotImplemented
    assert [e.name for e in prof.events()] == ["aten::add", "aten::lt", "aten::add"]
