"""Activations and softmax: values, derivatives and errors as torch has them."""

from __future__ import annotations

import math

import network
import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2._ops._support.elementwise import where_true
from mindtorch_v2._ops._support.erf import erf32, reciprocal_normal_cdf32

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("activation"))
def test_activation_like_torch(expression):
    network.check("activation", expression)


@pytest.mark.parametrize("expression", network.expressions("activation_error"))
def test_activation_error_like_torch(expression):
    network.check("activation_error", expression)


def test_erf_is_near_the_truth():
    x = np.linspace(-6, 6, 20001).astype(np.float32)
    truth = np.array([math.erf(v) for v in x.astype(float)])
    assert np.abs(erf32(x) - truth).max() < 5e-7
    below = np.array([0.5 * (1 + math.erf(v / math.sqrt(2))) for v in x.astype(float)])
    assert np.abs(1 / reciprocal_normal_cdf32(x) - below).max() < 3e-7


@pytest.mark.parametrize("count", [10, 5000])
@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_masks_stop_what_is_not_finite(count, kind):
    values = np.full(count, np.inf, kind)
    values[::3] = np.nan
    values[1::3] = 2
    mask = np.arange(count) % 3 == 1
    assert np.array_equal(where_true(mask, values), np.where(mask, 2, 0).astype(kind))


@pytest.mark.parametrize("size", [8, 5000])
def test_relu_stops_infinite_gradients(size):
    x = torch.cat([-torch.ones(size), torch.ones(size)]).requires_grad_()
    torch.sqrt(torch.relu(x)).sum().backward()
    assert x.grad[:size].tolist() == [0.0] * size and x.grad[size:].tolist() == [0.5] * size


@pytest.mark.parametrize("columns", [5, 3000])
def test_softmax_of_few_and_many_elements(columns):
    x = torch.sin(torch.arange(4.0 * columns)).view(4, columns) * 30
    for function in (torch.softmax, torch.log_softmax):
        assert torch.allclose(function(x, 1), function(x.double(), 1).float(), atol=1e-5)
        assert torch.allclose(function(x, 1), function(x.t(), 0).t(), atol=1e-5)


def test_rows_far_apart_do_not_disturb_each_other():
    x = torch.tensor([[1000.0, 1000.0], [-1000.0, -1000.0]])
    assert torch.softmax(x, 1).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_random_slopes_lie_between_the_bounds():
    torch.manual_seed(0)
    x = -torch.ones(1000, requires_grad=True)
    y = torch.nn.functional.rrelu(x, 0.1, 0.3, training=True)
    assert -0.3 <= y.min().item() < -0.25 and -0.15 < y.max().item() <= -0.1


inf, nan = float("inf"), float("nan")
_BOUNDS = "Lower bound should be less than or equal to the upper bound"


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ((0.3, 0.1), _BOUNDS),
        ((inf, inf), "rrelu: lower bound must be finite, got inf"),
        ((0.1, nan), "rrelu: upper bound must be finite, got nan"),
    ],
)
def test_bounds_of_random_slopes(bounds, words, training):
    with pytest.raises(RuntimeError) as raised:
        torch.nn.functional.rrelu(torch.zeros(2), *bounds, training)
    assert str(raised.value) == words
    if words == _BOUNDS:
        with pytest.raises(RuntimeError, match=_BOUNDS):
            torch.nn.functional.rrelu_(torch.zeros(2), *bounds, training)


def test_noise_of_another_shape():
    with pytest.raises(RuntimeError, match="noise tensor shape must match self tensor shape"):
        torch.ops.aten.rrelu_with_noise(torch.zeros(2), torch.zeros(3), 0.1, 0.3, True)


@pytest.mark.parametrize(
    ("kind", "lambd", "words"),
    [
        (torch.float32, -0.5, "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found -0.5"),
        (torch.float32, 1e39, "lambda must be in range [0, 3.40282e+38] for input dtype Float, but found 1e+39"),
        (torch.float64, nan, "lambda must be in range [0, 1.79769e+308] for input dtype Double, but found nan"),
        (torch.float16, 70000.0, "lambda must be in range [0, 65504] for input dtype Half, but found 70000"),
        (torch.bfloat16, inf, "lambda must be in range [0, 3.38953e+38] for input dtype BFloat16, but found inf"),
    ],
)
def test_range_of_lambda(kind, lambd, words):
    with pytest.raises(RuntimeError) as raised:
        torch.nn.functional.softshrink(torch.ones(1, dtype=kind), lambd)
    assert str(raised.value) == words
    assert torch.nn.functional.softshrink(torch.ones(1, dtype=kind), 60000.0).item() == 0.0


@pytest.mark.parametrize(
    ("shape", "mask", "mask_type", "words"),
    [
        ((2, 3), (3,), None, "For mask_type == 2 mask shape should match input shape"),
        ((2, 2, 3, 3), (2, 3), 0, "For mask_type == 0 mask shape should be (L, L)"),
        ((2, 2, 3, 3), (3, 3), 1, "For mask_type == 1 mask shape should be (B, L)"),
        ((2, 2, 3, 3), (3, 3), 5, "Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)"),
    ],
)
def test_masks_of_another_shape(shape, mask, mask_type, words):
    with pytest.raises(RuntimeError) as raised:
        torch._masked_softmax(torch.zeros(shape), torch.zeros(mask, dtype=torch.bool), -1, mask_type)
    assert str(raised.value) == words


@pytest.mark.parametrize(
    ("grad", "output", "mask", "error", "words"),
    [
        (torch.ones(()), torch.ones(1, 3), torch.ones(1, 3), RuntimeError, "Mask shape should match grad shape"),
        (torch.ones(1, 3), torch.ones(1, 3), torch.ones(1, 3), RuntimeError, "Mask should be a boolean tensor"),
        (
            torch.ones(1, 3),
            torch.ones(1, 3).half(),
            torch.ones(1, 3) > 0,
            RuntimeError,
            "expected scalar type Float but found Half",
        ),
        (
            torch.ones(1).cfloat(),
            torch.ones(1).cfloat(),
            torch.ones(1) > 0,
            NotImplementedError,
            "not implemented for 'ComplexFloat'",
        ),
    ],
)
def test_refusals_of_masked_softmax_backward(grad, output, mask, error, words):
    with pytest.raises(error, match=words):
        torch.ops.aten._masked_softmax_backward(grad, output, mask)


@pytest.mark.parametrize(("mask_type", "mask"), [(0, (3, 3)), (1, (2, 3)), (2, (2, 2, 3, 3))])
def test_gradient_of_masked_softmax_with_every_kind_of_mask(mask_type, mask):
    x = torch.arange(36.0, dtype=torch.float64).reshape(2, 2, 3, 3).sin().requires_grad_()
    hidden = torch.zeros(mask, dtype=torch.bool)
    hidden[..., 0] = True
    assert torch.autograd.gradcheck(lambda x: torch._masked_softmax(x, hidden, -1, mask_type), (x,))


def test_masked_softmax_of_integers():
    with pytest.raises(NotImplementedError, match="\"masked_softmax\" not implemented for 'Long'"):
        torch._masked_softmax(torch.ones(2, 3, dtype=torch.int64), torch.zeros(2, 3, dtype=torch.bool), 1)


def test_thresholds_that_half_precision_does_not_have_are_not_rounded():
    x = torch.tensor([0.10009765625, 0.0995], dtype=torch.bfloat16, requires_grad=True)  # 0.1 rounds to the first
    torch.nn.functional.threshold(x, 0.1, 20).sum().backward()
    assert x.grad.tolist() == [1, 0]


@pytest.mark.parametrize(("name", "word"), [("elu_", "elu"), ("celu_", "elu"), ("leaky_relu_", "leakyReLu")])
def test_in_place_slopes_that_cannot_be_undone(name, word):
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    made = getattr(torch.nn.functional, name)(x.clone(), -2.0)
    message = (
        f"^In-place {word} backward calculation is triggered with a negative slope .* please call out-of-place version instead"
    )
    with pytest.raises(RuntimeError, match=message):
        made.sum().backward()
