"""What calls with random arguments found: each is answered, or refused with an exception that torch raises, too."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional
import mindtorch_v2.signal.windows
import mindtorch_v2.sparse
import mindtorch_v2.special

NAMES = {"torch": torch, "F": torch.nn.functional, "np": np, "nan": math.nan, "inf": math.inf}
NO_MEMORY = r"DefaultCPUAllocator: can't allocate memory: you tried to allocate {} bytes\. Error code 12"
WIDE = "Overflow when unpacking long long"

REFUSED = [
    # More memory than there is: torch's RuntimeError, from whichever op, and at once.
    ("torch.zeros(10**12)", RuntimeError, NO_MEMORY.format(4 * 10**12)),
    ("torch.ones(2).repeat(10**12)", RuntimeError, NO_MEMORY.format(8 * 10**12)),
    ("torch.ones(2).repeat(10**9, 10**9)", RuntimeError, NO_MEMORY.format(8 * 10**18)),
    ("torch.arange(0, 1e18)", RuntimeError, "can't allocate memory"),
    ("torch.linspace(0, 1, 10**12)", RuntimeError, NO_MEMORY.format(4 * 10**12)),
    ("torch.eye(10**9)", RuntimeError, NO_MEMORY.format(4 * 10**18)),
    ("F.one_hot(torch.tensor([2**40]))", RuntimeError, NO_MEMORY.format(8 * (2**40 + 1))),
    ("F.pad(torch.ones(2), (2**40, 0))", RuntimeError, NO_MEMORY.format(4 * (2**40 + 2))),
    ("torch.ones(3).expand(2**40, 3) + 1", RuntimeError, NO_MEMORY.format(12 * 2**40)),
    ("torch.nn.Linear(10**6, 10**6)", RuntimeError, NO_MEMORY.format(4 * 10**12)),
    ("torch.mvlgamma(torch.ones(2), 2**40)", RuntimeError, "can't allocate memory"),
    ("torch.signal.windows.hamming(2**40)", RuntimeError, "can't allocate memory"),
    ("torch.ones(3).tensor_split(2**40)", RuntimeError, "can't allocate memory"),
    ("torch.ones(0).chunk(2**40)", RuntimeError, "can't allocate memory"),
    ("torch.randperm(2**42)", RuntimeError, "can't allocate memory"),
    ("torch.UntypedStorage(2**60)", RuntimeError, NO_MEMORY.format(2**60)),
    ("torch.zeros(2**62)", RuntimeError, r"Storage size calculation overflowed with sizes=\[4611686018427387904\]"),
    # Numbers that are too wide: for 64 bits, for a dim, for the dtype.
    ("torch.zeros(2**63)", TypeError, "zeros.*argument 'size' failed to unpack the object at pos 1 with error \"" + WIDE),
    ("torch.full((2, 2**63), 1)", TypeError, "argument 'size' failed to unpack the object at pos 2"),
    ("torch.ones(2).sum(10**30)", ValueError, WIDE),
    ("torch.transpose(torch.ones(2), 0, 2**63)", ValueError, WIDE),
    ("torch.min(torch.ones(2), 2**64)", ValueError, WIDE),
    ("torch.ones(2, 2).tril(10**30)", ValueError, WIDE),
    ("torch.linspace(0, 1, 2**63)", ValueError, WIDE),
    ("torch.ones(2).transpose(0, 2**62)", IndexError, r"range of \[-1, 0\], but got 4611686018427387904"),
    ("torch.swapdims(torch.ones(2), 0, -2**31 - 1)", IndexError, "Dimension out of range"),
    ("F.hardtanh(torch.ones(2, dtype=torch.int16), max_val=2**62)", RuntimeError, "converted to type int16_t without overflow"),
    ("F.hardtanh(torch.ones(2, dtype=torch.int64), -1e308)", RuntimeError, "converted to type int64_t without overflow"),
    ("torch.full((2,), 10**30)", OverflowError, "int too big to convert"),
    ("torch.frombuffer(bytearray(8), dtype=torch.int16, count=-2**63 - 1)", ValueError, WIDE),
    ("torch.frombuffer(bytearray(8), dtype=torch.int16, count=2**70)", ValueError, WIDE),
    ("torch.ones(2, dtype=torch.int8).apply_(lambda x: 300)", RuntimeError, "converted to type int8 without overflow"),
    ("torch.ones(2, dtype=torch.int8).map_(torch.ones(2, dtype=torch.int8), lambda x, y: 300)", RuntimeError, "to type int8"),
    # Arguments of another type, which reach the middle of a composite, a shape rule or a function that is no op.
    ("torch.ones(2).addr_(0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.baddbmm(None, None, None)", TypeError, r"argument 'input' \(position 1\) must be Tensor, not NoneType"),
    ("torch.ones(2, device='meta').addmm(mat1=0, mat2=0)", TypeError, "argument 'mat1'.* must be Tensor, not int"),
    ("torch.ones(2).byte(0)", TypeError, None),
    ("torch.add(0, [torch.ones(2).to_sparse()])", TypeError, r"argument 'other' \(position 2\) must be Tensor, not list"),
    ("torch.empty_like(torch.ones(2), memory_format=0)", TypeError, "must be torch.memory_format, not int"),
    ("torch._foreach_pow_(0)", TypeError, "received an invalid combination of arguments"),
    ("torch._foreach_add(0, 0)", TypeError, "received an invalid combination of arguments"),
    (
        "torch.is_floating_point(0)",
        TypeError,
        r"is_floating_point\(\): argument 'input' \(position 1\) must be Tensor, not int",
    ),
    ("torch.numel(0)", TypeError, r"numel\(\): argument 'input'"),
    ("torch.tensordot(0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.stft(torch.ones(20), 7, window=0)", TypeError, "argument 'window'.* must be Tensor, not int"),
    ("torch._foreach_addcdiv((), [], (), [torch.ones(2)])", TypeError, "received an invalid combination of arguments"),
    ("torch._foreach_addcmul([], 0, 0, [torch.ones(2)])", TypeError, "received an invalid combination of arguments"),
    ("torch.as_strided_copy(0, 0, 0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.sparse.mm(0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.as_strided(0, 0, 0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.as_strided_scatter(0, 0, 0, 0, 0)", TypeError, "must be Tensor, not int"),
    ("torch.to_dlpack(0)", TypeError, "must be Tensor, not int"),
    (
        "torch.tensor([1.0], requires_grad=True).sum().backward(inputs=(1,))",
        RuntimeError,
        "Tensors or GradientEdges, but got int",
    ),
    ("torch.ones(2, dtype=torch.int64).new_tensor('a')", TypeError, r"new\(\): invalid data type 'str'"),
    ("torch.FloatStorage(wrap_storage=0)", TypeError, None),
    # Zero where a kernel divides.
    ("torch.ones(2).unsafe_chunk(0)", RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    ("torch.ops.aten._fft_c2r(torch.ones(()), [0], 0, 0)", IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    # Complex numbers where there is no kernel for them.
    ("torch.zeros(20).normal_(1j)", TypeError, "argument 'mean' .* must be float, not complex"),
    ("torch.nn.init.normal_(torch.zeros(2), 1j)", TypeError, "argument 'mean' .* must be float, not complex"),
    ("torch.igamma(torch.ones(2), torch.ones(2, dtype=torch.complex64))", NotImplementedError, "igamma_cpu.*ComplexFloat"),
    ("torch.special.zeta(0, torch.ones(2, dtype=torch.complex128))", NotImplementedError, "zeta_cpu.*ComplexDouble"),
    ("torch.mvlgamma(torch.ones(2, dtype=torch.complex64), 2)", NotImplementedError, "mvlgamma"),
    ("torch._fft_c2c(torch.ones(2), [0], 0, True)", RuntimeError, "Only supports complex dtypes, but found: Float"),
    # Shapes that do not broadcast, in ops that are not promoted.
    ("torch.ops.aten.silu_backward(torch.ones(2), torch.ones(0))", RuntimeError, r"The size of tensor a \(2\) must match"),
    # What an iteration cannot answer.
    ("torch.poisson(torch.full((3,), nan))", RuntimeError, "invalid Poisson rate"),
    ("torch.linalg.svd(torch.full((3, 3), nan))", torch.linalg.LinAlgError, "the input matrix contained non-finite values"),
    ("torch.linalg.pinv(torch.full((2, 3, 3), inf))", torch.linalg.LinAlgError, r"\(Batch element 0\)"),
    ("torch.linalg.eigh(torch.full((3, 3), nan))", torch.linalg.LinAlgError, "failed to converge"),
    ("torch.special.legendre_polynomial_p(torch.tensor(0.5), 2**31)", RuntimeError, "orders above"),
]


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
@pytest.mark.parametrize(("line", "kind", "words"), REFUSED, ids=[line for line, *_ in REFUSED])
def test_is_refused_as_torch_does(line, kind, words):
    with pytest.raises(kind, match=words) as raised:
        eval(line, NAMES)
    assert raised.type is kind


ANSWERED = [
    ("torch.ones(2, 2).diagonal(2**63 - 1).shape", (0,)),
    ("torch.ones(2, 2).diagonal(-2**31 - 1).shape", (0,)),
    ("torch.ones(3).chunk(2**40)", 3),
    ("torch.ones(2).round(decimals=400)", math.nan),
    ("torch.ones(2).round(decimals=-2**63)", math.nan),
    ("torch.polygamma(2**31 - 1, torch.ones(2))", math.inf),
    ("torch.polygamma(200, torch.full((2,), 3.0))", -math.inf),
    ("torch.poisson(torch.full((2,), inf))", math.inf),
    ("torch.poisson(torch.full((2,), 1e305, dtype=torch.float64))", 1e305),
    ("torch.binomial(torch.full((2,), nan), torch.full((2,), 0.5))", math.nan),
    ("torch.binomial(torch.full((2,), inf), torch.full((2,), 0.5))", math.inf),
    ("torch.binomial(torch.full((2,), 5.0), torch.full((2,), 1e-40))", 0.0),
    ("torch._standard_gamma(torch.full((2,), nan))", math.nan),
    ("torch._standard_gamma(torch.full((2,), inf))", math.inf),
    ("torch._standard_gamma(torch.full((2,), -5.0))", math.nan),
    ("torch.arange(2).to(torch.uint64).storage_type()", None),
    ("F.cross_entropy(torch.ones(0), torch.ones(0), label_smoothing=1.0)", math.nan),
    ("torch.frombuffer(bytearray(8), dtype=torch.int16, count=-(2**62)).shape", (4,)),
]


@pytest.mark.parametrize(("line", "wanted"), ANSWERED, ids=[line for line, *_ in ANSWERED])
def test_is_answered(line, wanted):
    result = eval(line, NAMES)
    if isinstance(result, torch.Tensor):
        np.testing.assert_array_equal(result.numpy(), np.full(result.shape, wanted, result.numpy().dtype))
    else:
        assert (len(result) if isinstance(wanted, int) else result) == wanted


@pytest.mark.parametrize(
    "line",
    [
        "torch.ones(2, dtype=torch.complex64).cumprod(0, dtype=torch.int16)",
        "torch.ones(2, dtype=torch.complex64).sum(dtype=torch.int16)",
        "torch.ones(2, dtype=torch.complex64).sum(dtype=torch.bfloat16)",
        "torch.ones(2, dtype=torch.complex64).mean(dtype=torch.float32)",
        "torch.ones(2, dtype=torch.complex64).prod(dtype=torch.float16)",
        "torch.ones(2).fill_(torch.tensor(1j))",
        "torch.ones(2, dtype=torch.complex32).to(torch.float32)",
        "torch.nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(1, dtype=torch.complex64)])",
    ],
)
def test_the_warning_of_a_lost_imaginary_part_is_torchs(line):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        eval(line, {"torch": torch})
    assert caught and {each.category for each in caught} == {UserWarning}


def test_a_mode_refuses_as_no_mode_does():
    torch.set_default_device("meta")
    try:
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            torch.allclose(0, 0)
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            torch.nn.functional.relu(0)
    finally:
        torch.set_default_device(None)


def test_numbers_that_cannot_be_found_are_not_searched_for_ever():
    with pytest.raises(RuntimeError, match=r"no number of mean 0.0 and std 1.0 was found in \[1.0, 1e\+30\]"):
        torch.nn.init.trunc_normal_(torch.ones(3), a=1.0, b=1e30)


def test_attention_of_no_width_is_no_division():
    empty = torch.ones(1, 2, 0)
    assert torch.nn.functional.scaled_dot_product_attention(empty, empty, empty).shape == (1, 2, 0)
