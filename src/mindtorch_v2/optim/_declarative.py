"""DeclarativeOptimizer: what an optimizer declares, and the constructor, state and step that follow from it.

An optimizer states the checks of its options, the state of a parameter and its update rules; this base does the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

from .._core.tensor import Tensor
from .._ops.creation.from_data import tensor
from ._common import by_dtype, evaluate, value_of, with_grad_mode, with_gradients
from ._extension_helpers import _device_dtype_check_for_fused
from ._options import check_capturable, check_fused, step_dtype
from .optimizer import Optimizer, Params

Group = dict[str, Any]
Check = Callable[[Mapping[str, Any]], None]
Initial = Callable[[Any, Group], Any]


class Hyperparameters(SimpleNamespace):
    """The options of one step by name, for the update rules; those that an optimizer lacks have the values below."""

    foreach: bool | None = None
    fused: bool | None = None
    maximize: bool = False
    capturable: bool = False
    differentiable: bool = False
    has_complex: bool = False
    has_sparse_grad: bool = False
    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None


class DeclarativeOptimizer(Optimizer):
    """An optimizer of which only the declarations below and the update rules are its own.

    The rules are static methods that take the hyperparameters, the parameters, their gradients and one list per name in
    `_rule_state`. `_single_tensor` loops over the parameters; `_multi_tensor` and `_fused` get the tensors of one device
    and dtype. A list is empty where the group's options leave that state out.
    """

    # Called in this order with all options; each raises for a value it refuses.
    _checks: ClassVar[tuple[Check, ...]] = ()
    # Options that came later than the first checkpoints, with the value that these are loaded with.
    _later_options: ClassVar[dict[str, Any]] = {}
    # A parameter's state: how each entry starts, in the order of state_dict().
    _state: ClassVar[dict[str, Initial]] = {}
    # Entries that checkpoints written long ago have as plain numbers.
    _counters: ClassVar[tuple[str, ...]] = ("step",)
    # Entries that exist only where this holds for the group.
    _state_conditions: ClassVar[dict[str, Callable[[Group], bool]]] = {}
    # The order in which the update rules take the entries.
    _rule_state: ClassVar[tuple[str, ...]] = ()
    # Options that the rules take apart: {"betas": ("beta1", "beta2")}.
    _unpacked: ClassVar[dict[str, tuple[str, ...]]] = {}
    # Whether the foreach rule takes a tensor's learning rate as a number, read once for all devices and dtypes.
    _reads_rate: ClassVar[bool] = False
    # The errors for gradients or parameters that the rules cannot deal with.
    _refuses_sparse: ClassVar[str | None] = None
    _refuses_complex: ClassVar[str | None] = None
    # Whether a fused step has yet to look at its parameters' devices and dtypes, which it does once.
    _need_device_dtype_check_for_fused: bool = True
    # The update rules. The second and third are there where the constructor takes `foreach` and `fused`.
    _single_tensor: ClassVar[Callable[..., None]]
    _multi_tensor: ClassVar[Callable[..., None]]
    _fused: ClassVar[Callable[..., None]]

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        for check in self._checks:
            check(defaults)
        super().__init__(params, defaults)
        check_fused(defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            for name, value in self._later_options.items():
                group.setdefault(name, value)
            self._make_counters(group)

    def _make_counters(self, group: Group) -> None:
        """Turn counters that were loaded as plain numbers into tensors."""
        fused = bool(group.get("fused"))
        beside = fused or group.get("capturable")
        for param in group["params"]:
            state = self.state.get(param, {})
            for name in self._counters:
                if name in state and not isinstance(state[name], Tensor):
                    device = param.device if beside else None
                    state[name] = tensor(float(state[name]), dtype=step_dtype(fused), device=device)

    # ------------------------------------------------------------------ a step

    @with_grad_mode
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update all parameters that have gradients; `closure` computes the loss again, which is then returned."""
        loss = None if closure is None else evaluate(closure)
        for group in self.param_groups:
            self._step_group(group)
        return loss

    def _step_group(self, group: Group) -> None:
        params, grads = self._with_grads(group)
        states = self._states(params, group)
        self._update(self._hyperparameters(group, params, grads), params, grads, *self._state_lists(states, group))

    def _with_grads(self, group: Group) -> tuple[list[Any], list[Any]]:
        """A group's parameters that have gradients, and the gradients."""
        params, grads = with_gradients(group["params"])
        if group.get("fused") and self._need_device_dtype_check_for_fused:
            for param in params:
                _device_dtype_check_for_fused(param)
            self._need_device_dtype_check_for_fused = False
        if self._refuses_complex is not None and any(param.is_complex() for param in params):
            raise RuntimeError(self._refuses_complex)
        if self._refuses_sparse is not None and any(grad.is_sparse for grad in grads):
            raise RuntimeError(self._refuses_sparse)
        return params, grads

    def _states(self, params: list[Any], group: Group) -> list[dict[str, Any]]:
        """The state of each parameter, initialized at its first step."""
        states = []
        for param in params:
            state = self.state[param]
            if not state:
                state.update(self._new_state(param, group))
            states.append(state)
        return states

    def _new_state(self, param: Any, group: Group) -> dict[str, Any]:
        absent = {name for name, holds in self._state_conditions.items() if not holds(group)}
        return {name: initial(param, group) for name, initial in self._state.items() if name not in absent}

    def _state_lists(self, states: list[dict[str, Any]], group: Group) -> list[list[Any]]:
        absent = {name for name, holds in self._state_conditions.items() if not holds(group)}
        return [[] if name in absent else [state[name] for state in states] for name in self._rule_state]

    def _hyperparameters(self, group: Group, params: list[Any], grads: list[Any]) -> Hyperparameters:
        options = Hyperparameters(**group)
        for name in self._unpacked:
            vars(options).update(zip(self._unpacked[name], group[name], strict=True))
        if options.foreach or options.fused:
            options.has_complex = any(param.is_complex() for param in params)
            options.has_sparse_grad = self._refuses_sparse is None and any(grad.is_sparse for grad in grads)
        if options.fused:  # set by a GradScaler for optimizers whose fused kernel unscales the gradients
            options.grad_scale = getattr(self, "grad_scale", None)
            options.found_inf = getattr(self, "found_inf", None)
        return options

    @classmethod
    def _update(cls, options: Hyperparameters, params: list[Any], grads: list[Any], *state_lists: list[Any]) -> None:
        """Run the rule that the options choose; the functional forms enter here."""
        if not params:
            return
        lists = (params, grads, *state_lists)
        if options.fused:
            for tensors in by_dtype(*lists):
                cls._fused(options, *tensors)
            return
        check_capturable(options.capturable)
        if options.foreach and not options.has_sparse_grad:
            if cls._reads_rate:
                options.lr = value_of(options.lr)
            for tensors in by_dtype(*lists):
                cls._multi_tensor(options, *tensors)
        else:
            cls._single_tensor(options, *lists)
