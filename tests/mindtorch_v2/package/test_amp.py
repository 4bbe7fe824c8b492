"""amp: what autocast does to ops, and the loss scaler."""

from __future__ import annotations

import threading

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.nn import functional as F

A = torch.ones(2, 2)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: A @ A, torch.bfloat16),
        (lambda: torch.nn.Linear(2, 2)(A), torch.bfloat16),
        (lambda: torch.bmm(A[None], A[None]), torch.bfloat16),
        (lambda: F.scaled_dot_product_attention(A[None], A[None], A[None]), torch.bfloat16),
        (lambda: A + A, torch.float32),
        (lambda: (A @ A) + A, torch.float32),
        (lambda: (A @ A).sum(), torch.bfloat16),
        (lambda: torch.softmax(A @ A, -1), torch.bfloat16),
        (lambda: F.mse_loss(A @ A, A), torch.float32),
        (lambda: F.cross_entropy(A @ A, torch.tensor([0, 1])), torch.float32),
        (lambda: torch.prod(A.bfloat16()), torch.float32),
        (lambda: torch.cat([A, A.bfloat16()]), torch.float32),
        (lambda: torch.stack([A.bfloat16(), A.bfloat16()]), torch.bfloat16),
        (lambda: A.double() @ A.double(), torch.float64),
        (lambda: torch.ones(2, 2, dtype=torch.int64) @ torch.ones(2, 2, dtype=torch.int64), torch.int64),
    ],
)
def test_dtypes_under_autocast(call, expected):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert call().dtype is expected


def test_float16_and_the_default():
    with torch.autocast("cpu", dtype=torch.float16):
        assert (A @ A).dtype is torch.float16
        assert torch.get_autocast_dtype("cpu") is torch.float16
    assert torch.get_autocast_dtype("cpu") is torch.bfloat16
    with torch.autocast("cpu"):
        assert (A @ A).dtype is torch.bfloat16


def test_blocks_nest_and_end():
    assert not torch.is_autocast_enabled("cpu")
    with torch.autocast("cpu"):
        with torch.autocast("cpu", enabled=False):
            assert (A @ A).dtype is torch.float32
            assert not torch.is_autocast_enabled("cpu")
        assert (A @ A).dtype is torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert (A @ A).dtype is torch.float16
        assert (A @ A).dtype is torch.bfloat16
    assert (A @ A).dtype is torch.float32
    assert not torch.is_autocast_enabled("cpu")


def test_an_error_inside_ends_the_block():
    with pytest.raises(RuntimeError, match="cannot be multiplied"), torch.autocast("cpu"):
        torch.ones(2, 3) @ torch.ones(2, 3)
    assert (A @ A).dtype is torch.float32


def test_decorator():
    @torch.autocast("cpu")
    def product(x):
        return x @ x

    assert product(A).dtype is torch.bfloat16
    assert (A @ A).dtype is torch.float32


def test_set_autocast_enabled():
    torch.set_autocast_enabled("cpu", True)
    try:
        assert (A @ A).dtype is torch.bfloat16
    finally:
        torch.set_autocast_enabled("cpu", False)
    assert (A @ A).dtype is torch.float32


def test_gradients_come_back_in_the_weights_type():
    layer = torch.nn.Linear(2, 2)
    with torch.autocast("cpu"):
        loss = layer(A).sum()
    loss.backward()
    assert loss.dtype is torch.bfloat16
    assert layer.weight.grad.dtype is torch.float32
    assert layer.weight.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_other_threads_are_not_affected():
    seen = []
    with torch.autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append((A @ A).dtype))
        thread.start()
        thread.join()
    assert seen == [torch.float32]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("cuda",), "CUDA is not available"),
        (("cpu", torch.float64), "only supports dtypes of torch.bfloat16, torch.float16"),
    ],
)
def test_what_cannot_be_done_warns_and_is_off(arguments, match):
    with pytest.warns(UserWarning, match=match):
        block = torch.autocast(*arguments)
    with block:
        assert (A @ A).dtype is torch.float32


def test_bad_devices():
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
        torch.autocast(3)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        torch.autocast("gpu")
    assert torch.amp.is_autocast_available("cpu")
    assert not torch.amp.is_autocast_available("meta")


def test_profiles_show_an_op_that_autocast_leaves_alone_once():
    with torch.autocast("cpu"), torch.profiler.profile() as prof:
        A + A
    assert [e.name for e in prof.events()].count("aten::add") == 1


def test_custom_functions_choose_their_types():
    class Product(torch.autograd.Function):
        @staticmethod
        @torch.amp.custom_fwd(device_type="cpu", cast_inputs=torch.float32)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.inside = (x @ x).dtype
            return x * 2

        @staticmethod
        @torch.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            assert not torch.is_autocast_enabled("cpu")
            return g * 2

    x = torch.ones(2, 2, dtype=torch.bfloat16, requires_grad=True)
    with torch.autocast("cpu"):
        y = Product.apply(x)
    assert y.dtype is torch.float32
    y.sum().backward()
    assert x.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]


# ---------------------------------------------------------------- the scaler


def scaled_steps(values, **options):
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", **options)
    scales = []
    for value in values:
        optimizer.zero_grad()
        scaler.scale((weight * value).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    return scales, weight.item(), scaler


def test_the_scale_grows_and_backs_off_and_infinite_steps_are_skipped():
    scales, weight, _ = scaled_steps([1.0, 1.0, float("inf"), 1.0], init_scale=8.0, growth_interval=2)
    assert scales == [8.0, 16.0, 8.0, 8.0]
    assert weight == pytest.approx(0.7)


def test_unscale_once_per_step():
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    assert weight.grad.item() == 4.0
    scaler.unscale_(optimizer)
    assert weight.grad.item() == 1.0
    with pytest.raises(RuntimeError, match="already been called on this optimizer"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="being called after step"):
        scaler.unscale_(optimizer)


def test_nothing_works_before_scale():
    scaler = torch.amp.GradScaler("cpu")
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.update()
    with pytest.raises(ValueError, match="must be a Tensor or an iterable"):
        scaler.scale(3)
    assert [t.item() for t in scaler.scale([torch.ones(()), torch.ones(())])] == [65536.0, 65536.0]


def test_state_travels():
    _, _, scaler = scaled_steps([1.0], init_scale=8.0)
    other = torch.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert (
        other.state_dict()
        == scaler.state_dict()
        == {"scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000, "_growth_tracker": 1}
    )


def test_disabled_scaler_does_nothing():
    scales, weight, scaler = scaled_steps([2.0], enabled=False)
    assert (scales, scaler.state_dict(), scaler.is_enabled()) == ([1.0], {}, False)
    assert weight == pytest.approx(0.8)


def test_a_fused_optimizer_unscales_itself():
    weight = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = torch.optim.SGD([weight], lr=0.1, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == pytest.approx(0.9)


def test_sparse_gradients_are_unscaled_where_they_are_stored():
    places, size = torch.tensor([[0, 1, 1], [2, 0, 0]]), (2, 3)
    parameter = torch.zeros(2, 3).requires_grad_()
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler("cpu")
    for values, found in (([16.0, 32.0, 64.0], 0.0), ([16.0, 32.0, float("inf")], 1.0)):
        parameter.grad = torch.sparse_coo_tensor(places, torch.tensor(values), size)
        answer = scaler._unscale_grads_(optimizer, torch.full((), 0.25), torch.zeros(()), False)
        assert answer[torch.device("cpu")].item() == found
        assert parameter.grad._values().tolist() == [value / 4 for value in values]


def test_a_scaler_that_is_handed_on_says_that_this_will_end():
    class Own(torch.optim.SGD):
        _step_supports_amp_scaling = True

        def step(self, closure=None, *, grad_scaler=None):
            assert isinstance(grad_scaler, torch.amp.GradScaler)

    parameter = torch.ones(1, requires_grad=True)
    optimizer, scaler = Own([parameter]), torch.amp.GradScaler("cpu", init_scale=2.0)
    scaler.scale(parameter.sum()).backward()
    with pytest.warns(FutureWarning, match="GradScaler is going to stop passing itself") as caught:
        scaler.step(optimizer)
    assert caught[0].filename == __file__
