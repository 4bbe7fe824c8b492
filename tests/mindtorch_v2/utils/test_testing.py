"""testing: assert_close's rules and words, and make_tensor."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.testing import assert_close, make_tensor

A = torch.ones(2)
_NAN = float("nan")
_FAR = (
    "Tensor-likes are not close!\n\nMismatched elements: 2 / 2 (100.0%)\n"
    "Greatest absolute difference: 1.0 at index (0,) (up to 1e-05 allowed)\n"
    "Greatest relative difference: 0.5 at index (0,) (up to 1.3e-06 allowed)"
)


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        (A, A + 1e-8, {}),
        (A, A.double(), dict(check_dtype=False)),
        (A, A + 0.05, dict(atol=0.1, rtol=0)),
        (1.0, 1.0 + 1e-9, {}),
        (A * _NAN, A * _NAN, dict(equal_nan=True)),
        ([A, 1], (A, 1), {}),
        ({"a": A, "b": 2}, {"b": 2, "a": A}, {}),
        (None, None, {}),
        (True, True, {}),
        (A.half(), A, dict(check_dtype=False)),
        (A.numpy(), A.numpy(), {}),
        (1, 1.0, dict(check_dtype=False)),
    ],
)
def test_close(actual, expected, options):
    assert_close(actual, expected, **options)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (A, A + 1, _FAR),
        ({"x": [A]}, {"x": [A + 1]}, _FAR + "\n\nThe failure occurred for item ['x'][0]"),
        (
            torch.tensor([1, 2]),
            torch.tensor([2, 2]),
            "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"
            "Greatest absolute difference: 1 at index (0,)\n"
            "Greatest relative difference: 0.5 at index (0,)",
        ),
        (
            torch.tensor(1.0),
            torch.tensor(2.0),
            "Scalars are not close!\n\nExpected 2.0 but got 1.0.\nAbsolute difference: 1.0 (up to 1e-05 allowed)\n"
            "Relative difference: 0.5 (up to 1.3e-06 allowed)",
        ),
        (1, 2, "Scalars are not equal!\n\nExpected 2 but got 1.\nAbsolute difference: 1\nRelative difference: 0.5"),
        (True, False, "Booleans mismatch: True is not False"),
        (1.0, 2, "The (d)types do not match: <class 'float'> != <class 'int'>."),
        (A, A.double(), "The values for attribute 'dtype' do not match: torch.float32 != torch.float64."),
        (A, torch.ones(3), "The values for attribute 'shape' do not match: torch.Size([2]) != torch.Size([3])."),
        ([A], [A, A], "The length of the sequences mismatch: 1 != 2"),
        (
            {"x": A},
            {"y": A},
            "The keys of the mappings do not match:\nMissing keys in the actual mapping: ['y']\n"
            "Additional keys in the actual mapping: ['x']",
        ),
        (None, 1, "None mismatch: None is not 1"),
    ],
)
def test_differences_are_described(actual, expected, message):
    with pytest.raises(AssertionError) as caught:
        assert_close(actual, expected)
    assert str(caught.value) == message


def test_nan_is_not_close_to_nan():
    with pytest.raises(AssertionError, match="Greatest absolute difference: nan"):
        assert_close(A * _NAN, A * _NAN)


def test_strides_and_messages():
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)'"):
        assert_close(torch.ones(2, 3), torch.ones(3, 2).t(), check_stride=True)
    with pytest.raises(AssertionError, match="^no$"):
        assert_close(A, A + 1, msg="no")
    with pytest.raises(AssertionError, match="^so: Tensor-likes"):
        assert_close(A, A + 1, msg=lambda text: "so: " + text)


def test_misuse():
    with pytest.raises(ValueError, match="got no atol"):
        assert_close(A, A, rtol=1)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close("a", "a")
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close(A, [1.0, 1.0])


@pytest.mark.parametrize("kind", ["float32", "bfloat16", "float64", "int64", "uint8", "bool", "complex64"])
def test_make_tensor(kind):
    dtype = getattr(torch, kind)
    made = make_tensor((20, 3), dtype=dtype, device="cpu")
    assert (made.shape, made.dtype) == ((20, 3), dtype)


def test_make_tensor_options():
    made = make_tensor(50, dtype=torch.float32, device="cpu", low=2, high=3, requires_grad=True)
    assert bool(((made >= 2) & (made < 3)).all())
    assert made.requires_grad
    assert not make_tensor((4, 4), dtype=torch.float32, device="cpu", noncontiguous=True).is_contiguous()
    assert bool((make_tensor(200, dtype=torch.int64, device="cpu", low=0, high=2, exclude_zero=True) != 0).all())
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        make_tensor(3, dtype=torch.float32, device="cpu", low=5, high=1)
