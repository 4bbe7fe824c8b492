"""Losses: values, first and second derivatives, and errors as torch has them."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("loss"))
def test_loss_like_torch(expression):
    network.check("loss", expression)


@pytest.mark.parametrize("expression", network.expressions("loss_error"))
def test_loss_error_like_torch(expression):
    network.check("loss_error", expression)


# ---------------------------------------------------------------- what PyTorch 2.13 answered

F = torch.nn.functional
_LONG = torch.int64
zeros = torch.zeros


@pytest.mark.parametrize("loss", [F.multi_margin_loss, F.multilabel_margin_loss])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_number_is_a_sample_of_one_class(loss, reduction):
    x = torch.tensor(0.5, requires_grad=True)
    made = loss(x, torch.tensor(0), reduction=reduction)
    assert made.shape == () and made.item() == 0.0
    assert torch.autograd.grad(made, x)[0].item() == 0.0


_EMPTY = "Expected non-empty vector or matrix with optional 0-dim batch size, but got: "
_TARGET = (
    "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch size). Expected "
)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: F.multi_margin_loss(zeros(0), zeros(5)), _EMPTY + "[0]"),
        (lambda: F.multi_margin_loss(zeros(5, 0), zeros(5)), _EMPTY + "[5, 0]"),
        (
            lambda: F.multi_margin_loss(zeros(5, 4), zeros(5, 4)),
            _TARGET + "target size [5], but got [5, 4]. Input has shape [5, 4].",
        ),
        (
            lambda: F.multi_margin_loss(torch.tensor(0.5), zeros(2, dtype=_LONG)),
            _TARGET + "target size [1], but got [2]. Input has shape [].",
        ),
        (
            lambda: F.multi_margin_loss(zeros(5, 4), zeros(5), weight=zeros(5)),
            "inconsistent weight size, expected 4 but got [5]",
        ),
        (lambda: F.multi_margin_loss(zeros(5, 4), zeros(5)), "expected scalar type Long but found Float"),
        (lambda: F.multi_margin_loss(zeros(2, 4), zeros(2, dtype=_LONG) + 4), "target out of range"),
        (lambda: F.multilabel_margin_loss(zeros(0), zeros(0)), _EMPTY + "[0]"),
        (lambda: F.multilabel_margin_loss(zeros(2, 3), zeros(2, 3, dtype=_LONG) + 3), "argument #2 'target' is out of range"),
        (
            lambda: F.multilabel_margin_loss(zeros(2, 3), zeros(2, 2, dtype=_LONG)),
            "inconsistent target size: [2, 2] for input of size: [2, 3]",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(2, 3, 3), zeros(2, 3), zeros(3, 2)),
            "expected input with dimensionality 1 or 2, got 3",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(2, 3), zeros(2), zeros(2, 2)),
            "expected linear_weight with dimensionality at least 2, got 1",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(2, 3), zeros(2, 4), zeros(2, 2)),
            "expected equal input and linear_weight last dimensions (in_features), got 3 and 4, respectively",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(2, 3), zeros(2, 3), zeros(2, 2), ignore_index=0),
            "ignore_index cannot be specified when target contains probabilities",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(3), zeros(2, 4, 3), zeros(2, 4)),
            "K-dimensional loss defined by linear_weight shape (2, 4, 3) requires batched input, (N, 3), got "
            "unbatched input with "
            "shape (3,)",
        ),
        (
            lambda: F.linear_cross_entropy(zeros(2, 3), zeros(2, 3), zeros(2), linear_bias=zeros(3)),
            "expected linear_bias shape (2,), got (3,)",
        ),
    ],
)
def test_losses_that_are_refused(call, words):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value).split("\n")[0] == words


def test_options_of_a_linear_cross_entropy_live_where_saved_ones_say():
    options = torch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)
    assert type(options).__module__.endswith("nn.modules.linear_cross_entropy_options")
    with pytest.raises(AttributeError):
        options.batch_chunk_size = 3


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_a_loss_of_zeros_is_not_minus_zero(reduction):
    loss = torch.nn.functional.nll_loss(torch.zeros(2, 3), torch.tensor([0, 1]), reduction=reduction)
    assert str(loss) == "tensor(0.)"
