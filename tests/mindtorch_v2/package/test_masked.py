"""torch.masked: what PyTorch 2.13 answered."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import masked

WHOLE = torch.tensor([[-3, -2, -1], [0, 1, 2]])
X = WHOLE.float()
MASK = torch.tensor([[True, False, True], [False, False, False]])
FULLER = torch.tensor([[True, False, True], [True, True, True]])
ROW = torch.tensor([True, False, True])
LOWEST, HIGHEST = -9223372036854775808, 9223372036854775807


def agrees(made: torch.Tensor, dtype: torch.dtype, expected: Any) -> None:
    assert made.dtype is dtype
    wanted = torch.tensor(expected, dtype=dtype)
    assert made.shape == wanted.shape
    if dtype.is_floating_point or dtype.is_complex:
        assert torch.allclose(made, wanted, rtol=1e-4, atol=1e-6, equal_nan=True), made
    else:
        assert made.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    ("name", "integers", "floats", "all_of_them", "by_row"),
    [
        ("sum", [-4, 0], [-4, 0], -4, [-4, 2]),
        ("prod", [3, 1], [3, 1], 3, [3, 0]),
        ("amax", [-1, LOWEST], [-1, -inf], -1, [-1, 2]),
        ("amin", [-3, HIGHEST], [-3, inf], -3, [-3, 0]),
        ("argmax", [2, 0], [2, 0], 2, [2, 2]),
        ("argmin", [0, 0], [0, 0], 0, [0, 0]),
        ("mean", None, [-2, nan], -2, [-2, 1]),
        ("median", None, [-3, nan], None, [-3, 0]),
        ("var", None, [2, nan], 2, [2, 2]),
        ("std", None, [2**0.5, nan], 2**0.5, [2**0.5, 2**0.5]),
        ("logsumexp", [0, LOWEST], [-0.8731, -inf], -0.8731, [-0.8731, 2.1269]),
        ("norm", None, [10**0.5, 0], 10**0.5, [10**0.5, 2]),
    ],
)
def test_reductions(name: str, integers: Any, floats: Any, all_of_them: Any, by_row: Any) -> None:
    function = getattr(masked, name)
    if integers is not None:
        agrees(function(WHOLE, dim=1, mask=MASK), torch.int64, integers)
    agrees(function(X, dim=1, mask=MASK), torch.float32, floats)
    agrees(function(X, dim=-1, mask=MASK.float()), torch.float32, floats)  # any mask is taken as bools
    agrees(function(X, dim=1, keepdim=True, dtype=torch.float64, mask=MASK), torch.float64, [[v] for v in floats])
    if all_of_them is not None:
        agrees(function(X, mask=MASK), torch.float32, all_of_them)
    agrees(function(X, dim=1, mask=ROW), torch.float32, by_row)
    assert function(X, dim=1).tolist() == function(X, dim=1, mask=torch.tensor(True)).tolist()


@pytest.mark.parametrize(
    ("name", "integers", "floats", "down"),
    [
        ("cumsum", [[-3, -3, -4], [0, 0, 0]], [[-3, -3, -4], [0, 0, 0]], [[-3, 0, -1], [-3, 0, -1]]),
        ("cumprod", [[-3, -3, 3], [1, 1, 1]], [[-3, -3, 3], [1, 1, 1]], [[-3, 1, -1], [-3, 1, -1]]),
        ("softmax", None, [[0.1192, 0, 0.8808], [nan] * 3], [[1, nan, 1], [0, nan, 0]]),
        ("softmin", None, [[0.8808, 0, 0.1192], [nan] * 3], [[1, nan, 1], [0, nan, 0]]),
        ("log_softmax", None, [[-2.126928, -inf, -0.126928], [nan] * 3], [[0, nan, 0], [-inf, nan, -inf]]),
    ],
)
def test_along_a_dim(name: str, integers: Any, floats: Any, down: Any) -> None:
    function = getattr(masked, name)
    if integers is not None:
        agrees(function(WHOLE, 1, mask=MASK), torch.int64, integers)
        assert function(WHOLE.to(torch.int8), 1).dtype is torch.int8
    made = function(X, 1, mask=MASK)
    assert made.dtype is torch.float32
    assert torch.allclose(made, torch.tensor(floats, dtype=torch.float32), rtol=1e-3, equal_nan=True)
    agrees(function(X, 0, dtype=torch.float64, mask=MASK), torch.float64, down)
    assert torch.equal(function(X, 1), function(X, 1, mask=torch.ones(2, 3, dtype=torch.bool)))


@pytest.mark.parametrize(
    ("order", "lengths", "normal"),
    [
        (2.0, [10**0.5, 0], [-0.948683, 0, -0.316228]),
        (1, [4, 0], [-0.75, 0, -0.25]),
        (0, [2, 0], [-1.5, 0, -0.5]),
        (inf, [3, 0], [-1, 0, -1 / 3]),
        (-inf, [1, inf], [-3, 0, -1]),
        (0.5, [7.464102, 0], [-0.401924, 0, -0.133975]),
    ],
)
def test_norms(order: float, lengths: list[float], normal: list[float]) -> None:
    agrees(masked.norm(X, order, 1, mask=MASK), torch.float32, lengths)
    agrees(masked.normalize(X, order, 1, mask=MASK), torch.float32, [normal, [0, 0, 0]])


def test_a_short_vector_is_divided_by_eps() -> None:
    agrees(masked.normalize(torch.tensor([3.0, 4.0]), 2.0, 0, eps=10.0), torch.float32, [0.3, 0.4])
    agrees(masked.norm(X.to(torch.complex64), 2.0, 1, mask=MASK), torch.float32, [10**0.5, 0])


@pytest.mark.parametrize(
    ("kwargs", "dtype", "expected"),
    [
        ({"unbiased": True, "mask": FULLER}, torch.float32, [2, 1]),
        ({"unbiased": False, "mask": FULLER}, torch.float32, [1, 2 / 3]),
        ({"correction": 0.5, "mask": FULLER}, torch.float32, [4 / 3, 0.8]),
        ({"correction": 2, "mask": FULLER}, torch.float32, [inf, 2]),
        ({"correction": 5, "mask": FULLER}, torch.float32, [inf, inf]),
        ({"correction": 0}, torch.float32, [2 / 3, 2 / 3]),
        ({"dtype": torch.int64}, torch.int64, [1, 1]),
    ],
)
def test_variances(kwargs: dict[str, Any], dtype: torch.dtype, expected: list[float]) -> None:
    for x in (X, WHOLE):
        agrees(masked.var(x, 1, **kwargs), dtype, expected)
    if dtype.is_floating_point:
        agrees(masked.std(X, 1, **kwargs), dtype, [v**0.5 for v in expected])


def test_variances_of_complex_numbers_are_complex() -> None:
    agrees(masked.var(X.to(torch.complex64), 1, mask=FULLER), torch.complex64, [2, 1])


def test_medians_of_integers() -> None:
    agrees(masked.median(WHOLE, 1, mask=FULLER), torch.int64, [-3, 1])
    agrees(masked.median(WHOLE, 1), torch.int64, [-2, 1])
    agrees(masked.median(X.bool(), 1, mask=FULLER), torch.bool, [True, True])
    agrees(masked.median(torch.tensor([[2**53, 5, 2**53]]), 1, mask=ROW), torch.int64, [2**53])
    with pytest.raises(ValueError, match="expects no fully masked out rows if dtype is not floating point"):
        masked.median(WHOLE, 1, mask=MASK)


def test_small_integers_and_bools_are_added_up_as_int64() -> None:
    agrees(masked.sum(WHOLE.to(torch.uint8), 1, mask=FULLER), torch.int64, [508, 3])
    agrees(masked.sum(X.bool(), 1, mask=MASK), torch.int64, [2, 0])
    agrees(masked.prod(X.bool()), torch.int64, 0)
    agrees(masked.sum(X, 1, dtype=torch.int64, mask=MASK), torch.int64, [-4, 0])


def test_two_masks() -> None:
    agrees(masked.logaddexp(X, X + 1, input_mask=MASK, other_mask=~MASK), torch.float32, [[-3, -1, -1], [1, 2, 3]])
    agrees(
        masked.logaddexp(X, X, dtype=torch.float64, input_mask=MASK, other_mask=MASK),
        torch.float64,
        [[-2.306853, -inf, -0.306853], [-inf] * 3],
    )
    assert torch.equal(masked.logaddexp(X, X + 1), torch.logaddexp(X, X + 1))


def test_dims() -> None:
    agrees(masked.sum(X, (0, 1), mask=MASK), torch.float32, -4)
    agrees(masked.sum(X, (), mask=MASK), torch.float32, -4)
    agrees(masked.prod(X, (0, -1), keepdim=True, mask=MASK), torch.float32, [[3]])
    agrees(masked.argmax(X, keepdim=True, mask=MASK), torch.float32, [[2]])
    agrees(masked.mean(torch.tensor(2.0), 0, mask=torch.tensor(False)), torch.float32, nan)
    agrees(masked.amax(torch.tensor(2.0), mask=torch.tensor(True)), torch.float32, 2)


def test_a_sparse_mask() -> None:
    agrees(masked.sum(X, 1, mask=MASK.to_sparse()), torch.float32, [-4, 0])


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda x: masked.sum(x, 1, mask=MASK), [[1, 0, 1], [0, 0, 0]]),
        (lambda x: masked.prod(x, 1, mask=MASK), [[-1, 0, -3], [0, 0, 0]]),
        (lambda x: masked.amax(x, 1, mask=FULLER), [[0, 0, 1], [0, 0, 1]]),
        (lambda x: masked.mean(x, 1, mask=FULLER), [[0.5, 0, 0.5], [1 / 3, 1 / 3, 1 / 3]]),
        (lambda x: masked.var(x, 1, mask=FULLER), [[-2, 0, 2], [-1, 0, 1]]),
        (lambda x: masked.median(x, 1, mask=FULLER), [[1, 0, 0], [0, 1, 0]]),
        (lambda x: masked.logsumexp(x, 1, mask=FULLER), [[0.119203, 0, 0.880797], [0.090031, 0.244728, 0.665241]]),
        (lambda x: masked.softmax(x, 1, mask=FULLER)[:, 0], [[0.104994, 0, -0.104994], [0.081925, -0.022033, -0.059892]]),
    ],
)
def test_no_gradient_reaches_what_is_masked_out(call: Any, expected: Any) -> None:
    x = X.clone().requires_grad_()
    call(x).sum().backward()
    agrees(x.grad, torch.float32, expected)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: masked.sum(X, 1, mask=torch.ones(2, 2, 3)), IndexError, "got mask dimensionality higher than of the input"),
        (lambda: masked.sum(X, 1, mask=torch.ones(3, 1)), RuntimeError, r"expanded size of the tensor \(2\) must match"),
        (lambda: masked.sum(X, 5), IndexError, r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 5\)"),
        (lambda: masked.sum(X, (0, 0)), RuntimeError, "dim=0 appears multiple times in the list of dims"),
        (lambda: masked.softmax(X, 2), IndexError, "Dimension out of range"),
        (lambda: masked.amax(X.bool(), 1, mask=MASK), NotImplementedError, "identity of amax on torch.bool input"),
        (lambda: masked.softmin(X.bool(), 1, mask=MASK), NotImplementedError, "identity of amin on torch.bool input"),
        (lambda: masked.mean(WHOLE, 1), ValueError, "Input dtype must be either a floating point .* Got: torch.int64"),
        (lambda: masked.mean(X, 1, dtype=torch.int64), ValueError, "Optional dtype must be either a floating point or complex"),
        (lambda: masked.var(X, 1, True, correction=0), AssertionError, "Only one of unbiased and correction may be given"),
        (lambda: masked.var(X.bool(), 1), RuntimeError, "Subtraction, the `-` operator, with a bool tensor is not supported"),
        (lambda: masked.norm(WHOLE, 2.0, 1), RuntimeError, "Expected a floating point or complex tensor as input. Got Long"),
        (lambda: masked.cumsum(X.bool(), 0), NotImplementedError, "\"cumsum_out_cpu\" not implemented for 'Bool'"),
        (
            lambda: masked.logaddexp(WHOLE, WHOLE, input_mask=MASK),
            NotImplementedError,
            "logaddexp_cpu.* implemented for 'Long'",
        ),
        (lambda: masked.softmax(X.to_sparse(), 1), ValueError, "masked softmax expects strided tensor"),
        (lambda: masked.sum(X.to_sparse(), 1), NotImplementedError, "torch.masked.sum of torch.sparse_coo tensors"),
    ],
)
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
