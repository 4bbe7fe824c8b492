"""Optimizer: parameter groups, per-parameter state, hooks, saving and loading; what all optimizers share."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any, Self, TypeAlias, TypeVar

from .._autograd.grad_mode import no_grad
from .._autograd.handles import Handle
from .._core.dtype import float32
from .._core.tensor import Tensor
from .._dispatch import entry_globals, observer
from ._common import GRAD
from ._extension_helpers import (
    Args,
    DeviceDict,
    DeviceDtypeDict,
    Indices,
    Kwargs,
    ParamsT,
    StateDict,
    TensorListList,
    _capturable_doc,
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _differentiable_doc,
    _disable_dynamo_if_unsupported,
    _foreach_doc,
    _foreach_supported_types,
    _fused_doc,
    _get_capturable_supported_devices,
    _get_foreach_kernels_supported_devices,
    _get_fused_kernels_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _group_tensors_by_device_and_dtype,
    _maximize_doc,
    _params_doc,
    _stack_if_compiling,
    _to_scalar,
    _use_grad_for_differentiable,
    _view_as_real,
)

Params = Iterable[Any]
Step = TypeVar("Step", bound=Callable[..., Any])

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_after_step: OrderedDict[int, Callable[[], Any]] = OrderedDict()


class _RequiredParameter:
    """Stands for a group option that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


GlobalOptimizerPreHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], tuple[Args, Kwargs] | None]
GlobalOptimizerPostHook: TypeAlias = Callable[["Optimizer", Args, Kwargs], None]


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return Handle(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> Handle:
    """Call `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return Handle(_global_optimizer_post_hooks, hook)


# ---------------------------------------------------------------- the class


class Optimizer:
    """Base of all optimizers. `params` are tensors, (name, tensor) pairs, or dicts with "params" and own options."""

    OptimizerPreHook: TypeAlias = Callable[[Self, Args, Kwargs], tuple[Args, Kwargs] | None]  # type: ignore[misc]
    OptimizerPostHook: TypeAlias = Callable[[Self, Args, Kwargs], None]  # type: ignore[misc]

    param_groups: list[dict[str, Any]]
    state: defaultdict[Any, Any]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hooks()
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got " + params.type()
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)
        # Set by schedulers once they count this optimizer's steps.
        self._opt_called = False

    def _make_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def _patch_step_function(self) -> None:
        """Give the class's step its span and its hooks, once per class, so that subclasses need not do so.

        Optimizers that wrap another and do not call `Optimizer.__init__` call this by torch's name.
        """
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _watched(cls.step)  # type: ignore[method-assign]

    @staticmethod
    def profile_hook_step(func: Step) -> Step:
        """A step inside its span and with its hooks, as that of every class gets: for steps that are assigned later."""
        return _watched(func)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ("_optimizer_step_pre_hooks", "_optimizer_state_dict_pre_hooks"):
            if name not in self.__dict__:
                self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [type(self).__name__ + " ("]
        for index, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {index}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join([*lines, ")"])

    # ------------------------------------------------------------------ stepping

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters; `closure` computes the loss again and returns it."""
        raise NotImplementedError

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or with `set_to_none=False` set them to zero."""
        began = observer.now() if entry_globals.observers_active else 0
        try:
            for group in self.param_groups:
                for param in group["params"]:
                    plain = param.__class__.grad is GRAD
                    try:
                        grad = param._grad if plain else param.grad
                    except AttributeError:  # a tensor that never required grad
                        grad = None
                    if grad is None:
                        continue
                    if set_to_none:
                        if plain:
                            param._grad = None
                        else:
                            param.grad = None
                        continue
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()
        finally:
            if began:
                observer.end_span(f"Optimizer.zero_grad#{type(self).__name__}.zero_grad", began)

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return other (args, kwargs)."""
        return Handle(self._optimizer_step_pre_hooks, hook)

    def _optimizer_step_code(self) -> None:
        """Shows the optimizer to a recording, after its step, since many make their state with the first one."""
        observer.tell_optimizer_step(self)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> Handle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return Handle(self._optimizer_step_post_hooks, hook)

    # ------------------------------------------------------------------ groups

    @staticmethod
    def _group_tensors_by_device_and_dtype(
        tensorlistlist: TensorListList, with_indices: bool = False
    ) -> dict[Any, tuple[TensorListList, Indices]]:
        """The lists cut into groups of one device and dtype."""
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Optimize more parameters, with options of their own where the group gives them."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = _tensors_of(param_group)
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            is_optimizable = param.is_leaf or getattr(param, "retains_grad", False)
            if not is_optimizable and not self.defaults.get("differentiable"):
                raise ValueError("can't optimize a non-leaf Tensor")
        param_group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len({id(p) for p in params}) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause "
                "an error; see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        known = {id(p) for group in self.param_groups for p in group["params"]}
        if not known.isdisjoint(id(p) for p in params):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups:
            named = "param_names" in param_group
            if named != ("param_names" in self.param_groups[0]):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with' if named else 'without'} names to the optimizer"
                )
        self.param_groups.append(param_group)

    # ------------------------------------------------------------------ saving and loading

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` before state_dict()."""
        return _registered(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` after state_dict(); what it returns takes the result's place."""
        return _registered(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns is loaded instead."""
        return _registered(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> Handle:
        """Call `hook(optimizer)` after loading."""
        return _registered(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """State and groups, with parameters replaced by their numbers."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(p)] for p in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    @no_grad()
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over state and group options that state_dict() gave; the parameters stay."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        groups, saved_groups = self.param_groups, deepcopy(state_dict["param_groups"])
        if len(groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(groups, saved_groups, strict=True)):
            raise ValueError("loaded state dict contains a parameter group that doesn't match the size of optimizer's group")
        own = chain.from_iterable(group["params"] for group in groups)
        saved = chain.from_iterable(group["params"] for group in saved_groups)
        params = dict(zip(saved, own, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _fitted(params[key], value, saved_groups, key)
            else:
                state[key] = value
        updated = [_updated_group(group, new) for group, new in zip(groups, saved_groups, strict=True)]
        self.__setstate__({"state": state, "param_groups": updated})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)


def _watched(step: Step) -> Step:
    """A step inside its span, with hooks before and after it."""

    @functools.wraps(step)
    def run(*args: Any, **kwargs: Any) -> Any:
        self = args[0]
        began = observer.now() if entry_globals.observers_active else 0
        try:
            if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                    changed = hook(self, args, kwargs)
                    if changed is None:
                        continue
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {changed}.")
                    args, kwargs = changed
            result = step(*args, **kwargs)
            if entry_globals.observers_active:
                self._optimizer_step_code()
            if _global_optimizer_post_hooks or self._optimizer_step_post_hooks:
                for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                    hook(self, args, kwargs)
        finally:
            if began:
                observer.end_span(f"Optimizer.step#{type(self).__name__}.step", began)
        if _after_step:
            for called in list(_after_step.values()):  # another thread may add one: a profile that begins meanwhile
                called()
        return result

    run.hooked = True  # type: ignore[attr-defined]
    return run  # type: ignore[return-value]


def call_after_steps(function: Callable[[], Any]) -> Handle:
    """Call a function after every step of every optimizer, once the step's range has ended: a profiler's step() goes there."""
    return Handle(_after_step, function)


def _registered(hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool) -> Handle:
    handle = Handle(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _tensors_of(group: dict[str, Any]) -> list[Any]:
    """What a group has under "params", as a list; the names of (name, tensor) pairs go to the group."""
    params = group["params"]
    if isinstance(params, Tensor):
        params = [params]
    elif isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of "
            "tensors in sets will change between runs. Please use a list instead."
        )
    return _take_names(list(params), group)


def _take_names(params: list[Any], group: dict[str, Any]) -> list[Any]:
    """The tensors of (name, tensor) pairs; the names go to the group."""
    if not any(isinstance(param, tuple) for param in params):
        return params
    if not all(isinstance(param, tuple) for param in params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["param_names"] = [name for name, _ in params]
    return [param for _, param in params]


def _updated_group(group: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    new["params"] = group["params"]
    if "param_names" in group and "param_names" not in new:
        new["param_names"] = group["param_names"]
    return new


def _fitted(param: Tensor, value: Any, groups: list[dict[str, Any]], number: Any, key: Hashable = None) -> Any:
    """Loaded state in the dtype and on the device of its parameter; step counters keep their own."""
    if isinstance(value, Tensor):
        if key == "step":
            group = next(g for g in groups if number in g["params"])
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)
    if isinstance(value, dict):
        return {k: _fitted(param, v, groups, number, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return type(value)(_fitted(param, v, groups, number) for v in value)  # type: ignore[call-arg]
    return value
