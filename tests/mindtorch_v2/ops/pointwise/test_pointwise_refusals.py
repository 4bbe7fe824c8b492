"""What element-wise ops, reductions, scans and statistics refuse, in PyTorch 2.13's words."""

from __future__ import annotations

from math import inf, nan

import pytest

import mindtorch_v2 as torch

NAMES = {
    "torch": torch,
    "inf": inf,
    "nan": nan,
    "o": torch.ones,
    "t": torch.tensor,
    "byte": torch.tensor([1, 200, 3], dtype=torch.uint8),
    "short": torch.tensor([1, 100, -3], dtype=torch.int8),
    "mask": torch.tensor([True, False, True]),
    "b": torch.tensor([True, False]),
    "x": torch.arange(12.0).view(3, 4) ** 2,
    "v": torch.arange(4.0) ** 2,
}


def _overflow(kind):
    return RuntimeError, f"value cannot be converted to type {kind} without overflow"


def _kernel(name, kind="Bool"):
    return NotImplementedError, f"\"{name}\" not implemented for '{kind}'"


def _two_numbers(name):
    return TypeError, f"{name}() received an invalid combination of arguments - got (int, int), but expected one of:"


def _lengths(spacing, dim):
    return RuntimeError, (
        "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to "
        f"have the same length, but got a spacing argument of length {spacing} and a dim argument of length "
        f"{dim}."
    )


def _one_for_each_dim(length):
    return RuntimeError, (
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to "
        f"'self.dim() = 2', since dim argument was not given, but got a list of length {length}"
    )


def _spacing_dims(ndim):
    return RuntimeError, (
        f"torch.gradient expected each element of spacing to have one dimension, but got an element with {ndim} dimensions!"
    )


def _narrowing(given, wanted):
    return RuntimeError, (
        f"linalg.vector_norm: the dtype of the input ({given}) should be convertible without narrowing to "
        f"the specified dtype ({wanted})"
    )


def _said(message):
    return RuntimeError, message


SMALL = _said("torch.gradient expected each dimension size to be at least edge_order+1")
NO_BINS = _said("torch.histogram(): bins must be > 0, but got 0 for dimension 0")
NO_COMPLEX_SUM = _said("nansum on CPU does not support complex inputs")
TWICE = _said("dim 0 appears multiple times in the list of dims")
NO_MASK = _said("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
NO_WEIGHT = _said("cov(): weights sum to zero, can't be normalized")
NOT_FLOATING = _said("linalg.vector_norm: Expected a floating point or complex tensor as input. Got Long")

REFUSED = [
    # numbers that do not fit
    ("torch.add(byte, byte, alpha=300)", _overflow("uint8_t")),
    ("torch.add(byte, byte, alpha=-300)", _overflow("uint8_t")),
    ("torch.sub(short, short, alpha=200)", _overflow("int8_t")),
    ("torch.add(o(2), o(2), alpha=1e300)", _overflow("float")),
    ("torch.add(o(2), o(2), alpha=2j)", _said("For non-complex input tensors, argument alpha must not be a complex number.")),
    ("torch.addcmul(byte, byte, byte, value=300)", _overflow("uint8_t")),
    ("torch.addcdiv(o(2), o(2), o(2), value=1e300)", _overflow("float")),
    ("torch.where(mask, byte, 300)", _overflow("uint8_t")),
    ("torch.where(mask, 300, byte)", _overflow("uint8_t")),
    ("torch.where(mask, short, -129)", _overflow("int8_t")),
    ("torch.where(mask, o(3), 1e300)", _overflow("float")),
    ("byte.pow(300)", _overflow("uint8_t")),
    ("short ** 128", _overflow("int8_t")),
    ("byte ** -1", _said("Integers to negative integer powers are not allowed.")),
    ("byte.masked_fill(mask, t(300))", _overflow("uint8_t")),
    ("byte.clone().masked_fill_(mask, t(300))", _overflow("uint8_t")),
    ("o(3).long().masked_fill(mask, t(3j))", _overflow("int64_t")),
    ("o(3).half().masked_fill(mask, t(1e10))", _overflow("c10::Half")),
    # masks
    ("o(3).masked_fill(byte, 1)", NO_MASK),
    ("o(3).masked_fill(byte, t(1.))", NO_MASK),
    (
        "byte.masked_fill(o(2).bool(), 1)",
        _said("The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    ),
    (
        "o(2, 3).masked_fill_(o(2).bool(), 1)",
        _said("The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 1"),
    ),
    ("o(3).masked_fill_(o(2, 3).bool(), 1)", _said("output with shape [3] doesn't match the broadcast shape [2, 3]")),
    # numbers where tensors are wanted
    ("torch.hypot(o(2), 4)", (TypeError, "hypot(): argument 'other' (position 2) must be Tensor, not int")),
    ("o(2).hypot_(4)", (TypeError, "hypot_(): argument 'other' (position 1) must be Tensor, not int")),
    *[
        (f"torch.{name}(2, 3)", _two_numbers(name))
        for name in (
            "bitwise_and",
            "bitwise_or",
            "bitwise_xor",
            "bitwise_left_shift",
            "bitwise_right_shift",
            "pow",
            "remainder",
        )
    ],
    # dtypes
    ("torch.hypot(t([3]), t([4]))", _kernel("hypot_cpu", "Long")),
    ("torch.nextafter(t([1]), t([2]))", _kernel("nextafter_cpu", "Long")),
    ("torch.pow(b, b)", _kernel("pow")),
    ("torch.pow(True, b)", _kernel("pow")),
    ("torch.fmod(b, b)", _kernel("fmod_cpu")),
    ("torch.remainder(b, b)", _kernel("remainder_cpu")),
    ("torch.floor_divide(b, True)", _kernel("div_floor_cpu")),
    ("torch.div(b, b, rounding_mode='trunc')", _kernel("div_trunc_cpu")),
    ("torch.div(t([5 + 1j]), 2, rounding_mode='floor')", _kernel("div_floor_cpu", "ComplexFloat")),
    ("torch.bitwise_left_shift(b, b)", _kernel("lshift_cpu")),
    ("torch.bitwise_right_shift(o(1), 1)", _kernel("rshift_cpu", "Float")),
    ("torch.clamp(b, True)", _kernel("clamp_min_scalar_cpu")),
    ("torch.clamp(b, True, True)", _kernel("clamp_scalar_cpu")),
    ("torch.clamp_max(b, True)", _kernel("clamp_max_scalar_cpu")),
    ("torch.clamp(b, b, b)", _kernel("clamp_cpu")),
    ("torch.addcmul(b, b, b)", _kernel("addcmul_cpu_out")),
    ("torch.lerp(byte.long(), byte.long(), 0.5)", _kernel("lerp_kernel_scalar", "Long")),
    ("torch.positive(b)", _said("The `+` operator, on a bool tensor is not supported.")),
    ("torch.cumsum(b, 0, dtype=torch.bool)", _kernel("cumsum_out_cpu")),
    ("torch.cumprod(b, 0, dtype=torch.bool)", _kernel("cumprod_out_cpu")),
    ("torch.logcumsumexp(t([1, 2]), 0)", _kernel("logcumsumexp_out_cpu", "Long")),
    ("torch.argmax(b)", _said("argmax(): does not support bool input")),
    ("torch.argmin(b, 0)", _said("argmin(): does not support bool input")),
    ("torch.nansum(t([1j]))", NO_COMPLEX_SUM),
    ("torch.nansum(t([1j]), 1)", (IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)")),
    ("torch.nanmean(t([1j]))", NO_COMPLEX_SUM),
    ("torch.var_mean(t([1, 2]))", _said("var_mean only support floating point and complex dtypes")),
    # dims that are named twice
    ("torch.sum(x, (0, 0))", TWICE),
    ("torch.mean(x, (0, -2))", TWICE),
    ("torch.amax(x, (0, -2))", TWICE),
    # differences, integrals and derivatives
    ("torch.diff(o(2, 3), 1, 0, o(2))", _said("diff expects prepend or append to be the same dimension as input")),
    (
        "torch.diff(o(2, 3), 0, 0, o(2, 2))",
        _said(
            "diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
            "dimension; input.size(1) = 3, but got tensor.size(1) = 2"
        ),
    ),
    ("torch.trapezoid(t(1.))", (IndexError, "Dimension specified as -1 but tensor has no dimensions")),
    ("torch.trapezoid(b)", _said("trapezoid: received a bool input for `y`, but bool is not supported")),
    ("torch.trapezoid(v, v > 0)", _said("trapezoid: received a bool input for `x` or `y`, but bool is not supported")),
    ("torch.cumulative_trapezoid(b)", _said("cumulative_trapezoid: received a bool input for `y`, but bool is not supported")),
    ("torch.cumulative_trapezoid(x, o(5))", _said("cumulative_trapezoid: There must be one `x` value for each sample point")),
    ("torch.gradient(x, spacing=(2.,))", _one_for_each_dim(1)),
    ("torch.gradient(x, spacing=(2., 3., 4.))", _one_for_each_dim(3)),
    ("torch.gradient(x, spacing=(2., 3.), dim=0)", _lengths(2, 1)),
    ("torch.gradient(x, spacing=[torch.arange(4.)], dim=(0, 1))", _lengths(1, 2)),
    ("torch.gradient(x, spacing=0.1, dim=(1, -1))", _said("dim 1 appears multiple times in the list of dims")),
    ("torch.gradient(o(1, 3))", SMALL),
    ("torch.gradient(o(2, 2), edge_order=2)", SMALL),
    ("torch.gradient(x, spacing=(o(3, 1), o(4)))", _spacing_dims(2)),
    ("torch.gradient(x, spacing=(t(2.), t(3.)))", _spacing_dims(0)),
    ("torch.gradient(byte)", _said("torch.gradient does not support uint8 input.")),
    (
        "torch.gradient(o(3, 3), spacing=[torch.arange(3), torch.arange(3, device='meta')])",
        _said("torch.gradient expected each tensor to be on the same device, but got devices cpu and meta!"),
    ),
    # statistics
    ("torch.cov(b)", _said("cov(): bool dtype is not supported for input")),
    ("torch.cov(x, fweights=o(4))", _said("cov(): expected fweights to have integral dtype but got fweights with Float dtype")),
    ("torch.cov(x, fweights=t([-1, 2, 3, 4]))", _said("cov(): fweights cannot be negative")),
    ("torch.cov(x, fweights=t([0, 0, 0, 0]))", NO_WEIGHT),
    (
        "torch.cov(x, aweights=t([1, 2]))",
        _said("cov(): expected aweights to have floating point dtype but got aweights with Long dtype"),
    ),
    ("torch.cov(x, aweights=t([-1., 2, 3, 4]))", _said("cov(): aweights cannot be negative")),
    ("torch.cov(x, aweights=o(4) * 0)", NO_WEIGHT),
    ("torch.histc(v, 0)", NO_BINS),
    ("torch.histc(v, 3, nan, 2)", _said("torch.histc: range of [nan, 2] is not finite")),
    ("torch.histogram(v, 0)", NO_BINS),
    ("torch.histogram(v, t([1.]))", NO_BINS),
    ("torch.histogram(v, 0, weight=o(2))", NO_BINS),
    (
        "torch.histogram(v, 3, range=(4., 0.))",
        _said("torch.histogramdd: min should not exceed max, but got min 4 max 0 for dimension 0"),
    ),
    (
        "torch.histogram(v, 3, range=(4.,))",
        _said("torch.histogramdd: for a 1-dimensional histogram range should have 2 elements, but got 1"),
    ),
    ("torch.histogram(t([nan, 1.]), 3)", _said("torch.histogramdd: dimension 0's range [nan, nan] is not finite")),
    (
        "torch.histogram(v, 3, weight=o(2))",
        _said(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its "
            "innermost dimension, but got input with shape [4, 1] and weight with shape [2]"
        ),
    ),
    (
        "torch.histogram(v, 3, weight=o(2).double())",
        _said(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but "
            "got input(float), and weight(double)"
        ),
    ),
    (
        "torch.histogram(v, o(2).double())",
        _said(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype float and "
            "bins for dimension 0 with dtype double"
        ),
    ),
    (
        "torch.histogram(v.half(), o(2))",
        _said(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype c10::Half "
            "and bins for dimension 0 with dtype float"
        ),
    ),
    (
        "torch.histogram(v, o(2, 2))",
        _said(
            "torch.histogramdd: bins tensor should have one dimension, but got 2 dimensions in the bins tensor for dimension 0"
        ),
    ),
    (
        "torch.histogram(v, t([]))",
        _said(
            "torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
            "dimension 0"
        ),
    ),
    ("torch.histogram(t([1, 2]), 3)", _kernel("histogramdd", "Long")),
    # norms
    ("torch.renorm(x, 2, 0, -1.)", _said("renorm: expected maxnorm to be >= 0 but got -1")),
    ("torch.renorm(x, 2j, 0, 1.)", _said("renorm: p must be real-valued")),
    (
        "torch.linalg.vector_norm(v, dtype=torch.int64)",
        _said("linalg.vector_norm: dtype should be floating point or complex, but got Long"),
    ),
    (
        "torch.linalg.vector_norm(v, dtype=torch.complex64)",
        _said("linalg.vector_norm: dtype should be real for real inputs, but got ComplexFloat"),
    ),
    (
        "torch.linalg.vector_norm(v * 1j, dtype=torch.float32)",
        _said("linalg.vector_norm: dtype should be complex for complex inputs, but got Float"),
    ),
    ("torch.linalg.vector_norm(v, dtype=torch.float16)", _narrowing("Float", "Half")),
    ("torch.norm(v.double(), dtype=torch.float32)", _narrowing("Double", "Float")),
    ("torch.linalg.vector_norm(v.long(), dtype=torch.float32)", NOT_FLOATING),
    ("torch.linalg.vector_norm(v, 1j)", _said("linalg.vector_norm: Expected a non-complex scalar as the order of norm.")),
]


@pytest.mark.parametrize(("expression", "expected"), REFUSED, ids=[row[0] for row in REFUSED])
def test_refusals(expression, expected):
    kind, message = expected
    with pytest.raises(kind) as refusal:
        eval(expression, NAMES)
    assert refusal.type is kind
    assert str(refusal.value).splitlines()[0] == message
