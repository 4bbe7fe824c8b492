"""torch.utils.checkpoint: what is computed again, when, and what may go wrong."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointError,
    CheckpointPolicy,
    GraphExecGroup,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)


def x2() -> torch.Tensor:
    return torch.tensor([0.5, -1.5], requires_grad=True)


def plain(function) -> list[float]:
    x = x2()
    function(x).sum().backward()
    return x.grad.tolist()


def block(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x) * x


@pytest.mark.parametrize("reentrant", [True, False])
def test_gradients_are_the_same(reentrant):
    modes = []

    def noted(x):
        modes.append(torch.is_grad_enabled())
        return block(x)

    x = x2()
    checkpoint(noted, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.tolist() == plain(block) and modes == [not reentrant, True]


@pytest.mark.parametrize("reentrant", [True, False])
def test_random_numbers_are_the_same_the_second_time(reentrant):
    masks = []

    def dropped(x):
        mask = torch.rand(2)
        masks.append(mask.tolist())
        return (x * mask).exp()

    torch.manual_seed(0)
    x = x2()
    y = checkpoint(dropped, x, use_reentrant=reentrant).sum()
    after = torch.rand(1).item()
    y.backward()
    assert masks[0] == masks[1]
    torch.manual_seed(0)
    torch.rand(2)
    assert torch.rand(1).item() == after


def test_keyword_arguments_and_nesting():
    x = x2()

    def outer(x, scale):
        return checkpoint(block, x * scale, use_reentrant=False)

    checkpoint(outer, x, use_reentrant=False, scale=2.0).sum().backward()
    assert x.grad.tolist() == pytest.approx(plain(lambda x: block(x * 2.0)))


def test_autograd_grad_works_without_reentrancy():
    x = x2()
    assert torch.autograd.grad(checkpoint(block, x, use_reentrant=False).sum(), x)[0].tolist() == plain(block)
    with pytest.raises(RuntimeError, match=r"torch\.utils\.checkpoint is incompatible with \.grad\(\)"):
        torch.autograd.grad(checkpoint(block, x, use_reentrant=True).sum(), x)


def test_a_retained_graph_computes_again_for_each_pass():
    calls = []
    x = x2()
    y = checkpoint(lambda x: (calls.append(1), block(x))[1], x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert len(calls) == 3 and x.grad.tolist() == pytest.approx([2 * g for g in plain(block)])


@pytest.mark.parametrize("early", [True, False])
def test_recomputation_ends_when_everything_is_there(early):
    reached = []

    def function(x):
        y = x.exp() * x
        reached.append(1)
        return y + 1

    x = x2()
    with set_checkpoint_early_stop(early):
        y = checkpoint(function, x, use_reentrant=False)
    y.sum().backward()
    assert len(reached) == (1 if early else 2)


def test_without_grad_it_is_just_the_call():
    with torch.no_grad():
        assert not checkpoint(block, x2(), use_reentrant=False).requires_grad


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_sequence_in_parts(reentrant):
    stages = [torch.tanh, torch.sin, torch.exp, torch.tanh, torch.sin]

    def together(x):
        for stage in stages:
            x = stage(x)
        return x

    x = x2()
    checkpoint_sequential(stages, 2, x, use_reentrant=reentrant).sum().backward()
    assert x.grad.tolist() == pytest.approx(plain(together))


def test_a_function_that_does_something_else_the_second_time():
    for second, message in (
        (lambda x: x.sin(), "A different number of tensors was saved during the original"),
        (lambda x: torch.cat((x, x)).sin() * torch.cat((x, x)).cos(), "have different metadata"),
        (lambda x: x.sin() * x.cos() * x, "trying to save more tensors during recomputation"),
    ):
        calls = []

        def function(x, second=second, calls=calls):
            calls.append(1)
            return x.sin() * x.cos() if len(calls) == 1 else second(x)

        x = x2()
        with pytest.raises(CheckpointError, match=message), set_checkpoint_early_stop(False):
            checkpoint(function, x, use_reentrant=False).sum().backward()


def test_arguments():
    x = x2()
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        checkpoint(block, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        checkpoint(block, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(block, x, use_reentrant=True, scale=3)
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(block, x, use_reentrant=False, determinism_check="some")


def test_what_a_policy_keeps_is_not_computed_again():
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((ctx.is_recompute, str(op)))
        assert isinstance(ctx.op_output, torch.Tensor)
        return CheckpointPolicy.MUST_SAVE if "tanh" in str(op) else CheckpointPolicy.PREFER_RECOMPUTE

    x = x2()
    contexts = lambda: create_selective_checkpoint_contexts(policy)  # noqa: E731
    checkpoint(block, x, use_reentrant=False, context_fn=contexts).sum().backward()
    assert x.grad.tolist() == plain(block)
    assert len(seen) > 1 and not any(recompute for recompute, _ in seen)  # it is not asked again


def test_a_policy_is_not_asked_about_detach():
    """The figures and the list are torch's."""
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append(str(op))
        return CheckpointPolicy.MUST_SAVE

    x = torch.ones(3, requires_grad=True)
    contexts = lambda: create_selective_checkpoint_contexts(policy)  # noqa: E731
    checkpoint(lambda x: (x.sin().detach() * x.cos()).sum(), x, use_reentrant=False, context_fn=contexts).backward()
    assert seen == ["aten.sin.default", "aten.cos.default", "aten.mul.Tensor", "aten.sum.default"]
    torch.testing.assert_close(x.grad, torch.full((3,), -0.70807338))
    assert torch.ops.aten.detach.default in SAC_IGNORED_OPS


@pytest.mark.parametrize(
    ("again", "message"),
    [
        (
            lambda x: x.exp().sum(),
            r"^aten\.exp\.default encountered during backward but not found in storage\. This can happen",
        ),
        (lambda x: x.sin().sin().sum(), r"^aten\.sin\.default invocation index 1 encountered during backward but not found"),
    ],
)
def test_another_computation_under_a_policy_is_told(again, message):
    contexts = lambda: create_selective_checkpoint_contexts([torch.ops.aten.sin.default])  # noqa: E731
    x = torch.ones(3, requires_grad=True)
    function = _alternating(lambda x: x.sin().sum(), again)
    with set_checkpoint_early_stop(False), pytest.raises(RuntimeError, match=message):
        checkpoint(function, x, use_reentrant=False, context_fn=contexts).backward()


@pytest.mark.parametrize(("grouped", "calls"), [(False, 3), (True, 2)])
def test_backward_passes_of_a_group_compute_a_region_again_once(grouped, calls):
    counted = []

    def function(x):
        counted.append(x)
        return x.sin().exp(), x.cos().exp()

    x = torch.ones(3, requires_grad=True)
    with set_checkpoint_early_stop(False):
        first, second = checkpoint(function, x, use_reentrant=False)
        with GraphExecGroup() if grouped else nullcontext():
            first.sum().backward()
            second.sum().backward()
    assert len(counted) == calls
    torch.testing.assert_close(x.grad, torch.full((3,), -0.19102585))


def test_groups_are_not_nested():
    with (
        GraphExecGroup(),
        pytest.raises(RuntimeError, match="^GraphExecGroup contexts cannot be nested. Already inside group <"),
    ):
        GraphExecGroup().__enter__()
    assert GraphExecGroup._get_current_group() is None


def _alternating(first, second):
    calls = []

    def fn(x):
        calls.append(x)
        return (first if len(calls) == 1 else second)(x)

    return fn


@pytest.mark.parametrize("by_argument", [True, False])
def test_debug_lists_the_ops_of_both_computations(by_argument):
    x = torch.ones(2, requires_grad=True)
    fn = _alternating(lambda x: x.sin().exp(), lambda x: x.sin() * torch.tensor([[1.0, 2.0]]))
    with nullcontext() if by_argument else set_checkpoint_debug_enabled(True):
        out = checkpoint(fn, x, use_reentrant=False, debug=by_argument)
    with pytest.raises(CheckpointError, match="because you passed `debug=True` to checkpoint and") as raised:
        out.sum().backward()
    text = str(raised.value)
    first, second = text.split("Operations executed during the original forward:")[1].split("during recomputation:")
    assert "= torch.ops.aten.sin.default($0)" in first and "= torch.ops.aten.exp.default($1)" in first
    assert "$1: float32[2] = torch.ops.aten.sin.default($0)" in second and "aten.exp" not in second
    assert f"{__file__}:" in text and "(1 of 2 in original)" in text


def test_debug_refuses_contexts_and_can_be_switched_off():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        checkpoint(torch.sin, x, use_reentrant=False, debug=True, context_fn=lambda: (nullcontext(), nullcontext()))
    fn = _alternating(lambda x: x.sin().exp(), lambda x: x.sin() * torch.tensor([[1.0, 2.0]]))
    with set_checkpoint_debug_enabled(False):
        out = checkpoint(fn, x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match="have different metadata"):
        out.sum().backward()


def test_gradients_inside_a_function_that_is_computed_again_as_a_whole():
    def fn(x):
        (inner,) = torch.autograd.grad(x.sin().exp(), x)
        return x.sin().exp().sin() + inner

    x = torch.tensor(0.5, requires_grad=True)
    fn(x).backward()
    expected, x.grad = x.grad, None
    with set_checkpoint_early_stop(False):
        checkpoint(fn, x, use_reentrant=False).backward()
    assert torch.allclose(x.grad, expected)
