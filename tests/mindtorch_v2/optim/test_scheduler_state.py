"""Schedulers given tensors, schedulers made of schedulers, and what of their functions is saved; answers are torch 2.13's."""

from __future__ import annotations

import pickle
import types
import warnings

import pytest

import mindtorch_v2 as torch
from mindtorch_v2 import nn
from mindtorch_v2.optim import SGD, lr_scheduler
from mindtorch_v2.optim.lr_scheduler import ChainedScheduler, ConstantLR, CyclicLR, LinearLR, OneCycleLR, SequentialLR
from mindtorch_v2.optim.swa_utils import SWALR


def sgd(lr=0.1, **options) -> SGD:
    return SGD([nn.Parameter(torch.ones(1))], lr=lr, **options)


def rounded(values) -> list[float]:
    return [round(float(value), 6) for value in values]


def test_cyclic_copies_the_tensors_it_is_given() -> None:
    rate, most, low, high = (torch.tensor(value) for value in (0.1, 0.2, 0.8, 0.9))
    optimizer = sgd(rate, momentum=0.9)
    scheduler = CyclicLR(optimizer, base_lr=rate, max_lr=most, base_momentum=low, max_momentum=high)
    for given in (rate, most, low, high):
        given.mul_(0.5)
    group = optimizer.param_groups[0]
    assert rounded(scheduler.base_lrs + scheduler.max_lrs) == [0.1, 0.2]
    assert rounded([group["max_momentum"], group["base_momentum"]]) == [0.9, 0.8]


def test_one_cycle_copies_the_tensors_it_is_given() -> None:
    rate, low, high = (torch.tensor(value) for value in (0.1, 0.85, 0.95))
    optimizer = sgd(rate)
    OneCycleLR(optimizer, max_lr=rate, total_steps=10, base_momentum=low, max_momentum=high)
    for given in (rate, low, high):
        given.mul_(0.5)
    group = optimizer.param_groups[0]
    assert rounded([group["max_lr"], group["max_momentum"], group["base_momentum"]]) == [0.1, 0.95, 0.85]


def test_swalr_copies_the_tensor_it_is_given() -> None:
    rate, target = torch.tensor(0.1), torch.tensor(0.05)
    optimizer = sgd(rate)
    scheduler = SWALR(optimizer, swa_lr=target)
    target.mul_(0.5)
    rate.mul_(0.5)
    assert rounded([optimizer.param_groups[0]["swa_lr"], *scheduler.base_lrs]) == [0.05, 0.1]


def test_a_chain_in_a_sequence() -> None:
    optimizer = sgd()
    chain = ChainedScheduler([LinearLR(optimizer, 0.1, total_iters=5), ConstantLR(optimizer, 0.1, total_iters=5)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sequence = SequentialLR(optimizer, [chain, ConstantLR(optimizer, 0.5, total_iters=5)], milestones=[5])
        optimizer.step()
        sequence.step()
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0028)


def test_built_in_scale_functions_are_chosen_anew_from_a_saved_mode() -> None:
    scheduler = CyclicLR(sgd(momentum=0.9), 1, 5, mode="triangular2")
    assert isinstance(scheduler._scale_fn_ref, types.FunctionType)
    state = pickle.loads(pickle.dumps(scheduler.state_dict()))
    assert "_scale_fn_ref" not in state
    other = CyclicLR(sgd(momentum=0.9), 1, 5)
    other.load_state_dict(state)
    assert [other.scale_fn(n) for n in (1, 2, 3)] == [1.0, 0.5, 0.25]
    assert CyclicLR(sgd(momentum=0.9), 1, 5, mode="exp_range", gamma=0.5).scale_mode == "iterations"


def test_states_of_old_torch_name_the_annealing_function() -> None:
    scheduler = OneCycleLR(sgd(momentum=0.9), max_lr=25, total_steps=10, final_div_factor=2)
    del scheduler._anneal_func_type
    scheduler.load_state_dict({**scheduler.state_dict(), "anneal_func": OneCycleLR._annealing_linear})
    assert scheduler._anneal_func(0.0, 4.0, 0.25) == 1.0


def test_private_helpers_that_libraries_use() -> None:
    optimizer = sgd(torch.tensor(0.1))
    lr_scheduler._update_param_group_val(optimizer.param_groups[0], "lr", torch.tensor([0.5]))
    assert rounded(lr_scheduler._param_groups_val_list(optimizer, "lr")) == [0.5]
    assert lr_scheduler._format_param("x", optimizer, 3) == [3]
    with pytest.raises(
        ValueError, match="^x must have the same length as optimizer.param_groups. x has 2 values, param_groups"
    ):
        lr_scheduler._format_param("x", optimizer, [1, 2])
    scheduler = LinearLR(optimizer)
    with pytest.warns(UserWarning, match="please use `get_last_lr"):
        lr_scheduler._warn_get_lr_called_within_step(scheduler)
    with lr_scheduler._enable_get_lr_call(scheduler), warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.get_lr()
    with lr_scheduler._initial_mode(scheduler):
        assert scheduler._is_initial
    assert not scheduler._is_initial
