"""What autograd refuses and warns of, in torch's words: found by reading PyTorch's own tests."""

from __future__ import annotations

import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts


def test_a_graph_of_gradients_is_warned_of_each_time_if_asked_for():
    x = torch.ones(2, requires_grad=True)
    torch.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="Using backward.. with create_graph=True"):
                (x * x).backward(torch.ones(2), create_graph=True)
            x.grad = None
    finally:
        torch.set_warn_always(False)


def test_an_anomaly_is_printed_where_warnings_are_errors(capsys):
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = torch.autograd.detect_anomaly()
    with mode, warnings.catch_warnings(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        warnings.simplefilter("error")
        y = x + 1
        z = y**2
        y += 1
        torch.autograd.grad(z.sum(), x)
    assert "Error detected in PowBackward0" in capsys.readouterr().err


def test_volatile_is_gone():
    x = torch.ones(2)
    assert "volatile" not in dir(x)
    with pytest.warns(UserWarning, match="Variable.volatile is always False"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="now has no effect"):
        x.volatile = True


def test_real_inputs_of_complex_results_get_real_gradients_silently():
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    x.to(torch.complex128).sum().abs().backward()
    assert x.grad.dtype is torch.float64 and x.grad.tolist() == [1, 1]


def test_leaves_are_resized_in_inference_mode_alone():
    with torch.inference_mode():
        x = torch.ones(1, 2, 3, requires_grad=True)
        assert x.resize_(1, 2).shape == (1, 2) and x.requires_grad
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        torch.ones(3, requires_grad=True).resize_(2)


@pytest.mark.parametrize("function", [torch.scatter_reduce, torch.index_reduce])
@pytest.mark.parametrize(("zeros", "refused"), [([0.0, 0.0], True), ([0.0, 2.0], False)])
def test_second_derivatives_of_products_with_two_zeros_are_refused(function, zeros, refused):
    self = torch.ones(1, dtype=torch.float64, requires_grad=True)
    source = torch.tensor(zeros, dtype=torch.float64, requires_grad=True)
    result = function(self, 0, torch.tensor([0, 0]), source, "prod")
    (grad,) = torch.autograd.grad(result.sum(), source, create_graph=True)
    if refused:
        with pytest.raises(RuntimeError, match="Double backward is unsupported for src when >1 zeros"):
            grad.sum().backward()
    else:
        grad.sum().backward()


@pytest.mark.parametrize(
    ("listed", "kind", "message"),
    [
        ([2], ValueError, "Expected op in `op_list` to be an OpOverload but got: 2"),
        ([torch.ops.aten.sin], ValueError, "update the OpOverloadPacket to a specific OpOverload"),
        (2, TypeError, "either a function or a list of ops."),
    ],
)
def test_policies_of_selective_checkpoints_are_checked(listed, kind, message):
    with pytest.raises(kind, match=message):
        create_selective_checkpoint_contexts(listed)


def test_a_selective_checkpoint_is_recomputed_once():
    def policy(ctx, op, *args, **kwargs):
        kept = op == torch.ops.aten.sin.default
        return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE

    x = torch.ones(3, requires_grad=True)
    out = checkpoint(
        lambda v: v.sin().cos().exp(),
        x,
        use_reentrant=False,
        context_fn=lambda: create_selective_checkpoint_contexts(policy),
    )
    out.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.sum().backward(retain_graph=True)
