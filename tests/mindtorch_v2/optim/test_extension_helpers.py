"""torch's private helpers of `torch.optim.optimizer`, which optimizers of other libraries import; answers are torch 2.13's."""

from __future__ import annotations

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.optim import optimizer as helpers
from mindtorch_v2.utils import _foreach_utils


def test_all_names_are_there() -> None:
    names = ["Args", "DeviceDict", "DeviceDtypeDict", "GlobalOptimizerPostHook", "GlobalOptimizerPreHook", "Indices", "Kwargs"]
    names += [
        "ParamsT",
        "StateDict",
        "TensorListList",
        "_RequiredParameter",
        "_capturable_doc",
        "_differentiable_doc",
        "required",
    ]
    names += ["_foreach_doc", "_fused_doc", "_global_optimizer_post_hooks", "_global_optimizer_pre_hooks", "_maximize_doc"]
    assert [name for name in names if not hasattr(helpers, name)] == []


def test_defaults_are_chosen_by_device() -> None:
    params = [nn.Parameter(torch.ones(2)), None, torch.ones(2)]
    assert helpers._default_to_fused_or_foreach(params, False) == (False, False)
    assert helpers._default_to_fused_or_foreach(params, False, use_fused=True) == (True, False)
    assert helpers._default_to_fused_or_foreach(params, True, use_fused=True) == (False, False)
    assert helpers._default_to_fused_or_foreach([torch.ones(2, dtype=torch.int64)], False, use_fused=True) == (False, False)


def test_devices_of_fused_steps() -> None:
    helpers._device_dtype_check_for_fused(torch.ones(2))
    message = (
        r"^`fused=True` requires all the params to be floating point Tensors of supported devices: \['mps', 'cuda', .*cpu$"
    )
    with pytest.raises(RuntimeError, match=message):
        helpers._device_dtype_check_for_fused(torch.ones(2, dtype=torch.int64))
    assert "xla" in helpers._get_capturable_supported_devices()
    assert "xla" not in helpers._get_capturable_supported_devices(supports_xla=False)


def test_values() -> None:
    assert (helpers._get_value(torch.tensor(2.0)), helpers._get_value(3)) == (2.0, 3)
    assert helpers._to_scalar(torch.tensor([2.0])).dim() == 0
    assert helpers._to_scalar(3) == 3
    assert helpers._get_scalar_dtype() is torch.float32
    assert helpers._stack_if_compiling([1]) == [1]
    params, grads = [torch.ones(2, dtype=torch.complex64), torch.ones(2)], [torch.ones(2, dtype=torch.complex64), torch.ones(2)]
    helpers._view_as_real(params, grads)
    assert [tuple(t.shape) for t in params + grads] == [(2, 2), (2,), (2, 2), (2,)]


def test_groups_of_tensors() -> None:
    single, double = torch.ones(2), torch.ones(3, dtype=torch.float64)
    for group in (_foreach_utils._group_tensors_by_device_and_dtype, helpers.Optimizer._group_tensors_by_device_and_dtype):
        grouped = group([[single, double, single], [None, double, None], []], with_indices=True)
        assert [(str(key[1]), indices) for key, (_, indices) in grouped.items()] == [
            ("torch.float32", [0, 2]),
            ("torch.float64", [1]),
        ]
        (firsts, seconds, thirds), _ = next(iter(grouped.values()))
        assert (firsts[1] is single, seconds, thirds) == (True, [None, None], [])


def test_grad_mode_of_a_step_follows_the_defaults() -> None:
    class Mine(torch.optim.Optimizer):
        @helpers._use_grad_for_differentiable
        def step(self, closure=None):
            return torch.is_grad_enabled()

    param = nn.Parameter(torch.ones(1))
    assert Mine([param], {"differentiable": False}).step() is False
    assert Mine([param], {"differentiable": True}).step() is True


def test_nadam_differentiates_its_product_of_momenta() -> None:
    product = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    start = torch.ones(3, dtype=torch.float64, requires_grad=True)
    param = start.clone()
    param.grad = torch.full((3,), 0.5, dtype=torch.float64)
    optimizer = torch.optim.NAdam([param], lr=0.9, differentiable=True)
    optimizer.state[param].update(step=torch.tensor(10.0), exp_avg=start * 0, exp_avg_sq=start * 1, mu_product=product.clone())
    optimizer.step()
    (grad,) = torch.autograd.grad(param.sum(), product)
    assert grad.item() == pytest.approx(-0.0599, abs=1e-4)
