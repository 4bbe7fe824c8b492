"""What torch answers to calls that are rare or wrong: results, warnings and messages, one row each."""

from __future__ import annotations

import warnings

import pytest

import mindtorch_v2 as torch

x = torch.ones(2)
matrix = torch.ones(2, 2)


class Sub(torch.Tensor):
    pass


def legacy_subclass():
    class Foo(torch.FloatTensor):
        pass


def deleted():
    del x[0]


ERRORS = [
    (lambda: x.flip(), TypeError, 'flip() missing 1 required positional arguments: "dims"'),
    (
        lambda: torch.nonzero(x, out=torch.empty(0)),
        RuntimeError,
        "nonzero: Expected out tensor to have scalar type Long but got scalar typeFloat",
    ),
    (
        lambda: torch.linspace(0j, 1, 3, dtype=torch.float32),
        RuntimeError,
        "torch.linspace(): inferred dtype c10::complex<float> can't be safely cast to passed dtype Float",
    ),
    (
        lambda: torch.logspace(0j, 1, 3, dtype=torch.float32),
        RuntimeError,
        "torch.logspace(): inferred dtype c10::complex<float> can't be safely cast to passed dtype Float",
    ),
    (
        lambda: torch.empty_strided((1,), ()),
        RuntimeError,
        "dimensionality of sizes (1) must match dimensionality of strides (0)",
    ),
    (
        lambda: torch.tensor_split(torch.tensor(1.0), 3),
        RuntimeError,
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
    ),
    (
        lambda: torch.tensor_split(x, torch.ones(1, 1)),
        RuntimeError,
        "tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float",
    ),
    (
        lambda: torch.broadcast_shapes((1, -12), (4, -1, 7)),
        ValueError,
        "Attempting to broadcast a dimension with negative length!",
    ),
    (lambda: torch.broadcast_shapes(1, 1, -12), ValueError, "Attempting to broadcast a dimension with negative length!"),
    (
        lambda: torch.ones(4)[1:3].view(torch.float64),
        RuntimeError,
        "self.storage_offset() must be divisible by 2 to view Float as Double (different element sizes), but got 1",
    ),
    (
        lambda: torch.ones(9).as_strided((2, 2), (3, 1)).view(torch.float64),
        RuntimeError,
        "self.stride(0) must be divisible by 2 to view Float as Double (different element sizes), but got 3",
    ),
    (lambda: torch.ones(1).uniform_(-1e40, 1), RuntimeError, "from is out of bounds for float"),
    (
        lambda: torch.cummax(x, 0, out=(torch.empty(0, dtype=torch.int16), torch.empty(0, dtype=torch.long))),
        RuntimeError,
        "expected scalar_type Float but found Short",
    ),
    (lambda: torch.logcumsumexp(x.double(), 0, out=x.clone()), RuntimeError, "expected scalar_type Double but found Float"),
    (lambda: torch.all(x, out=torch.empty(0)), RuntimeError, "all only supports bool tensor for result, got: Float"),
    (
        lambda: torch.unravel_index(torch.tensor(1), torch.tensor([2, 2])),
        TypeError,
        "expected 'shape' to be int or sequence of ints, but got <class 'torch.Tensor'>",
    ),
    (deleted, TypeError, "Tensor does not support deleting items"),
    (legacy_subclass, TypeError, "type 'torch.FloatTensor' is not an acceptable base type"),
    (
        lambda: torch.Tensor._make_subclass(Sub, 3),
        TypeError,
        "_make_subclass(): argument 'data' (position 2) must be Tensor, not int",
    ),
    (lambda: torch.Tensor._make_subclass(3, x), TypeError, "cls must be a type (got int)"),
    (lambda: torch._assert_async(torch.tensor(0)), RuntimeError, "Expected Tensor with single nonzero value, but got zero"),
    (lambda: torch.cond("x", abs, abs, (x,)), RuntimeError, "Expected pred to be bool or tensor, but got x."),
    (
        lambda: torch.cond(x, abs, abs, (x,)),
        RuntimeError,
        "Expected pred to be bool or single-element tensor, but got tensor([1., 1.]).",
    ),
    (lambda: torch.cond(torch.tensor(True), 1, abs, (x,)), RuntimeError, "Expect both branches to be callable."),
    (lambda: torch._utils._element_size(3), RuntimeError, "expected torch.dtype, but got <class 'int'>"),
    (
        lambda: x.set_(torch.ones(2, dtype=torch.float64)._typed_storage()),
        RuntimeError,
        "Expected a Storage of type float or an UntypedStorage, but got type Double for argument 1 'storage'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[message[:40] for _, _, message in ERRORS])
def test_errors(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


RESULTS = [
    (lambda: torch.block_diag(), torch.zeros(1, 0)),
    (lambda: torch.multinomial(torch.ones(0, 3), 2, replacement=True), torch.empty(0, 2, dtype=torch.long)),
    (lambda: torch.bernoulli(torch.ones(2), out=torch.zeros(2, dtype=torch.uint8)), torch.ones(2, dtype=torch.uint8)),
    (lambda: torch.all(matrix, keepdim=True), torch.tensor([[True]])),
    (lambda: torch.linspace(0, 3, 4, out=torch.zeros(2, 3).narrow(1, 1, 2)), torch.tensor([[0.0, 1], [2, 3]])),
    (lambda: torch.arange(4, out=torch.zeros(2, 2)), torch.tensor([[0.0, 1], [2, 3]])),
    (lambda: torch.empty(1).cauchy_(float("inf"), 0.5), torch.tensor([float("inf")])),
    (lambda: x.new(size=(2, 3)).zero_(), torch.zeros(2, 3)),
    (lambda: torch.tensor(x.untyped_storage(), dtype=torch.float32), x),
    (lambda: torch.cond(torch.tensor(False), torch.neg, torch.exp, (torch.zeros(2),)), x),
    (lambda: torch.zeros(2).map2_(x, x, lambda a, b, c: a + b + c), torch.tensor([2.0, 2.0])),
    (lambda: torch.randint(1, 2, (2,), out=torch.empty(())), x),
    (lambda: torch.randperm(1, out=torch.ones(3)), torch.zeros(1)),
    (lambda: torch.full((2,), 1j), torch.tensor([1j, 1j])),
    (lambda: torch.complex(x.half(), x.half()).real, x.half()),
    (lambda: torch.view_as_complex(torch.ones(2, 2).half()).imag, x.half()),
    (lambda: torch.empty(2, dtype=torch.complex32).fill_(1 + 2j).conj().imag, torch.tensor([-2.0, -2.0]).half()),
    (lambda: torch.empty(0, out=torch.ones(2, dtype=torch.int8)).resize_(0), torch.empty(0, dtype=torch.int8)),
]


@pytest.mark.parametrize(("call", "expected"), RESULTS)
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_results(call, expected):
    found = call()
    assert found.dtype is expected.dtype and found.shape == expected.shape and torch.equal(found, expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones_like(x, requires_grad=True),
        lambda: x.new_full((2,), 1.0, requires_grad=True),
        lambda: torch.rand_like(x, requires_grad=True),
        lambda: torch.zeros_like(torch.empty(2, device="meta"), requires_grad=True),
        lambda: torch.Tensor._make_subclass(Sub, x, True),
    ],
)
def test_tensors_like_others_may_require_grad(make):
    made = make()
    assert made.requires_grad and made.is_leaf


WARNINGS = [
    (
        lambda: torch.ones(2).random_(-(2**60), 2**60),
        "from is out of bounds [-(2^24), 2^24]. Due to precision limitations float",
    ),
    (
        lambda: matrix[torch.tensor([1, 0], dtype=torch.uint8)],
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
    ),
    (lambda: torch.cond(True, torch.neg, torch.exp, (x,)), "Pred is a Python constant. When used with torch.cond"),
    (
        lambda: torch.set_default_tensor_type(torch.FloatTensor),
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1",
    ),
    (
        lambda: torch.ones(2, dtype=torch.complex32),
        "ComplexHalf support is experimental and many operators don't support it yet.",
    ),
]


@pytest.mark.parametrize(("call", "message"), WARNINGS, ids=[message[:30] for _, message in WARNINGS])
def test_warnings(call, message):
    torch.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            call()
    finally:
        torch.set_warn_always(False)
    assert str(caught[0].message).startswith(message)


def test_warnings_of_kernels_tell_where_they_come_from():
    with pytest.warns(UserWarning, match=r"instead\. \(Triggered internally at mindtorch_v2/_ops/indexing/index\.py:\d+\.\)$"):
        _ = matrix[torch.tensor([1, 0], dtype=torch.uint8)]


def test_alerts_of_deterministic_algorithms():
    calls = [
        (lambda: torch.ones(2).put_(torch.tensor([0]), torch.tensor([1.0])), "put_"),
        (
            lambda: torch.nn.functional.max_unpool2d(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.long), 2),
            "max_unpooling2d_forward_out",
        ),
    ]
    try:
        for call, name in calls:
            torch.use_deterministic_algorithms(True)
            with pytest.raises(RuntimeError, match=f"{name} does not have a deterministic implementation, but you set"):
                call()
            torch.use_deterministic_algorithms(True, warn_only=True)
            with pytest.warns(UserWarning, match=f"{name} does not have a deterministic implementation, but you set"):
                call()
        torch.ones(2).put_(torch.tensor([0]), torch.tensor([1.0]), accumulate=True)
    finally:
        torch.use_deterministic_algorithms(False)


def test_small_questions():
    assert torch._utils._element_size(torch.complex64) == 8
    assert x.is_set_to(x.view(2)) and not x.is_set_to(x.clone())
    expanded = torch.ones(1, 3).expand(4, 3)
    assert [torch._debug_has_internal_overlap(t) for t in (matrix, expanded, torch.ones(4)[::2])] == [0, 1, 2]
    assert torch.backends.cpu.get_cpu_capability() == "DEFAULT" and torch.__config__._cxx_flags() == ""


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_half_complex_numbers_that_are_none():
    x = torch.tensor([complex(float("nan"), 1), complex(1, float("inf")), 2j]).to(torch.complex32)
    assert x.isnan().tolist() == [True, False, False] and x.isinf().tolist() == [False, True, False]
