"""Kernels with a path of their own for small or large arrays: every size gives what the plain formula gives."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mindtorch_v2 as torch
import mindtorch_v2.nn.functional as F
from mindtorch_v2._ops.creation.copy import row_major

INF, NAN = float("inf"), float("nan")
# Rows that are tame, that overflow or vanish as exponentials, and that are no numbers.
ROWS = {
    "tame": [0.5, -1.0, 31.0, 2.0],
    "edge": [32.0, -32.0, 31.999, 0.0],
    "large": [88.0, 89.0, 87.5, 88.5],
    "huge": [1e30, 1.0, 1e30, -1e30],
    "tiny": [-104.0, -103.0, -120.0, -200.0],
    "masked": [-INF, 0.0, 1.0, -INF],
    "infinite": [INF, 0.0, 1.0, 2.0],
    "nan": [NAN, 0.0, 1.0, 2.0],
}


def plain_log_softmax(x):
    x = x.astype(np.float64)
    centered = x - x.max(-1, keepdims=True)
    return centered - np.log(np.exp(centered).sum(-1, keepdims=True))


@pytest.mark.parametrize("count", [1, 3, 100])
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_softmax_of_any_row(name, count):
    x = np.array([ROWS["tame"]] * count + [ROWS[name]], np.float32)
    want = plain_log_softmax(x)
    np.testing.assert_allclose(F.log_softmax(torch.from_numpy(x), -1).numpy(), want, rtol=1e-5, atol=4e-6)
    np.testing.assert_allclose(F.softmax(torch.from_numpy(x), 1).numpy(), np.exp(want), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(0, 4), (1, 1), (4, 4), (2, 80), (70, 60)])
def test_softmax_of_any_shape(shape):
    x = np.linspace(-3, 3, math.prod(shape), dtype=np.float32).reshape(shape)
    for given in (x, np.asfortranarray(x)):
        made = F.softmax(torch.from_numpy(given), -1).numpy()
        assert made.shape == shape
        if made.size:
            np.testing.assert_allclose(made, np.exp(plain_log_softmax(x)), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 3), (4, 4), (8, 4), (9, 4), (80, 3)])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_cross_entropy_of_any_size(shape, reduction):
    x = torch.linspace(-2, 2, math.prod(shape)).view(shape)
    target = torch.arange(shape[0]) % shape[1]
    rows = plain_log_softmax(x.numpy())[np.arange(shape[0]), target.numpy()]
    want = -rows.mean() if reduction == "mean" else -rows.sum()
    assert F.cross_entropy(x, target, reduction=reduction).item() == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("count", [4, 40])
@pytest.mark.parametrize("wrong", [3, -1])
def test_cross_entropy_tells_of_a_class_out_of_bounds(count, wrong):
    target = torch.zeros(count, dtype=torch.int64)
    target[1] = wrong
    with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds"):
        F.cross_entropy(torch.zeros(count, 3), target)


@pytest.mark.parametrize("count", [4, 40])
@pytest.mark.parametrize("ignored", [-100, 1])
def test_cross_entropy_leaves_out_what_is_ignored(count, ignored):
    x = torch.linspace(-2, 2, count * 3).view(count, 3)
    target = torch.arange(count) % 2
    target[0] = ignored
    kept = target != ignored
    assert F.cross_entropy(x, target, ignore_index=ignored).item() == pytest.approx(
        F.cross_entropy(x[kept], target[kept]).item(), rel=1e-6
    )


def test_cross_entropy_of_nothing_and_of_one_sample():
    assert math.isnan(F.cross_entropy(torch.zeros(0, 3), torch.zeros(0, dtype=torch.int64)).item())
    assert F.cross_entropy(torch.zeros(4), torch.tensor(1)).item() == pytest.approx(math.log(4))


def test_total_weight_is_memory_of_its_own():
    x, target = torch.zeros(2, 3), torch.tensor([0, 1])
    first = torch.ops.aten.nll_loss_forward(x, target, None, 1, -100)[1]
    first.add_(1)
    assert torch.ops.aten.nll_loss_forward(x, target, None, 1, -100)[1].item() == 2


@pytest.mark.parametrize("count", [1, 64, 65, 70_000])
def test_gelu_and_erf_of_any_size(count):
    x = np.linspace(-5, 5, count, dtype=np.float32)
    erf = np.array([math.erf(v) for v in x.tolist()])
    cdf = np.array([0.5 * math.erfc(-v * math.sqrt(0.5)) for v in x.tolist()])
    np.testing.assert_allclose(torch.erf(torch.from_numpy(x)).numpy(), erf, rtol=1e-6, atol=2e-7)
    np.testing.assert_allclose(F.gelu(torch.from_numpy(x)).numpy(), x * cdf, rtol=1e-6, atol=1e-6)


def test_gelu_of_no_numbers_and_no_dims():
    made = F.gelu(torch.tensor([INF, NAN, 0.0]))
    assert made[0].item() == INF and math.isnan(made[1].item()) and made[2].item() == 0
    assert F.gelu(torch.tensor(1.0)).shape == () and F.gelu(torch.zeros(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("size", [0, 1, 64, 65_535, 65_536, 70_001])
def test_sum_of_any_size(size):
    x = np.linspace(0, 1, size, dtype=np.float32)
    assert torch.from_numpy(x).sum().item() == pytest.approx(x.astype(np.float64).sum(), rel=1e-6)


def test_large_sum_of_infinities_and_of_a_strided_view():
    x = torch.ones(300, 300)
    assert x.t()[::2].sum().item() == 45_000
    x[5, 7] = INF
    assert x.sum().item() == INF
    x[6, 7] = -INF
    assert math.isnan(x.sum().item())


@pytest.mark.parametrize("shape", [(3, 4), (256, 256), (300, 512), (512, 300), (3, 256, 128), (2, 3, 128, 128)])
@pytest.mark.parametrize("kind", ["float32", "float64", "int8", "complex128"])
def test_transposed_copy_of_any_shape(shape, kind):
    array = np.arange(math.prod(shape)).astype(kind).reshape(shape).swapaxes(-1, -2)
    made = row_major(array)
    assert made.flags.c_contiguous and made.base is None and (made == array).all()


def test_transposed_copy_of_an_expanded_and_of_a_reversed_matrix():
    line = np.arange(512, dtype=np.float32)
    for array in (np.broadcast_to(line[:, None], (512, 512)), np.ones((512, 512), np.float32)[::-1].T):
        assert (row_major(array) == array).all()


@pytest.mark.parametrize("size", [(4, 4), (-1,), (2, -1), (2, 2, 2, 2)])
def test_view_gradient_of_an_expanded_gradient(size):
    x = torch.ones(4, 4, requires_grad=True)
    (x.view(size) * 1).view(size).sum().backward()
    assert x.grad.shape == (4, 4) and (x.grad == 1).all()


@pytest.mark.parametrize(
    "size, message",
    [
        ((5,), "shape '\\[5\\]' is invalid"),
        ((-2, 8), "invalid shape dimension -2"),
        ((-1, -1), "only one dimension can be inferred"),
    ],
)
def test_reshape_of_what_does_not_lie_in_order_checks_its_size(size, message):
    with pytest.raises(RuntimeError, match=message):
        torch.zeros(4, 4).t().reshape(size)


def test_reshape_alias_takes_any_strides():
    x = torch.arange(12.0).view(3, 4)
    made = torch.ops.aten._reshape_alias(x.t(), (2, 3), (1, 4))
    assert made.stride() == (1, 4) and made.tolist() == [[0, 4, 8], [1, 5, 9]]
    made += 1
    assert x[0, 0].item() == 1


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(4, 4), (1, 1), (50, 70)])
def test_layer_norm_gradients_with_any_inputs_that_need_them(shape, affine):
    x = torch.linspace(-1, 2, math.prod(shape)).view(shape).requires_grad_()
    weight = torch.full(shape[1:], 1.5, requires_grad=True) if affine else None
    made = F.layer_norm(x, shape[1:], weight)
    rows = x.detach().numpy().astype(np.float64)
    want = (rows - rows.mean(1, keepdims=True)) / np.sqrt(rows.var(1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(made.detach().numpy(), want * (1.5 if affine else 1), rtol=1e-4, atol=1e-4)
    made.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.zeros(shape), atol=1e-3)
    assert not affine or weight.grad.shape == shape[1:]


def test_only_tensors_of_a_list_that_require_grad_get_one():
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    made = torch.cat((y, x))
    assert [edge[0] is None for edge in made.grad_fn.next_functions] == [True, False]
    made.sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad is None
    assert not torch.cat((y, y)).requires_grad
