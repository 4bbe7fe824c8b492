"""Normalization: values, first and second derivatives, and errors as torch has them."""

from __future__ import annotations

import network
import pytest

import mindtorch_v2 as torch

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("expression", network.expressions("norm"))
def test_norm_like_torch(expression):
    network.check("norm", expression)


@pytest.mark.parametrize("expression", network.expressions("norm_error"))
def test_norm_error_like_torch(expression):
    network.check("norm_error", expression)


def test_running_statistics_move_by_the_momentum():
    mean, variance = torch.zeros(2), torch.ones(2)
    x = torch.tensor([[1.0, 10.0], [3.0, 30.0]])
    torch.nn.functional.batch_norm(x, mean, variance, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 10.0]
    assert variance.tolist() == [0.5 + 0.5 * 2, 0.5 + 0.5 * 200]


@pytest.mark.parametrize("shape", [(5, 40, 31, 33), (2, 3, 300, 301), (9, 30_000), (1, 4, 70_000)])
def test_batch_norm_by_blocks_of_channels_is_that_of_each_channel(shape):
    x, w, b = (torch.randn(*size).requires_grad_() for size in (shape, shape[1:2], shape[1:2]))
    g = torch.randn(*shape)
    normal = torch.nn.functional.batch_norm(x, None, None, w, b, training=True)
    normal.backward(g)
    for channel in (0, shape[1] // 2, shape[1] - 1):
        one = slice(channel, channel + 1)
        leaves = [t.detach()[part].contiguous().requires_grad_() for t, part in ((x, (slice(None), one)), (w, one), (b, one))]
        alone = torch.nn.functional.batch_norm(leaves[0], None, None, *leaves[1:], training=True)
        alone.backward(g[:, one])
        torch.testing.assert_close(normal[:, one], alone, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(x.grad[:, one], leaves[0].grad, rtol=1e-4, atol=1e-4)
        for whole, part in zip((w, b), leaves[1:], strict=True):
            torch.testing.assert_close(whole.grad[one], part.grad, rtol=1e-3, atol=1e-2)


def test_half_precision_is_normalised_in_float32():
    x = torch.arange(8.0).view(2, 4) * 100
    made = torch.nn.functional.layer_norm(x.bfloat16(), (4,))
    assert made.dtype == torch.bfloat16
    assert torch.allclose(made.float(), torch.nn.functional.layer_norm(x, (4,)), atol=1e-2)


@pytest.mark.parametrize("rows", [3, 3000])
def test_small_and_large_inputs_take_different_ways_to_the_same_result(rows):
    x = torch.sin(torch.arange(rows * 48.0)).view(rows, 48)
    weight, bias = torch.linspace(0.5, 2, 48), torch.linspace(-1, 1, 48)
    plain = torch.nn.functional.layer_norm(x, (48,))
    assert torch.allclose(torch.nn.functional.layer_norm(x, (48,), weight, bias), plain * weight + bias, atol=1e-5)
    assert torch.allclose(plain, torch.nn.functional.layer_norm(x.double(), (48,)).float(), atol=1e-5)


@pytest.mark.parametrize(
    "norm",
    [
        lambda x, w, b: torch.nn.functional.layer_norm(x, (4,), w, b),
        lambda x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, training=True),
        lambda x, w, b: torch.nn.functional.group_norm(x, 2, w, b),
    ],
)
def test_gradients_of_the_parameters_can_be_differentiated_again(norm):
    x = torch.sin(torch.arange(12.0, dtype=torch.float64)).view(3, 4).requires_grad_()
    w = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
    b = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    to_w, to_b = torch.autograd.grad((norm(x, w, b) ** 2).sum(), (w, b), create_graph=True)
    (analytic,) = torch.autograd.grad((to_w * w.detach()).sum() + to_b.sum(), x)
    step = 1e-6
    for place in range(3):
        sides = []
        for sign in (1, -1):
            moved = x.detach().clone()
            moved.view(-1)[place] += sign * step
            w2, b2 = w.detach().requires_grad_(), b.detach().requires_grad_()
            gw, gb = torch.autograd.grad((norm(moved, w2, b2) ** 2).sum(), (w2, b2))
            sides.append(((gw * w.detach()).sum() + gb.sum()).item())
        assert abs((sides[0] - sides[1]) / (2 * step) - analytic.view(-1)[place].item()) < 1e-5


# ---------------------------------------------------------------- what PyTorch 2.13 answered

F = torch.nn.functional


def rounded(tensors):
    return [[round(v, 3) + 0.0 for v in t.flatten().tolist()] for t in tensors]


_TRAINED = [0.382, 1.516, 2.295, -0.017, -0.639, -0.911, -1.283, 1.535, 1.715, 0.937, -2.079, -3.451]
_TRAINED_GRADS = [
    [-4.095, 1.06, 34.128, -34.052, 0.154, 2.712, -30.507, 1.093, 3.04, -2.87, -13.455, 42.792],
    [13.918, -35.623],
    [22.5, 76.498],
]
_USED = [0.4, 1.242, 0.503, -0.583, -0.357, -0.559, -1.178, 0.146, 1.389, 0.812, -1.552, -2.197]
_USED_GRADS = [
    [0.48, 4.624, 1.074, 1.443, 0.382, 0.937, 5.887, 0.091, 5.791, 1.979, 10.222, 20.479],
    [7.829, -17.142],
    [14.192, 27.716],
]
_SAVED = [[0.088, -0.019], [1.348, 1.505]]
_OLD, _NEW = [[0.1, 0.2], [1.0, 2.0]], [[0.099, 0.178], [0.966, 1.853]]


@pytest.mark.parametrize(
    ("call", "node", "result", "rest", "statistics", "grads"),
    [
        (
            lambda x, w, b, m, v: torch._native_batch_norm_legit(x, w, b, m, v, True, 0.1, 1e-5),
            "NativeBatchNormLegitBackward0",
            _TRAINED,
            _SAVED,
            _NEW,
            _TRAINED_GRADS,
        ),
        (
            lambda x, w, b, m, v: torch._native_batch_norm_legit(x, w, b, m, v, False, 0.1, 1e-5),
            "NativeBatchNormLegitBackward0",
            _USED,
            [[], []],
            _OLD,
            _USED_GRADS,
        ),
        (
            lambda x, w, b, m, v: torch._native_batch_norm_legit(x, w, b, True, 0.1, 1e-5),
            "NativeBatchNormLegitBackward1",
            _TRAINED,
            _SAVED,
            _OLD,
            _TRAINED_GRADS,
        ),
        (
            lambda x, w, b, m, v: torch._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-5),
            "NativeBatchNormLegitNoTrainingBackward0",
            _USED,
            [[], []],
            _OLD,
            _USED_GRADS,
        ),
        (
            lambda x, w, b, m, v: torch.ops.aten._native_batch_norm_legit_functional(x, w, b, m, v, True, 0.1, 1e-5),
            "NativeBatchNormLegitBackward0",
            _TRAINED,
            _SAVED + _NEW,
            _OLD,
            _TRAINED_GRADS,
        ),
    ],
)
def test_batch_norm_with_and_without_running_statistics(call, node, result, rest, statistics, grads):
    x = torch.sin(torch.arange(12.0)).view(3, 2, 2).requires_grad_()
    w, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([0.5, -0.5], requires_grad=True)
    mean, variance = torch.tensor([0.1, 0.2]), torch.tensor([1.0, 2.0])
    made = call(x, w, b, mean, variance)
    assert type(made[0].grad_fn).__name__ == node
    assert made[0].flatten().tolist() == pytest.approx(result, abs=1e-3)
    assert rounded(made[1:]) == rest and rounded((mean, variance)) == statistics
    for got, expected in zip(torch.autograd.grad((made[0] ** 3).sum(), (x, w, b)), grads, strict=True):
        assert got.flatten().tolist() == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize(
    ("parameter", "kind"),
    [(None, torch.bfloat16), (torch.ones(2, dtype=torch.bfloat16), torch.bfloat16), (torch.ones(2), torch.float32)],
)
def test_saved_statistics_are_as_wide_as_the_parameters(parameter, kind):
    x = torch.sin(torch.arange(24.0)).view(3, 2, 4).bfloat16()
    made = torch.native_batch_norm(x, parameter, parameter, None, None, True, 0.1, 1e-5)
    assert [t.dtype for t in made] == [torch.bfloat16, kind, kind]


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing_leaves_the_statistics_alone(shape, training):
    channels = shape[1] if len(shape) > 1 else 0
    mean, variance = torch.zeros(channels), torch.ones(channels)
    made = F.batch_norm(torch.zeros(shape), mean, variance, training=training)
    assert made.shape == shape and mean.tolist() == [0.0] * channels and variance.tolist() == [1.0] * channels


def test_parameters_of_a_norm_of_nothing_get_zeros():
    for norm in (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), lambda x, w, b: F.group_norm(x, 1, w, b)):
        x, w, b = torch.zeros(0, 3, requires_grad=True), torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        to_x, to_w, to_b = torch.autograd.grad(norm(x, w, b).sum(), (x, w, b))
        assert to_x.shape == (0, 3) and to_w.tolist() == to_b.tolist() == [0.0] * 3


def test_means_and_scales_of_groups_have_gradients():
    x = torch.sin(torch.arange(24.0)).view(2, 4, 3).requires_grad_()
    _, mean, rstd = torch.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)
    (made,) = torch.autograd.grad(mean.sum() + 2 * rstd.sum(), x)
    assert made.flatten().tolist() == pytest.approx(
        [
            0.1938,
            -0.5832,
            -0.6458,
            0.0635,
            0.8926,
            1.0792,
            0.4755,
            -0.4322,
            -0.7543,
            -0.1948,
            0.7319,
            1.1739,
            0.7556,
            -0.2118,
            -0.7886,
            -0.4445,
            0.5042,
            1.1852,
            0.9934,
            0.0623,
            -0.7263,
            -0.6475,
            0.2264,
            1.0918,
        ],
        abs=2e-4,
    )
    x = x.detach().double().requires_grad_()
    assert torch.autograd.gradcheck(lambda t: torch.native_group_norm(t, None, None, 2, 4, 3, 2, 1e-5), (x,))
    assert torch.autograd.gradgradcheck(lambda t: torch.native_group_norm(t, None, None, 2, 4, 3, 2, 1e-5), (x,))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: torch.native_layer_norm(torch.zeros(1, 2, 3), [], None, None, 1e-5),
            RuntimeError,
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []",
        ),
        (
            lambda: torch.native_layer_norm(torch.zeros(2, 2, 3), [2, 2], None, None, 1e-5),
            RuntimeError,
            "Given normalized_shape=[2, 2], expected input with shape [*, 2, 2], but got input of size[2, 2, 3]",
        ),
        (
            lambda: torch.native_layer_norm(torch.zeros(2, 3), [2], None, None, 1e-5),
            RuntimeError,
            "Given normalized_shape=[2], expected input with shape [*, 2], but got input of size[2, 3]",
        ),
        (
            lambda: torch.native_layer_norm(torch.zeros(1, 2, 3), [1, 2, 3], torch.zeros(1, 2), None, 1e-5),
            RuntimeError,
            "Expected weight to be of same shape as normalized_shape, but got weight of shape [1, 2] and normalized_shape = "
            "[1, 2, 3]",
        ),
        (
            lambda: F.batch_norm(torch.zeros(3), None, None, training=True),
            IndexError,
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        ),
        (
            lambda: F.batch_norm(torch.zeros(2, 3), torch.zeros(3), None),
            RuntimeError,
            "running_var must be defined in evaluation mode",
        ),
        (
            lambda: F.batch_norm(torch.zeros(2, 3), torch.zeros(3), None, training=True),
            ValueError,
            "running_mean and running_var must either both be None or neither be None",
        ),
    ],
)
def test_norms_that_are_refused(call, kind, words):
    with pytest.raises(kind) as raised:
        call()
    assert str(raised.value).split("\n")[0] == words


@pytest.mark.parametrize("shape, groups", [((0, 2), 1), ((0, 6, 3), 3)])
def test_group_norm_of_nothing_has_second_derivatives(shape, groups):
    x = torch.zeros(shape, requires_grad=True)
    w = torch.ones(shape[1], requires_grad=True)
    (once,) = torch.autograd.grad((torch.nn.functional.group_norm(x, groups, w) ** 2).sum(), x, create_graph=True)
    to_x, to_w = torch.autograd.grad(once.sum(), (x, w), allow_unused=True)
    assert to_x.shape == shape and (to_w == 0).all()


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_statistics_have_the_dtype_of_the_parameters(dtype, device):
    x, wide = torch.ones(2, 4, 3, dtype=dtype, device=device), torch.ones(4, device=device)
    narrow = wide.to(dtype)
    for weight, kind in ((wide, torch.float32), (narrow, dtype), (None, dtype)):
        by_group = torch.native_group_norm(x, weight, weight, 2, 4, 3, 2, 1e-5)
        by_row = torch.native_layer_norm(x.transpose(1, 2).contiguous(), [4], weight, weight, 1e-5)
        for made in (by_group, by_row):
            assert [each.dtype for each in made] == [dtype, kind, kind]


@pytest.mark.parametrize("norm", ["group", "layer"])
def test_gradients_of_wide_parameters_are_not_rounded(norm):
    torch.manual_seed(0)
    grads = []
    x, g = torch.randn(2, 4, 64).bfloat16(), torch.randn(2, 4, 64).bfloat16()
    for dtype in (torch.bfloat16, torch.float32):
        module = torch.nn.GroupNorm(2, 4) if norm == "group" else torch.nn.LayerNorm(64)
        module(x.to(dtype)).backward(g.to(dtype))
        grads.append(torch.cat([module.weight.grad, module.bias.grad]))
    assert torch.allclose(*grads, rtol=1e-4, atol=1e-4)


def test_long_rows_are_summed_without_drift():
    torch.manual_seed(0)
    x = torch.rand(2, 1 << 20)
    exact = x.double()
    exact = (exact - exact.mean(1, keepdim=True)) / (exact.var(1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    for made in (
        torch.nn.functional.layer_norm(x, (1 << 20,)),
        torch.nn.functional.group_norm(x.view(1, 4, -1), 2).view(2, -1),
    ):
        assert (made - exact).abs().max() < 1e-6


@pytest.mark.parametrize(
    ("grad", "input", "error", "words"),
    [
        (torch.ones(2, 2).cfloat(), torch.ones(2, 2), RuntimeError, "expected scalar type Float but found ComplexFloat"),
        (torch.ones(2, 2).double(), torch.ones(2, 2), RuntimeError, "expected scalar type Float but found Double"),
        (
            torch.ones(2, 2).int(),
            torch.ones(2, 2).int(),
            NotImplementedError,
            "\"batch_norm_backward_cpu\" not implemented for 'Int'",
        ),
        (torch.ones(2, 3), torch.ones(2, 2), RuntimeError, "grad_out to have the input's shape"),
    ],
)
def test_refusals_of_batch_norm_backward(grad, input, error, words):
    with pytest.raises(error, match=words):
        torch.ops.aten.native_batch_norm_backward(grad, input, None, None, None, None, None, True, 0.0, [False, False, True])


@pytest.mark.parametrize(
    ("grad", "input", "mean", "words"),
    [
        (torch.float16, torch.float32, torch.float32, "Expected scalar types of X and dY are same."),
        (torch.complex64, torch.float32, torch.float32, "Expected scalar types of X and dY are same."),
        (torch.complex64, torch.complex64, torch.complex64, "a gradient of ComplexFloat is not supported"),
        (torch.int32, torch.int32, torch.int32, "a gradient of Int is not supported"),
        (torch.float32, torch.float32, torch.complex64, "expect parameter to have scalar type of Float"),
    ],
)
def test_dtypes_of_gradients_of_norms(grad, input, mean, words):
    g, x, m = (torch.ones(shape, dtype=kind) for shape, kind in (((2, 4), grad), ((2, 4), input), ((2, 1), mean)))
    with pytest.raises(RuntimeError, match=words):
        torch.ops.aten.native_group_norm_backward(g, x, m, m, None, 2, 4, 1, 1, [True, True, True])
    with pytest.raises(RuntimeError, match=words):
        torch.ops.aten.native_layer_norm_backward(g, x, [4], m, m, None, None, [True, True, True])


def test_statistics_of_a_batch_move_the_running_ones():
    running_mean, running_var = torch.zeros(3), torch.ones(3)
    batch = torch.arange(12.0).reshape(2, 3, 2)
    mean, var = torch.batch_norm_update_stats(batch, running_mean, running_var, 0.3)
    assert mean.tolist() == [3.5, 5.5, 7.5] and var.tolist() == [9.25] * 3
    torch.testing.assert_close(running_mean, torch.tensor([1.05, 1.65, 2.25]))
    torch.testing.assert_close(running_var, torch.tensor([4.4, 4.4, 4.4]))


@pytest.mark.parametrize(
    "shape, running, error",
    [((2, 0, 2), None, RuntimeError), ((2,), None, IndexError), ((2, 3), 0, TypeError)],
)
def test_statistics_of_what_is_no_batch_are_refused(shape, running, error):
    with pytest.raises(error):
        torch.batch_norm_update_stats(torch.ones(shape), running, running, 0.3)
