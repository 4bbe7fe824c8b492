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


@pytest.mark.parametrize("function, slope", [
    (lambda x: x * 3, lambda x, d: 3 * d),
    (lambda x: x.exp(), lambda x, d: x.exp() * d),
    (lambda x: (x * 2).mul_(x), lambda x, d: 4 * x * d),
    (lambda x: x @ x.T, lambda x, d: d @ x.T + x @ d.T),
    (lambda x: torch.softmax(x, 1), lambda x, d: torch.func.jvp(lambda t: torch.softmax(t, 1), (x,), (d,))[1]),
    (lambda x: torch.cat([x, x.relu()]), lambda x, d: torch.cat([d, d * (x > 0)])),
    (lambda x: x[1:, ::2], lambda x, d: d[1:, ::2]),
])
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
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex, but got: torch.int64"):
            fw.make_dual(value.long(), direction)
        with pytest.raises(ValueError, match="Expected tangent to be floating point or complex, but got: torch.int64"):
            fw.make_dual(value, direction.long())
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(fw.make_dual(value, direction) * 2, direction)
