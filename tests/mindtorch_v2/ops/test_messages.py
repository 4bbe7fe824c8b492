"""What ops say of operands that do not go together: torch's exception types and words."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2 import nn

F64 = torch.ones(2, 2, dtype=torch.float64)
F32 = torch.ones(2, 2)
IMAGE = torch.ones(1, 1, 2, 2)
POINT = torch.ones(1, 1, 1, 1)
BYTES = torch.tensor([1, 2, 3], dtype=torch.uint8)
MASK = torch.tensor([True, False, True])
FIRST = torch.tensor([0])


def _assign(target, index, value):
    target[index] = value


MESSAGES = {
    "Linear": (lambda: nn.Linear(2, 3)(F64), RuntimeError, "mat1 and mat2 must have the same dtype, but got Double and Float"),
    "Linear of integers": (
        lambda: nn.Linear(2, 3)(F32.long()),
        RuntimeError,
        "mat1 and mat2 must have the same dtype, but got Long and Float",
    ),
    "addmm_": (
        lambda: torch.ones(2, 2).addmm_(F32, F64),
        RuntimeError,
        "self and mat2 must have the same dtype, but got Float and Double",
    ),
    "mm": (lambda: F32.mm(F64), RuntimeError, "expected m1 and m2 to have the same dtype, but got: float != double"),
    "bmm": (lambda: torch.bmm(F32[None], F64[None]), RuntimeError, "expected scalar type Float but found Double"),
    "baddbmm": (
        lambda: torch.baddbmm(F64[None], F32[None], F32[None]),
        RuntimeError,
        "Input dtypes must be the same, got: input double, batch1: float, batch2: float",
    ),
    "addbmm": (
        lambda: torch.addbmm(F32, F32[None], F64[None]),
        RuntimeError,
        "self and mat2 must have the same dtype, but got Float and Double",
    ),
    "mv": (
        lambda: torch.mv(F32, F64[0]),
        RuntimeError,
        "addmv input tensors must have the same dtype, but got Double, Float, and Double",
    ),
    "addmv": (
        lambda: torch.addmv(F32[0], F32, F64[0]),
        RuntimeError,
        "addmv input tensors must have the same dtype, but got Float, Float, and Double",
    ),
    "Conv2d": (
        lambda: nn.Conv2d(1, 1, 1)(IMAGE.double()),
        RuntimeError,
        "Input type (double) and bias type (float) should be the same",
    ),
    "Conv2d of half": (
        lambda: nn.Conv2d(1, 1, 1)(IMAGE.half()),
        RuntimeError,
        "Input type (c10::Half) and bias type (float) should be the same",
    ),
    "Conv2d without bias": (
        lambda: F.conv2d(IMAGE.double(), POINT),
        RuntimeError,
        "expected scalar type Double but found Float",
    ),
    "transposed": (
        lambda: nn.ConvTranspose2d(1, 1, 1)(IMAGE.double()),
        RuntimeError,
        "expected scalar type Double but found Float",
    ),
    "nll_loss": (
        lambda: F.nll_loss(torch.ones(2, 3, 4), torch.zeros(2, 5, dtype=torch.long)),
        RuntimeError,
        "Expected target size [2, 4], got [2, 5]",
    ),
    "nll_loss of a single row": (
        lambda: F.nll_loss(torch.ones(3), torch.zeros(2, dtype=torch.long)),
        ValueError,
        "For 1D input, 1D target must have size 1, but got target size: 2",
    ),
    "nll_loss with weights": (
        lambda: F.nll_loss(F32, FIRST.repeat(2), weight=torch.ones(3)),
        RuntimeError,
        "weight tensor should be defined either for all 2 classes or no classes but got weight tensor of shape: [3]",
    ),
    "nll_loss of planes": (
        lambda: F.nll_loss(torch.ones(2, 3, 4, 4), torch.zeros(2, 4, dtype=torch.long)),
        RuntimeError,
        "only batches of spatial targets supported (3D tensors) but got targets of dimension: 2",
    ),
    "cat": (lambda: torch.cat([F32, "x"]), TypeError, "expected Tensor as element 1 in argument 0, but got str"),
    "transpose_": (
        lambda: torch.ones(3).transpose_(0, 3),
        IndexError,
        "Dimension out of range (expected to be in range of [-1, 0], but got 3)",
    ),
    "expand": (
        lambda: torch.ones(3, 4).expand(5, 5),
        RuntimeError,
        "The expanded size of the tensor (5) must match the existing size (4) at non-singleton dimension 1.  "
        "Target sizes: [5, 5].  Tensor sizes: [3, 4]",
    ),
    "assignment": (
        lambda: _assign(torch.ones(3, 4), slice(None), torch.ones(5, 5)),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (5) at non-singleton dimension 1.  "
        "Target sizes: [3, 4].  Tensor sizes: [5, 5]",
    ),
    "clamp": (lambda: BYTES.clamp(max=300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
    "clamp_min": (lambda: BYTES.clamp_min(-300), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
    "clamp of complex": (
        lambda: F32.to(torch.complex64).clamp(min=0),
        NotImplementedError,
        "clamp is not supported for complex types",
    ),
    "masked_fill": (
        lambda: BYTES.masked_fill(MASK, 300),
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    "masked_fill of complex": (
        lambda: F32.masked_fill(F32 > 0, 1j),
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "masked_fill too large": (
        lambda: F32.masked_fill(F32 > 0, 1e40),
        RuntimeError,
        "value cannot be converted to type float without overflow",
    ),
    "pad": (lambda: F.pad(BYTES, (1, 1), value=-1), RuntimeError, "value cannot be converted to type uint8_t without overflow"),
    "scatter": (
        lambda: BYTES.scatter(0, FIRST, 300),
        RuntimeError,
        "value cannot be converted to type uint8_t without overflow",
    ),
    "fill_ with nan": (
        lambda: torch.zeros(2, dtype=torch.int32).fill_(float("nan")),
        RuntimeError,
        "value cannot be converted to type int without overflow",
    ),
    "full": (
        lambda: torch.full((2,), 2**40, dtype=torch.int32),
        RuntimeError,
        "value cannot be converted to type int without overflow",
    ),
    "beyond 64 bits": (lambda: torch.tensor([1]) + 2**70, OverflowError, "int too big to convert"),
    "beyond 64 bits, times": (lambda: 2**70 * torch.tensor([1]), OverflowError, "int too big to convert"),
    "arguments of a method": (
        lambda: torch.ones(3).masked_fill_(MASK, "x"),
        TypeError,
        "masked_fill_() received an invalid combination of arguments - got (Tensor, str), but expected one of:\n"
        " * (Tensor mask, Tensor value)\n"
        "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n"
        " * (Tensor mask, Number value)\n"
        "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n",
    ),
    "arguments of a function": (
        lambda: torch.clamp(torch.ones(3), "x"),
        TypeError,
        "clamp() received an invalid combination of arguments - got (Tensor, str), but expected one of:\n"
        " * (Tensor input, Number min = None, Number max = None)\n"
        " * (Tensor input, Tensor min = None, Tensor max = None)\n",
    ),
    "a named argument": (
        lambda: torch.sum(torch.ones(3), dim="x"),
        TypeError,
        "sum() received an invalid combination of arguments - got (Tensor, dim=str), but expected one of:\n"
        " * (Tensor input, *, torch.dtype dtype = None)\n"
        " * (Tensor input, tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)\n",
    ),
    "a method's argument by position": (
        lambda: torch.ones(3).permute("x"),
        TypeError,
        "permute(): argument 'dims' (position 1) must be tuple of ints, not str",
    ),
    "a function's": (
        lambda: torch.permute(torch.ones(3), "x"),
        TypeError,
        "permute(): argument 'dims' (position 2) must be tuple of ints, not str",
    ),
    "a tensor's": (
        lambda: torch.ones(3).index_select(0, "x"),
        TypeError,
        "index_select(): argument 'index' (position 2) must be Tensor, not str",
    ),
    "a method that is a function, too": (
        lambda: torch.ones(3).masked_fill(MASK, "x"),
        TypeError,
        "masked_fill() received an invalid combination of arguments - got (Tensor, str), but expected one of:\n"
        " * (Tensor mask, Tensor value)\n"
        "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n"
        " * (Tensor mask, Number value)\n"
        "      didn't match because some of the arguments have invalid types: (Tensor, !str!)\n",
    ),
    "a method with a name": (
        lambda: torch.ones(3).sum(dim="x"),
        TypeError,
        "sum() received an invalid combination of arguments - got (dim=str, ), but expected one of:\n"
        " * (*, torch.dtype dtype = None)\n"
        " * (tuple of ints dim, bool keepdim = False, *, torch.dtype dtype = None)\n",
    ),
    "repeat": (
        lambda: torch.ones(3).repeat("x"),
        TypeError,
        "repeat(): argument 'repeats' (position 1) must be tuple of ints, not str",
    ),
}


@pytest.mark.parametrize("what", MESSAGES)
def test_message(what):
    call, kind, words = MESSAGES[what]
    with pytest.raises(kind) as raised:
        call()
    assert type(raised.value) is kind and str(raised.value) == words


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (lambda: BYTES.clamp(min=-1), [255, 255, 255]),
        (lambda: BYTES.clamp(-1, 2), [2, 2, 2]),
        (lambda: BYTES.clamp_max(-1), [1, 2, 3]),
        (lambda: BYTES.masked_fill(MASK, -1), [255, 2, 255]),
        (lambda: BYTES.index_fill(0, FIRST, -1), [255, 2, 3]),
        (lambda: BYTES.scatter(0, FIRST, -1), [255, 2, 3]),
        (lambda: BYTES.clamp(min=1.5), [1.5, 2.0, 3.0]),
        (lambda: torch.tensor([1, -5], dtype=torch.int8).clamp(min=-2.5), [1.0, -2.5]),
    ],
)
def test_numbers_wrap_around_in_unsigned_types(made, expected):
    assert made().tolist() == expected
