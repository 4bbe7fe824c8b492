"""Operands that an op does not take: other dtypes, complex numbers where there is an order, numbers for tensors."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

ONES = torch.ones(2, 2)
DOUBLES = torch.ones(2, 2, dtype=torch.float64)
CHANCES = torch.tensor([0.3, 0.6])
CLASSES = torch.tensor([0, 1])
COMPLEX = torch.tensor([1 + 2j, 3 - 1j])
ALL = "mixed dtype (CPU): all inputs must share same datatype."
FLOATS = "mixed dtype (CPU): expect parameter to have scalar type of Float"
CLAMP = "clamp is not supported for complex types"


def _kernel(name, kind="ComplexFloat"):
    return f"\"{name}\" not implemented for '{kind}'"


def _no_number(name, argument="other", position=2):
    return f"{name}(): argument '{argument}' (position {position}) must be Tensor, not int"


REFUSED = [
    (lambda: nn.BatchNorm1d(2)(DOUBLES), RuntimeError, ALL),
    (lambda: nn.BatchNorm1d(2).eval()(DOUBLES), RuntimeError, ALL),
    (lambda: F.batch_norm(ONES, None, None, DOUBLES[0], training=True), RuntimeError, FLOATS),
    (lambda: nn.LayerNorm(2)(DOUBLES), RuntimeError, ALL),
    (lambda: nn.LayerNorm(2)(ONES.long()), RuntimeError, ALL),
    (lambda: F.layer_norm(ONES, (2,), DOUBLES[0]), RuntimeError, FLOATS),
    (lambda: F.layer_norm(ONES, (2,), ONES[0], DOUBLES[0]), RuntimeError, "expected scalar type Float but found Double"),
    (lambda: F.group_norm(DOUBLES, 1, ONES[0], ONES[0]), RuntimeError, ALL),
    (lambda: nn.InstanceNorm1d(2, affine=True)(torch.ones(1, 2, 3).double()), RuntimeError, ALL),
    (lambda: nn.BCELoss()(CHANCES, CLASSES), RuntimeError, "Found dtype Long but expected Float"),
    (lambda: nn.BCELoss()(CHANCES, CHANCES.double()), RuntimeError, "Found dtype Double but expected Float"),
    (lambda: F.kl_div(CHANCES, CLASSES, reduction="sum"), RuntimeError, "kl_div: Integral inputs not supported."),
    (lambda: torch.cross(torch.ones(3), torch.ones(3).double()), RuntimeError, "expected scalar type Float but found Double"),
    (
        lambda: torch.linalg.vecdot(ONES, DOUBLES),
        RuntimeError,
        "linalg.vecdot: Expected x and y to have the same dtype, but found x of type Float and y of type Double instead",
    ),
    (lambda: torch.tensordot(ONES, DOUBLES, 1), RuntimeError, "both inputs should have same dtype"),
    (lambda: torch.cdist(ONES, DOUBLES), RuntimeError, "expected scalar type Float but found Double"),
    (
        lambda: torch.full(torch.zeros(0, 4), 1),
        TypeError,
        "full(): argument 'size' (position 1) must be tuple of ints, not Tensor",
    ),
    (lambda: torch.lerp(ONES, DOUBLES, 0.5), RuntimeError, "expected dtype float for `end` but got dtype double"),
    (lambda: torch.ones(2, 2).lerp_(ONES, DOUBLES), RuntimeError, "expected dtype float for `weight` but got dtype double"),
    (lambda: F.multi_margin_loss(ONES, CHANCES), RuntimeError, "expected scalar type Long but found Float"),
    (lambda: F.multilabel_margin_loss(CHANCES, CHANCES), RuntimeError, "expected scalar type Long but found Float"),
    (
        lambda: torch.tensor([0, 1]).clamp_(min=0.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type long int",
    ),
    (lambda: torch.isposinf(COMPLEX), RuntimeError, "isposinf does not support complex inputs."),
    # complex numbers have no order
    (lambda: torch.relu(COMPLEX), NotImplementedError, CLAMP),
    (lambda: F.relu6(COMPLEX), NotImplementedError, CLAMP),
    (lambda: torch.clamp(COMPLEX, 0, 1), NotImplementedError, CLAMP),
    (lambda: torch.clamp(COMPLEX, COMPLEX, COMPLEX), NotImplementedError, CLAMP),
    (lambda: torch.max(COMPLEX), NotImplementedError, _kernel("max_all")),
    (lambda: torch.min(COMPLEX, 0), RuntimeError, "min(): does not support complex input"),
    (lambda: torch.argmax(COMPLEX), RuntimeError, "argmax(): does not support complex input"),
    (lambda: torch.amax(COMPLEX), NotImplementedError, _kernel("max_values_cpu")),
    (lambda: torch.aminmax(COMPLEX), NotImplementedError, _kernel("aminmax_cpu")),
    (lambda: torch.median(COMPLEX), NotImplementedError, _kernel("median_cpu")),
    (lambda: torch.median(COMPLEX, 0), NotImplementedError, _kernel("median_out")),
    (lambda: torch.mode(COMPLEX), NotImplementedError, _kernel("mode_cpu")),
    (lambda: torch.sort(COMPLEX), RuntimeError, " Sort does not support complex dtypes on CPU"),
    (lambda: torch.topk(COMPLEX, 1), RuntimeError, " topk does not support complex dtypes on CPU"),
    (lambda: torch.kthvalue(COMPLEX, 1), NotImplementedError, _kernel("kthvalue_cpu")),
    (lambda: torch.softmax(COMPLEX, 0), NotImplementedError, _kernel("softmax_lastdim_kernel_impl")),
    (lambda: torch.cummax(COMPLEX, 0), NotImplementedError, _kernel("cummax_cpu")),
    (lambda: torch.unique(COMPLEX), NotImplementedError, _kernel("unique")),
    (lambda: torch.searchsorted(COMPLEX, COMPLEX), NotImplementedError, _kernel("searchsorted_out_cpu")),
    (lambda: torch.round(COMPLEX), NotImplementedError, _kernel("round_vml_cpu")),
    (lambda: torch.floor(COMPLEX), NotImplementedError, "floor is not supported for complex inputs"),
    (lambda: torch.frac(COMPLEX), NotImplementedError, _kernel("frac_cpu")),
    (lambda: torch.maximum(COMPLEX, COMPLEX), RuntimeError, "maximum not implemented for complex tensors."),
    (lambda: torch.fmin(COMPLEX, COMPLEX), RuntimeError, "fmin not implemented for complex tensors."),
    (lambda: torch.atan2(COMPLEX, COMPLEX), NotImplementedError, _kernel("atan2_cpu")),
    (lambda: COMPLEX // COMPLEX, NotImplementedError, _kernel("div_floor_cpu")),
    (
        lambda: torch.sign(COMPLEX),
        NotImplementedError,
        "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
    (lambda: torch.heaviside(COMPLEX, COMPLEX), RuntimeError, "heaviside is not yet implemented for complex tensors."),
    (lambda: torch.signbit(COMPLEX), NotImplementedError, "signbit is not implemented for complex tensors."),
    (lambda: F.leaky_relu(COMPLEX), NotImplementedError, _kernel("leaky_relu_cpu")),
    (lambda: F.threshold(COMPLEX, 0, 0), NotImplementedError, _kernel("threshold_cpu")),
    (lambda: F.mse_loss(COMPLEX, COMPLEX), NotImplementedError, _kernel("mse_cpu")),
    # a number is no tensor
    (lambda: torch.maximum(ONES, 1), TypeError, _no_number("maximum")),
    (lambda: torch.fmin(ONES, 1), TypeError, _no_number("fmin")),
    (lambda: torch.atan2(ONES, 1), TypeError, _no_number("atan2")),
    (lambda: torch.logaddexp(ONES, 1), TypeError, _no_number("logaddexp")),
    (lambda: torch.nextafter(ONES, 1), TypeError, _no_number("nextafter")),
    (lambda: torch.gcd(CLASSES, 1), TypeError, _no_number("gcd")),
    (lambda: torch.ldexp(ONES, 1), TypeError, _no_number("ldexp")),
    (lambda: torch.logical_and(ONES, 1), TypeError, _no_number("logical_and")),
    (lambda: torch.dist(ONES, 1), TypeError, _no_number("dist")),
    (lambda: torch.addcmul(ONES, 1, ONES), TypeError, _no_number("addcmul", "tensor1")),
    (lambda: torch.addcdiv(ONES, ONES, 1), TypeError, _no_number("addcdiv", "tensor2", 3)),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, kind, words = REFUSED[number]
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind and str(raised.value) == words


def test_what_goes_together_still_does():
    assert nn.BatchNorm1d(2)(ONES.half()).dtype is torch.float16  # half precision with parameters of float32
    assert F.silu(COMPLEX).dtype is torch.complex64
    assert torch.maximum(ONES, CLASSES).dtype is torch.float32
    assert torch.maximum(CLASSES, torch.tensor(1)).tolist() == [1, 1]
    assert torch.clamp(ONES, ONES * 2).tolist() == [[2, 2], [2, 2]]
