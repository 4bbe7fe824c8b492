"""Forward-mode derivatives: tangents, levels, and what is refused. Figures are PyTorch's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.autograd import forward_ad as fw


@pytest.fixture
def pair():
    torch.manual_seed(0)
    return torch.randn(3, 4), torch.randn(3, 4)


def test_value_and_tangent(pair):
    value, direction = pair
    with fw.dual_level():
        dual = fw.make_dual(value, direction)
        primal, tangent = fw.unpack_dual(dual)
        made = fw.unpack_dual((dual.sin() * dual).sum(1))
    assert torch.equal(primal, value) and torch.equal(tangent, direction)
    torch.testing.assert_close(made.primal, torch.tensor([3.7195, 3.1180, 1.0004]), atol=1e-4, rtol=0)
    torch.testing.assert_close(made.tangent, torch.tensor([-1.8522, -2.3181, -2.2693]), atol=1e-4, rtol=0)
    assert not made.primal.requires_grad and not made.tangent.requires_grad


@pytest.mark.parametrize(
    "function, slope",
    [
        (lambda x: x * 3, lambda x, d: 3 * d),
        (lambda x: x.exp(), lambda x, d: x.exp() * d),
        (lambda x: (x * 2).mul_(x), lambda x, d: 4 * x * d),
        (lambda x: x @ x.T, lambda x, d: d @ x.T + x @ d.T),
        (lambda x: torch.softmax(x, 1), lambda x, d: torch.func.jvp(lambda t: torch.softmax(t, 1), (x,), (d,))[1]),
        (lambda x: torch.cat([x, x.relu()]), lambda x, d: torch.cat([d, d * (x > 0)])),
        (lambda x: x[1:, ::2], lambda x, d: d[1:, ::2]),
    ],
)
def test_tangents_of_ops(pair, function, slope):
    value, direction = pair
    with fw.dual_level():
        found = fw.unpack_dual(function(fw.make_dual(value, direction))).tangent
    torch.testing.assert_close(found, slope(value, direction))


def test_several_duals_add_up(pair):
    value, direction = pair
    with fw.dual_level():
        made = fw.unpack_dual((fw.make_dual(value, direction) * fw.make_dual(direction, value)).sum())
    torch.testing.assert_close(made.tangent, (value.pow(2) + direction.pow(2)).sum())


def test_what_no_dual_had_a_part_in_has_no_tangent(pair):
    value, direction = pair
    with fw.dual_level():
        dual = fw.make_dual(value, direction)
        assert fw.unpack_dual(value * 2).tangent is None
        assert fw.unpack_dual(dual.detach() * 2).tangent is None
        assert (fw.unpack_dual(dual * 0).tangent == 0).all()
        late = dual * 2
    assert fw.unpack_dual(late).tangent is None


def test_a_module_with_dual_parameters():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))
    x, params = torch.randn(6, 5), dict(module.named_parameters())
    tangents = {name: torch.rand_like(p) for name, p in params.items()}
    with fw.dual_level():
        duals = {name: fw.make_dual(p, tangents[name]) for name, p in params.items()}
        made = fw.unpack_dual(torch.func.functional_call(module, duals, (x,)))
    torch.testing.assert_close(made.tangent[:2], torch.tensor([[0.1726, 0.8725], [0.2682, 1.3757]]), atol=1e-4, rtol=0)
    assert made.tangent.requires_grad and made.primal.requires_grad


def test_gradients_of_tangents(pair):
    value, direction = pair
    x = value.clone().requires_grad_()
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, direction).pow(3).sum()).tangent
    (found,) = torch.autograd.grad(tangent, x)
    torch.testing.assert_close(found, 6 * value * direction)


def test_a_level_inside_no_grad(pair):
    value, direction = pair
    with torch.no_grad():
        with fw.dual_level():
            made = fw.unpack_dual(fw.make_dual(value, direction).sin())
        assert not torch.is_grad_enabled()
    torch.testing.assert_close(made.tangent, value.cos() * direction)


def test_complex_tangents(pair):
    z = torch.complex(*pair)
    with fw.dual_level():
        found = fw.unpack_dual(fw.make_dual(z, z * 1j).pow(2)).tangent
    torch.testing.assert_close(found, 2 * z * z * 1j)


def test_levels_by_hand(pair):
    level = fw.enter_dual_level()
    assert level == 0
    assert fw.unpack_dual(fw.make_dual(*pair, level=level), level=level).tangent is not None
    fw.exit_dual_level(level=level)


def test_what_is_refused(pair):
    value, direction = pair
    with pytest.raises(RuntimeError, match="no level exists, make sure to enter_dual_level"):
        fw.make_dual(value, direction)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
    with fw.dual_level():
        with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
            fw.enter_dual_level()
        with pytest.raises(RuntimeError, match=r"Tensor is of size \[3, 4\] while the given forward gradient is of size \[2\]"):
            fw.make_dual(value, torch.ones(2))
        with pytest.raises(ValueError, match=r"Expected primal to be floating point or complex, but got: torch\.int64"):
            fw.make_dual(value.long(), direction)
        with pytest.raises(ValueError, match=r"Expected tangent to be floating point or complex, but got: torch\.int64"):
            fw.make_dual(value, direction.long())
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(fw.make_dual(value, direction) * 2, direction)


# ---------------------------------------------------------------- ops with a forward derivative of their own


A = [[4.0, 1.0, 2.0], [1.0, 5.0, 3.0], [2.0, 3.0, 6.0]]
T = [[1.0, 2.0, 3.0], [0.0, 1.0, -1.0], [2.0, 0.0, 1.0]]  # not symmetric
ZEROS, STEPS = [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]
INF, NAN = float("inf"), float("nan")
Z, ZT = [[2, 1 - 1j], [1 + 1j, 5]], [[1, 2 + 1j], [2 - 1j, -1]]


def tangents(function, value, direction):
    with fw.dual_level():
        made = function(fw.make_dual(torch.tensor(value), torch.tensor(direction)))
        return [fw.unpack_dual(one).tangent for one in (made if isinstance(made, list | tuple) else [made])]


@pytest.mark.filterwarnings("ignore:.*degrees of freedom")
@pytest.mark.parametrize(
    "function, value, direction, expected",
    [
        (torch.linalg.cholesky, A, T, [[[0.25, 0, 0], [-0.0625, 0.1290, 0], [0.875, -0.6988, 0.1263]]]),
        (
            lambda a: torch.linalg.cholesky(a, upper=True),
            A,
            T,
            [[[0.25, -0.0625, 0.875], [0, 0.1290, -0.6988], [0, 0, 0.1263]]],
        ),
        (lambda a: torch.cholesky(a, True), A, T, [[[0.25, -0.0625, 0.875], [0, 0.1290, -0.6988], [0, 0, 0.1263]]]),
        (torch.linalg.eigvalsh, A, T, [[0.3905, 0.2380, 2.3715]]),
        (
            lambda a: torch.linalg.eigh(a, UPLO="U")[1].square(),
            A,
            T,
            [[[0.6331, -1.0447, 0.3449], [-0.6804, 0.9807, -0.3003], [0.0473, 0.0641, -0.0447]]],
        ),
        (lambda z: torch.linalg.cholesky(z, upper=True), Z, ZT, [[[0.3536, 1.2374 + 0.8839j], [0, -0.375]]]),
        (lambda z: torch.linalg.eigvalsh(z), Z, ZT, [[0.2425, -0.2425]]),
        # By small differences: the tangents that PyTorch has for this one are others.
        (
            torch.cholesky_inverse,
            [[2.0, 0.0], [1.0, 3.0]],
            [[1.0, 9.0], [2.0, 1.0]],
            [[[-0.1852, -0.0463], [-0.0463, -0.0741]]],
        ),
        (lambda x: torch.linalg.vector_norm(x, 3.5), ZEROS, STEPS, [0.0]),
        (lambda x: torch.linalg.vector_norm(x, 1.5), ZEROS, STEPS, [0.0]),
        (lambda x: torch.linalg.vector_norm(x, 2), ZEROS, STEPS, [0.0]),
        (lambda x: torch.linalg.vector_norm(x, 0), STEPS, STEPS, [0.0]),
        (lambda x: torch.linalg.vector_norm(x, 3.5), [], [], [0.0]),
        (lambda x: torch.norm(x, 3, dim=0), STEPS, STEPS, [3.3019]),
        (lambda z: torch.linalg.vector_norm(z, 3, dim=1, keepdim=True), Z, ZT, [[[1.1062], [-0.9295]]]),
        (lambda x: torch.var(x, correction=0), [], [], [0.0]),
        (lambda x: torch.var(x, 1, correction=0), [[], []], [[], []], [[0.0, 0.0]]),
        (lambda x: torch.std(x, correction=0), [1.0], [1.0], [0.0]),
        (lambda x: torch.std(x, correction=0), [], [], [NAN]),
        (torch.var_mean, [], [], [0.0, NAN]),
        (torch.std_mean, [], [], [NAN, NAN]),
        (torch.std_mean, [1.0, 2.0, 4.0], [1.0, 2.0, -3.0], [-2.2913, 0.0]),
        (
            lambda x: torch.nn.functional.max_unpool1d(x, torch.tensor([[[1, 1, 3]]]), 2),
            [[STEPS]],
            [[[0.1, 0.2, 0.3]]],
            [[[[0, 0.2, 0, 0.3, 0, 0]]]],
        ),
        (
            lambda x: torch.ops.aten.max_unpool2d(x, torch.tensor([[[1, 1, 3]]]), [2, 3]),
            [[STEPS]],
            [[[0.1, 0.2, 0.3]]],
            [[[[0, 0.2, 0], [0.3, 0, 0]]]],
        ),
        (
            lambda x: torch.ops.aten.max_unpool3d(x, torch.tensor([[[[1, 1, 3]]]]), [1, 2, 3], [1, 1, 1], [0, 0, 0]),
            [[[STEPS]]],
            [[[[0.1, 0.2, 0.3]]]],
            [[[[[0, 0.2, 0], [0.3, 0, 0]]]]],
        ),
        (lambda x: torch.logcumsumexp(x, 0), [1.0, -INF, 2.0], STEPS, [[1.0, 1.0, 2.4621]]),
        (lambda x: torch.logcumsumexp(x, 0), [-INF, -INF, 2.0], STEPS, [[0.0, 0.0, 3.0]]),
        (lambda x: torch.logcumsumexp(x, 0), [1.0, 60.0, 200.0], STEPS, [STEPS]),
    ],
)
def test_tangents_that_do_not_follow_from_gradients(function, value, direction, expected):
    found = tangents(function, value, direction)
    for one, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(one, torch.tensor(wanted, dtype=one.dtype), atol=1e-4, rtol=0, equal_nan=True)


@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x: x.zero_(), ZEROS),
        (lambda x: x.mul_(3), [0.3, 0.6, 0.9]),
        (lambda x: x.fill_(2), ZEROS),
        (lambda x: (x[1].zero_(), x)[1], [0.1, 0.0, 0.3]),
        (lambda x: x.exp_(), [0.2718, 1.4778, 6.0257]),
    ],
)
def test_a_dual_may_be_written_in_place(function, expected):
    value = torch.tensor(STEPS)
    with fw.dual_level():
        made = function(fw.make_dual(value, torch.tensor([0.1, 0.2, 0.3])))
        found = fw.unpack_dual(made).tangent
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-4, rtol=0)
    assert torch.equal(made.detach(), value)


def test_tangents_of_their_own_can_be_differentiated():
    x, direction = torch.tensor([1.0, 2.0, 4.0], requires_grad=True), torch.tensor([1.0, 2.0, -3.0])
    with fw.dual_level():
        tangent = fw.unpack_dual(torch.linalg.vector_norm(fw.make_dual(x, direction))).tangent
    (found,) = torch.autograd.grad(tangent, x)
    size = x.detach().norm()
    torch.testing.assert_close(found, direction / size - x.detach() * (x.detach() @ direction) / size**3)
    torch.testing.assert_close(
        torch.func.jacfwd(torch.var)(x.detach()), torch.tensor([-1.3333, -0.3333, 1.6667]), atol=1e-4, rtol=0
    )


def test_results_that_do_not_depend_on_a_dual_have_no_tangent():
    assert [t is None for t in tangents(torch.linalg.lu, A, T)] == [True, False, False]


def test_the_text_of_a_dual_tensor_has_its_tangent():
    with fw.dual_level():
        plain = torch.ones(2)
        dual = fw.make_dual(plain, torch.zeros(2))
        primal, tangent = fw.unpack_dual(dual)
        assert "tangent=tensor([0., 0.])" in repr(dual) and "tangent=tensor([0., 0.])" in repr(dual * 2)
        assert not any("tangent=" in repr(each) for each in (plain, primal, tangent))
    assert "tangent=" not in repr(dual)


def test_resize_of_earlier_releases_keeps_the_elements():
    x = torch.arange(6.0, requires_grad=True)
    y = torch.autograd._functions.Resize.apply(x, (2, 3))
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    assert y.shape == (2, 3) and x.grad.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(RuntimeError, match=r"requested resize to 4 \(4 elements in total\)"):
        torch.autograd._functions.Resize.apply(x, (4,))


def test_a_function_without_jvp_is_refused():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with fw.dual_level():
        with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom autograd.Function"):
            Double.apply(fw.make_dual(torch.ones(1), torch.ones(1)))
        assert Double.apply(torch.ones(1)).item() == 2


def test_a_jvp_must_change_the_tangent_of_a_dirty_input():
    class Double(torch.autograd.Function):
        changes = True

        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x.mul_(2))
            return x

        @staticmethod
        def jvp(ctx, tangent):
            return tangent.mul_(2) if Double.changes else tangent

    with fw.dual_level():
        tangent = torch.ones(1)
        dual = Double.apply(fw.make_dual(torch.ones(1), tangent))
        assert fw.unpack_dual(dual).tangent is tangent and tangent.item() == 2
        Double.changes = False
        with pytest.raises(RuntimeError, match="the jvp function must modify the corresponding gradient inplace"):
            Double.apply(fw.make_dual(torch.ones(1), torch.ones(1)))


def test_out_of_a_dual_is_refused():
    with fw.dual_level():
        dual, plain = fw.make_dual(torch.ones(2), torch.ones(2)), torch.ones(2)
        for call in (lambda: torch.add(plain, plain, out=dual), lambda: torch.add(dual, plain, out=torch.ones(2))):
            with pytest.raises(
                NotImplementedError, match="forward AD with add_out that does not support it because it is an out="
            ):
                call()
        with pytest.raises(RuntimeError, match="one of the arguments requires grad"):
            torch.add(dual, torch.ones(2, requires_grad=True), out=torch.ones(2))


def test_a_copy_of_a_dual_has_a_tangent_of_its_own():
    tangent = torch.ones(2)
    with fw.dual_level():
        copied = torch.zeros(2).copy_(fw.make_dual(torch.ones(2), tangent))
        unpacked = fw.unpack_dual(copied).tangent
        unpacked *= 2
        assert tangent.tolist() == [1, 1] and unpacked.tolist() == [2, 2]
