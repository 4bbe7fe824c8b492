"""Corners of the runtime where scripts meet them: what PyTorch 2.13 returns, warns of and refuses."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.nn import functional as F
from mindtorch_v2.nn.attention import SDPBackend, sdpa_kernel


def close(found, expected):
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=found.dtype), atol=2e-4, rtol=1e-4)


# ---------------------------------------------------------------- arguments


@pytest.mark.parametrize("name", ["cat", "stack", "concat", "hstack", "vstack", "dstack", "column_stack"])
def test_a_tensor_is_no_list_of_tensors(name):
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"):
        getattr(torch, name)(torch.ones(2, 3))


def test_dims_may_be_0_d_tensors():
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    one = torch.tensor(1)
    assert x.sum(dim=one).tolist() == [3, 12] == x.sum(one).tolist()
    assert torch.mean(x, dim=one).tolist() == [1, 4]
    x.sum(one).sum().backward()
    assert x.grad.tolist() == [[1] * 3] * 2
    with pytest.raises(TypeError):
        x.sum(dim=torch.tensor(1.0))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, out: torch.hstack([x, x], out=out),
        lambda x, out: torch.matmul(x, x.T, out=out),
        lambda x, out: torch.softmax(x, 1, out=out),
        lambda x, out: torch.outer(x[0], x[1], out=out),
        lambda x, out: torch.quantile(x, 0.5, out=out),
        lambda x, out: torch.tensordot(x, x.T, 1, out=out),
        lambda x, out: torch.chain_matmul(x, x.T, out=out),
        lambda x, out: torch.square(x, out=out),
        lambda x, out: torch.linalg.norm(x, out=out),
        lambda x, out: torch.std(x, dim=0, out=out),
        lambda x, out: torch.where(x > 2, x, -x, out=out),
        lambda x, out: torch.special.expit(x, out=out),
    ],
)
def test_composed_ops_with_out(function):
    x, out = torch.arange(6.0).reshape(2, 3), torch.empty(0)
    made = function(x, out)
    assert made is out
    expected = function(x, None)
    assert torch.equal(out, expected)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        function(x.clone().requires_grad_(), torch.empty(0))


def test_an_out_of_another_shape_is_resized_with_a_warning():
    out = torch.ones(3)
    with pytest.warns(UserWarning, match=r"had shape \[3\], which does not match the required output shape \[2, 2\]"):
        torch.add(torch.ones(2, 2), 1, out=out)
    assert out.shape == (2, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.add(torch.ones(2, 2), 1, out=torch.empty(0))


# ---------------------------------------------------------------- writing


def test_filling_an_expanded_tensor_writes_its_places():
    base = torch.zeros(3, 1)
    assert (base.expand(3, 4).fill_(2) == 2).all() and base.tolist() == [[2]] * 3
    base.expand(3, 4).zero_()
    assert base.tolist() == [[0]] * 3
    base.expand(2, 3, 4)[0, 1:].fill_(5)
    assert base.tolist() == [[0], [5], [5]]


def _assign(target, index, value):
    target[index] = value


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.add_(1),
        lambda t: t.fill_(torch.tensor(2.0)),
        lambda t: t.copy_(torch.ones(3, 4)),
        lambda t: _assign(t, slice(None), 5),
        lambda t: _assign(t, 0, 5),
        lambda t: _assign(t, 0, torch.ones(4)),
    ],
)
def test_other_writing_into_an_expanded_tensor_is_refused(write):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        write(torch.zeros(3, 1).expand(3, 4))


def test_a_number_assigned_to_a_tensor_with_history():
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    y[:] = 3
    assert y.grad_fn.name() == "FillBackward3" and y.grad_fn.next_functions[1] == (None, 0)
    z = x * 2
    z[0] = 3
    z.sum().backward()
    assert z.tolist() == [[3] * 3, [2] * 3] and x.grad.tolist() == [[0] * 3, [2] * 3]


def test_writing_into_a_view_of_what_a_multiple_output_op_made():
    """How the base came about does not matter: only the views on the way do."""
    x = torch.arange(16.0).reshape(1, 1, 4, 4).requires_grad_()
    y = F.max_pool2d(x, 2).flatten(2).transpose(1, 2)
    y += 1
    (y * 2).sum().backward()
    assert x.grad.sum() == 8
    a, _ = (torch.ones(4, requires_grad=True) * 2).chunk(2)
    with pytest.raises(RuntimeError, match="a function that returns multiple views"):
        a += 1


def test_writing_in_place_does_not_search_all_objects(monkeypatch):
    """A node that saves its result holds the storage, which is no view of it."""
    import gc

    monkeypatch.setattr(gc, "get_referrers", lambda *args: pytest.fail("searched"))
    cell = nn.LSTMCell(2, 3)
    h, c = cell(torch.ones(1, 2), (torch.zeros(1, 3), torch.zeros(1, 3)))
    (h + c).sum().backward()
    x = torch.ones(3, requires_grad=True) * 2
    x.sigmoid_()


# ---------------------------------------------------------------- derivatives


def test_second_derivative_of_softplus():
    x = torch.tensor([-3.0, 0.0, 0.5, 2.0, 30.0], requires_grad=True)
    (g,) = torch.autograd.grad(F.softplus(x, 2.0, 3.0).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    close(h, [0.0049, 0.5, 0.3932, 0, 0])


@pytest.mark.parametrize("dim, expected", [(-1, [[1, 3, 3, 2]] * 3), (-2, [[1] * 4, [3] * 4, [2] * 4])])
def test_unfold_by_a_dim_from_the_end(dim, expected):
    x = torch.arange(12.0).reshape(3, 4).requires_grad_()
    (x.unfold(dim, 2, 1) * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.tolist() == expected


@pytest.mark.parametrize(
    "name, first", [("tanh", [0.4914 + 0.9421j, -0.4117 + 0.4944j]), ("sigmoid", [0.2476 + 0.0580j, -0.0235 - 0.4431j])]
)
def test_complex_gradients(name, first):
    z = torch.tensor([0.3 + 0.4j, 1 - 2j], dtype=torch.complex128, requires_grad=True)
    function = getattr(torch, name)
    (g,) = torch.autograd.grad(function(z).abs().sum(), z)
    close(g, first)
    assert torch.autograd.gradcheck(function, (z,))
    assert torch.autograd.gradgradcheck(function, (z,))


def test_vmap_with_one_index_for_each_sample():
    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor([0, 1, 2])
    assert torch.vmap(lambda row, k: row[k])(x, i).tolist() == [0, 5, 10]
    assert torch.equal(torch.vmap(lambda k: x[k])(i), x)
    assert torch.equal(torch.vmap(lambda k: x[:, k])(i), x.T[:3])
    assert torch.vmap(lambda row, k: row[k, None])(x, i).tolist() == [[0], [5], [10]]
    assert torch.vmap(lambda a, b: x[a, b])(i, torch.tensor([1, 1, 2])).tolist() == [1, 5, 10]
    assert torch.vmap(lambda k: x[1, k])(i).tolist() == [4, 5, 6]


# ---------------------------------------------------------------- ops


def test_conv_tbc():
    x, w, b = torch.arange(24.0).reshape(4, 2, 3), torch.arange(12.0).reshape(2, 3, 2), torch.ones(2)
    for t in (x, w, b):
        t.requires_grad_()
    made = torch.conv_tbc(x, w, b, 1)
    assert made.shape == (5, 2, 2)
    assert made[0].tolist() == [[29, 32], [101, 113]] and made[4].tolist() == [[119, 176], [137, 203]]
    (made * made).sum().backward()
    assert x.grad.sum() == 376908 and b.grad.tolist() == [5668, 6772]
    assert w.grad[0].tolist() == [[56208, 69132], [61616, 75614], [67024, 82096]]
    with pytest.raises(RuntimeError, match="Input must have 3 dims"):
        torch.conv_tbc(torch.ones(2), w, b)


def test_masked_softmax():
    x = torch.arange(12.0).reshape(1, 3, 4).requires_grad_()
    mask = torch.tensor([[1, 0, 0, 1], [0, 0, 1, 0], [1, 1, 1, 1]]).bool()[None]
    made = torch._masked_softmax(x, mask)
    close(made[0, :2], [[0, 0.2689, 0.7311, 0], [0.0420, 0.1142, 0, 0.8438]])
    assert made[0, 2].isnan().all()
    (made * torch.arange(12.0).reshape(1, 3, 4)).sum().backward()
    close(x.grad[0], [[0, -0.1966, 0.1966, 0], [-0.1111, -0.1879, 0, 0.2991], [0, 0, 0, 0]])
    padding = torch._masked_softmax(torch.ones(2, 1, 1, 3), torch.tensor([[1, 0, 1], [0, 0, 1]]).bool(), 3, 1)
    assert padding.flatten(1).tolist() == [[0, 1, 0], [0.5, 0.5, 0]]
    source = torch._masked_softmax(torch.ones(1, 1, 2, 2), torch.tensor([[0, 1], [0, 0]]).bool(), 3, 0)
    assert source.flatten(1).tolist() == [[1, 0, 0.5, 0.5]]
    with pytest.raises(RuntimeError, match="Mask should be a boolean tensor"):
        torch._masked_softmax(torch.ones(2), torch.ones(2), 0)
    with pytest.raises(RuntimeError, match="Mask Type should be defined"):
        torch._masked_softmax(torch.ones(1, 1, 2, 2), torch.ones(2, 2).bool(), 3)


def test_sparse_mask():
    mask = torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3)).coalesce()
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    made = x.sparse_mask(mask)
    assert made.indices().tolist() == mask.indices().tolist() and made.values().tolist() == [2, 3, 5]
    made.to_dense().pow(2).sum().backward()
    assert x.grad.tolist() == [[0, 0, 4], [6, 0, 10]]
    other = torch.sparse_coo_tensor([[0, 1], [2, 1]], [1.0, 1.0], (2, 3)).coalesce()
    assert mask.sparse_mask(other).values().tolist() == [3, 0]
    with pytest.raises(RuntimeError, match=r"self has size \[2, 2\] but mask has size \[2, 3\]"):
        torch.ones(2, 2).sparse_mask(mask)
    assert "indices=tensor([[0, 1, 1],\n                       [2, 0, 2]])" in repr(mask)


def test_a_sparse_tensor_added_to_a_dense_one():
    x = torch.zeros(3, 2)
    x.add_(torch.sparse_coo_tensor([[0, 2, 2]], torch.ones(3, 2), (3, 2)), alpha=2)
    assert x.tolist() == [[2, 2], [0, 0], [4, 4]]


def test_convolution_without_output_channels():
    with pytest.raises(RuntimeError, match="expected weight to be at least 1 at dimension 0"):
        F.conv2d(torch.ones(1, 2, 3, 3), torch.ones(0, 2, 1, 1))


def test_an_empty_tensor_seen_as_another_dtype():
    assert torch.empty(0, dtype=torch.uint8).view(torch.float32).dtype is torch.float32


@pytest.mark.parametrize(
    "backends, error",
    [
        (SDPBackend.MATH, None),
        (SDPBackend.FLASH_ATTENTION, None),
        ([SDPBackend.MATH, SDPBackend.EFFICIENT_ATTENTION], None),
        (SDPBackend.EFFICIENT_ATTENTION, "No viable backend for scaled_dot_product_attention was found"),
        (SDPBackend.CUDNN_ATTENTION, "No viable backend for scaled_dot_product_attention was found"),
    ],
)
def test_attention_uses_the_kernels_that_are_allowed(backends, error):
    torch.manual_seed(0)
    q = torch.randn(1, 2, 4, 8)
    expected = F.scaled_dot_product_attention(q, q, q)
    with sdpa_kernel(backends):
        if error:
            with pytest.raises(RuntimeError, match=error):
                F.scaled_dot_product_attention(q, q, q)
            return
        with torch.profiler.profile() as prof:
            made = F.scaled_dot_product_attention(q, q, q)
    names = {event.name for event in prof.events()}
    flash = backends is SDPBackend.FLASH_ATTENTION
    assert ("aten::_scaled_dot_product_flash_attention_for_cpu" in names) is flash
    assert ("aten::_scaled_dot_product_attention_math" in names) is not flash
    torch.testing.assert_close(made, expected)


def test_attention_without_a_kernel_that_fits():
    q = torch.ones(1, 2, 4, 8)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(q, q, q, dropout_p=0.5)


def test_the_old_way_to_choose_attention_kernels():
    q = torch.ones(1, 2, 4, 8)
    with pytest.warns(FutureWarning, match="torch.nn.attention.sdpa_kernel"):
        with torch.backends.cuda.sdp_kernel(enable_flash=False, enable_math=False), pytest.raises(RuntimeError, match="viable"):
            F.scaled_dot_product_attention(q, q, q)
    F.scaled_dot_product_attention(q, q, q)


# ---------------------------------------------------------------- random numbers


@pytest.mark.parametrize(
    "mean, std, a, b, total, after",
    [
        (0, 1, -2, 2, 2.3759124912321568, 0.3942948579788208),
        (0, 0.02, -2, 2, 0.07356381096178666, 0.18719732761383057),
        (0, 1, 3, 4, 208.18352246284485, 0.2112002968788147),
        (0, 1, -0.1, 0.1, -0.410864261619281, 0.3748350739479065),
    ],
)
def test_truncated_normals(mean, std, a, b, total, after):
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the mean is far outside
        made = nn.init.trunc_normal_(torch.empty(7, 9), mean, std, a, b)
    assert made.min() >= a and made.max() <= b
    assert (made.double().sum().item(), torch.rand(1).item()) == pytest.approx((total, after), rel=1e-6)


# ---------------------------------------------------------------- torch.cuda without CUDA


def test_old_names_of_mixed_precision():
    with (
        pytest.warns(FutureWarning, match=r"torch.amp.autocast\('cuda', args...\)"),
        pytest.warns(UserWarning, match="not available"),
    ):
        with torch.cuda.amp.autocast():
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
    with (
        pytest.warns(FutureWarning, match=r"torch.amp.GradScaler\('cuda', args...\)"),
        pytest.warns(UserWarning, match="Disabling"),
    ):
        scaler = torch.cuda.amp.GradScaler()
    x = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=1.0)
    scaler.scale(x.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert x.item() == 0 and not scaler.is_enabled()
    with pytest.warns(FutureWarning, match="custom_fwd"):
        assert torch.cuda.amp.custom_fwd(lambda ctx, t: t) is not None
    with pytest.warns(FutureWarning, match="custom_bwd"):
        assert torch.cuda.amp.custom_bwd(lambda ctx, g: g) is not None


def test_names_of_cuda_for_scripts_that_ask():
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    with pytest.raises(TypeError, match=r"type torch.cuda.FloatTensor not available"):
        torch.cuda.FloatTensor(2)
    with torch.cuda.stream(None), torch.cuda.device_of(torch.ones(1)):
        pass
    with pytest.raises(RuntimeError, match="CUDA"):
        torch.cuda.device(0)
    with pytest.raises(RuntimeError, match="NVTX"):
        torch.cuda.nvtx.range_push("x")
    assert torch.cuda.get_arch_list() == [] and torch.cuda.memory_stats() == {}
    assert math.isinf(torch.inf) and np.isnan(torch.nan) and torch.newaxis is None


# ---------------------------------------------------------------- expanded tensors


def _fill_by_mask(x, mask):
    return x.masked_fill_(mask, 5.0)


def _fill_by_tensor(x, mask):
    return x.masked_fill_(mask, torch.tensor(5.0))


def _put_by_mask(x, mask):
    x[mask] = 5.0
    return x


@pytest.mark.parametrize(
    "write, name", [(_fill_by_mask, "masked_fill_"), (_fill_by_tensor, "masked_fill_"), (_put_by_mask, "index_put_")]
)
def test_a_mask_writes_into_an_expanded_tensor_with_a_warning(write, name):
    base = torch.zeros(3, 1)
    mask = torch.tensor([[True, False], [False, False], [False, True]])
    with pytest.warns(UserWarning, match=f"^Use of {name} on expanded tensors is deprecated"):
        made = write(base.expand(3, 2), mask)
    assert made.tolist() == [[5, 5], [0, 0], [5, 5]]
    assert base.tolist() == [[5], [0], [5]]


def test_an_expanded_tensor_without_elements_is_filled_silently(recwarn):
    made = torch.zeros(0, 1).expand(0, 4).masked_fill_(torch.zeros(0, 4, dtype=torch.bool), 1)
    assert made.shape == (0, 4) and not recwarn.list


def test_other_ops_refuse_expanded_tensors():
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        torch.zeros(3, 1).expand(3, 2).add_(1)


# ---------------------------------------------------------------- arguments that are missing


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda x: x.multinomial(), "^multinomial\\(\\) missing 1 required positional argument"),
        (lambda x: x.gather(0), "^gather\\(\\) missing 1 required positional argument"),
    ],
)
def test_a_missing_argument_is_missed_by_the_op(call, message):
    with pytest.raises(TypeError, match=message):
        call(torch.ones(3))


# ---------------------------------------------------------------- optimizers around optimizers


def test_an_optimizer_that_wraps_another_patches_its_step():
    class Around(torch.optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner
            self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks = {}, {}
            self._patch_step_function()

        def step(self, closure=None):
            return self.inner.step(closure)

    weight = nn.Parameter(torch.ones(2))
    around, seen = Around(torch.optim.SGD([weight], lr=0.5)), []
    around.register_step_post_hook(lambda *_: seen.append(weight.tolist()))
    weight.grad = torch.ones(2)
    around.step()
    assert seen == [[0.5, 0.5]]


# ---------------------------------------------------------------- numbers in front of tensors


@pytest.mark.parametrize(
    "name, expected",
    [
        ("add", [5.0, 7.0]),
        ("sub", [1.0, -1.0]),
        ("subtract", [1.0, -1.0]),
        ("mul", [6.0, 12.0]),
        ("multiply", [6.0, 12.0]),
        ("div", [1.5, 0.75]),
        ("divide", [1.5, 0.75]),
        ("true_divide", [1.5, 0.75]),
        ("floor_divide", [1.0, 0.0]),
    ],
)
def test_a_number_may_stand_before_a_tensor(name, expected):
    function = getattr(torch, name)
    x = torch.tensor([2.0, 4.0])
    for _ in range(2):  # the second call finds what the first one prepared
        assert function(3, x).tolist() == expected
    assert function(3, x.double()).dtype is torch.float64
    assert function(3.0, torch.tensor(2, dtype=torch.float16)).dtype is torch.float16
    assert function(2.0, torch.tensor([2])).dtype is torch.float32


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda x: torch.div(-1, x), [-0.25, -1.0]),
        (lambda x: torch.true_divide(-1, x), [-0.25, -1.0]),
        (lambda x: torch.div(-1, x, rounding_mode=None), [-0.25, -1.0]),
        (lambda x: -1 / x, [-0.25, -1.0]),
        (lambda x: torch.div(300, x), [75.0, 300.0]),
        (lambda x: torch.div(300, x, rounding_mode="trunc"), [11, 44]),
        (lambda x: torch.floor_divide(-1, x), [63, 255]),
        (lambda x: torch.remainder(-1, x), [3, 0]),
        (lambda x: torch.add(300, x), [48, 45]),
    ],
)
def test_a_number_before_bytes_is_divided_as_it_is_and_wraps_around_elsewhere(call, expected):
    x = torch.tensor([4, 1], dtype=torch.uint8)
    result = call(x)
    assert result.tolist() == expected
    assert result.dtype is (torch.float32 if isinstance(expected[0], float) else torch.uint8)


def test_a_number_before_one_byte_is_divided_as_it_is():
    x = torch.tensor(4, dtype=torch.uint8)
    for divide in (torch.div, torch.true_divide):
        assert divide(-1, x).item() == -0.25
        assert divide(-1, x).dtype is torch.float32
    assert torch.add(-1, x).dtype is torch.uint8


def test_a_number_before_a_tensor_with_options_and_gradient():
    w = torch.ones(2, requires_grad=True)
    torch.sub(3, w, alpha=2).sum().backward()
    assert w.grad.tolist() == [-2, -2]
    assert torch.div(7, torch.tensor([2]), rounding_mode="floor").tolist() == [3]
    assert torch.add(1, 2).item() == 3
    with pytest.raises(RuntimeError, match="Subtraction"):
        torch.sub(True, w)
    with pytest.raises(TypeError):
        torch.add("a", w)
    with pytest.raises(TypeError):
        torch.matmul(1.0, w)
