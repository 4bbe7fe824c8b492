"""LRScheduler: counts steps and sets the learning rate of each parameter group."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Sequence
from typing import Any, Self
from weakref import ref

from ..._core.cpython import without_signals_at_entry
from ..._core.tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_RESUMED = (
    "param 'initial_lr' is not specified in param_groups[{}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n1. You're trying to resume training from a checkpoint but haven't properly loaded "
    "the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run (use last_epoch=-1 instead)"
)
_OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. Please, make sure "
    "to call `optimizer.step()` before `lr_scheduler.step()`. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
_TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def own(value: Any) -> Any:
    """A number, or a copy of a tensor, which its owner may change."""
    return value.clone() if isinstance(value, Tensor) else value  # type: ignore[attr-defined]


def check_optimizer(optimizer: Any) -> None:
    """TypeError for what is no Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _update_param_group_val(param_group: dict[str, Any], key: str, val: Any) -> None:
    """Change a group's option; one that is a tensor stays that tensor."""
    current = param_group[key]
    if isinstance(current, Tensor):
        current.fill_(val.item() if isinstance(val, Tensor) else val)  # type: ignore[attr-defined]
    else:
        param_group[key] = val


def _param_groups_val_list(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of all groups, tensors as copies."""
    return [own(group[key]) for group in optimizer.param_groups]


def _format_param(name: str, optimizer: Optimizer, param: Any) -> list[Any]:
    """One value for each parameter group, from one for all or a list; tensors are copied."""
    if isinstance(param, list | tuple):
        if len(param) != len(optimizer.param_groups):
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(param)} "
                f"values, param_groups has {len(optimizer.param_groups)}."
            )
        return [own(each) for each in param]
    return [own(param) for _ in optimizer.param_groups]


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """Warn about a call of `get_lr` that is not a step's own."""
    if not lr_scheduler._get_lr_called_within_step:
        warnings.warn(
            "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", UserWarning, stacklevel=3
        )


class _enable_get_lr_call:
    """Inside the block, `get_lr` of a scheduler may be called without a warning."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> Self:
        self.o._get_lr_called_within_step = True
        return self

    @without_signals_at_entry
    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.o._get_lr_called_within_step = False


class _initial_mode:
    """Inside the block, a scheduler sets its first rates."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> None:
        self.o._is_initial = True

    @without_signals_at_entry
    def __exit__(self, type: Any, value: Any, traceback: Any) -> None:
        self.o._is_initial = False


class LRScheduler:
    """Base of schedulers. A scheduler defines `get_lr`, the rates of all groups for `self.last_epoch`.

    `get_lr` may build on the rates in force, so that several schedulers can act on one optimizer.
    """

    __module__ = "mindtorch_v2.optim.lr_scheduler"

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", own(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_RESUMED.format(index))
        self.base_lrs = _param_groups_val_list(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _count_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the rates for the first epoch."""
        self._step_count = 0
        with _initial_mode(self):
            self.step()

    def state_dict(self) -> dict[str, Any]:
        """All attributes but the optimizer, to be loaded by load_state_dict()."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what state_dict() gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> Sequence[Any]:
        """The rates of all groups for the epoch in `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Count a step and set the rates for it in all groups."""
        self._check_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _check_order(self) -> None:
        if self._step_count == 1:
            if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
                warnings.warn(_OVERRIDDEN, UserWarning, stacklevel=3)
            elif not self.optimizer._opt_called:
                warnings.warn(_TOO_EARLY, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed_form is None else closed_form()
        self._set_lr(values)

    def _set_lr(self, values: Sequence[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            _update_param_group_val(group, "lr", lr)
        self._last_lr = _param_groups_val_list(self.optimizer, "lr")


_LRScheduler = LRScheduler


def _count_steps(optimizer: Optimizer) -> None:
    """Have the optimizer note that it has stepped, so that a scheduler which steps first can say so."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    step = optimizer.step.__func__  # type: ignore[attr-defined]
    optimizer_ref = ref(optimizer)

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        stepping = optimizer_ref()
        assert stepping is not None
        stepping._opt_called = True
        return step.__get__(stepping, type(stepping))(*args, **kwargs)

    run._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = run  # type: ignore[method-assign]


def saved_callables(functions: Sequence[Any]) -> list[Any]:
    """Of functions nothing is saved; of objects that can be called, their attributes."""
    return [None if isinstance(function, types.FunctionType) else function.__dict__.copy() for function in functions]
