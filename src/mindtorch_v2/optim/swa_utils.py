"""Averaging weights: stochastic weight averaging and moving averages of a model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .. import _surface as torch
from .._autograd.grad_mode import no_grad
from .._core.dtype import int64
from .._core.tensor import Tensor
from .._ops.creation.from_data import tensor
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ._common import by_dtype
from ._extension_helpers import _get_foreach_kernels_supported_devices, _group_tensors_by_device_and_dtype
from ._lr.base import LRScheduler, _format_param, _warn_get_lr_called_within_step, check_optimizer
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

PARAM_LIST = tuple[Tensor, ...] | list[Tensor]


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def _is_continuous(value: Any) -> bool:
    return value.is_floating_point() or value.is_complex()


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """For lists of parameters: an exponential moving average, in place."""
    _check_decay(decay)

    @no_grad()
    def update(averaged: list[Any], current: list[Any], _: Any) -> None:
        if _is_continuous(averaged[0]):
            torch._foreach_lerp_(averaged, current, 1 - decay)
        else:
            for average, new in zip(averaged, current, strict=True):
                average.copy_(average * decay + new * (1 - decay))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """For lists of parameters: the mean over all updates, in place."""

    @no_grad()
    def update(averaged: list[Any], current: list[Any], num_averaged: Any) -> None:
        if _is_continuous(averaged[0]):
            torch._foreach_lerp_(averaged, current, 1 / (num_averaged + 1))
        else:
            changes = torch._foreach_sub(current, averaged)
            count = num_averaged + 1 if not isinstance(num_averaged, Tensor) else num_averaged.item() + 1
            torch._foreach_div_(changes, count)
            for average, change in zip(averaged, changes, strict=True):
                average.add_(change)

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """For one parameter: an exponential moving average."""
    _check_decay(decay)

    @no_grad()
    def update(averaged: Any, current: Any, num_averaged: Any) -> Any:
        return decay * averaged + (1 - decay) * current

    return update


def get_swa_avg_fn() -> Callable[..., Any]:
    """For one parameter: the mean of all that came."""

    @no_grad()
    def update(averaged: Any, current: Any, num_averaged: Any) -> Any:
        return averaged + (current - averaged) / (num_averaged + 1)

    return update


class AveragedModel(Module):
    """A copy of a model whose parameters average those of the model at each `update_parameters(model)`."""

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The averaged model's result."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Let the model's parameters take part in the average."""
        averaged = list(self._averaged(self.module))
        current = list(self._averaged(model))
        averages = [p.detach() for p in averaged]
        values = [p.detach().to(a.device) for p, a in zip(current, averaged, strict=True)]
        count = self.n_averaged
        if count == 0:
            for average, value in zip(averages, values, strict=True):
                average.copy_(value)
        elif self.multi_avg_fn is not None or self.avg_fn is None:
            average_all = self.multi_avg_fn or get_swa_multi_avg_fn()
            for averages_, values_ in by_dtype(averages, values):
                average_all(averages_, values_, count.to(averages_[0].device))
        else:
            for average, value in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, value, count.to(average.device)))
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(theirs.detach().to(mine.device))
        self.n_averaged += 1

    def _averaged(self, module: Module) -> Iterable[Any]:
        return chain(module.parameters(), module.buffers()) if self.use_buffers else module.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the running statistics of a model's batch norms anew, from all the data of a loader."""
    momenta = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
    if not momenta:
        return
    was_training = model.training
    model.train()
    for module in momenta:
        module.momentum = None  # a plain mean over all batches
    for batch in loader:
        data = batch[0] if isinstance(batch, list | tuple) else batch
        model(data if device is None else data.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """To a fixed rate `swa_lr` within `anneal_epochs`, along a cosine or a straight line."""

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos", last_epoch: int = -1
    ) -> None:
        check_optimizer(optimizer)
        for rate, group in zip(_format_param("swa_lr", optimizer, swa_lr), optimizer.param_groups, strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _share(self, step: int) -> float:
        """How much of the way is done after some steps."""
        done = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * done)) / 2 if self._anneal_strategy == "cos" else done

    def get_lr(self) -> list[Any]:
        """The rate of each group for the step that is counted now."""
        _warn_get_lr_called_within_step(self)
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._share(step - 1), self._share(step)
        rates = []
        for group in self.optimizer.param_groups:
            target = group["swa_lr"]
            # The rate from which the one in force came.
            start = target if before == 1 else (group["lr"] - before * target) / (1 - before)
            rates.append(target * now + start * (1 - now))
        return rates
