"""torch._functorch.make_functional: modules as functions of their parameters, the older way; `torch.func` is the newer."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.registry import aten
from ..func import functional_call
from ..nn.modules.module import Module

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "make_functional",
    "make_functional_with_buffers",
]


def _emptied(model: Module, disable_autograd_tracking: bool) -> tuple[Module, dict[str, Any], dict[str, Any]]:
    """A copy of a module, and its parameters and buffers by name."""
    parameters: dict[str, Any] = dict(model.named_parameters())
    if disable_autograd_tracking:
        parameters = {name: parameter.detach() for name, parameter in parameters.items()}
    return copy.deepcopy(model), parameters, dict(model.named_buffers())


class FunctionalModule(Module):
    """A module called with its parameters first: `fmodel(params, *args)`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names = stateless_model, param_names

    def forward(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters."""
        return functional_call(self.stateless_model, dict(zip(self.param_names, params, strict=True)), args, kwargs)


class FunctionalModuleWithBuffers(Module):
    """A module called with its parameters and buffers first: `fmodel(params, buffers, *args)`."""

    def __init__(self, stateless_model: Module, param_names: tuple[str, ...], buffer_names: tuple[str, ...]) -> None:
        super().__init__()
        self.stateless_model, self.param_names, self.buffer_names = stateless_model, param_names, buffer_names

    def forward(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What the module gives with these parameters and buffers."""
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A module without buffers as a function, and its parameters."""
    if list(model.buffers()):
        raise ValueError("make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead.")
    stateless, parameters, _ = _emptied(model, disable_autograd_tracking)
    return FunctionalModule(stateless, tuple(parameters)), tuple(parameters.values())


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A module as a function, its parameters and its buffers."""
    stateless, parameters, buffers = _emptied(model, disable_autograd_tracking)
    function = FunctionalModuleWithBuffers(stateless, tuple(parameters), tuple(buffers))
    return function, tuple(parameters.values()), tuple(buffers.values())


def combine_state_for_ensemble(
    models: Sequence[Module],
) -> tuple[Callable[..., Any], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Modules of one class as a function for `vmap`, and their parameters and buffers, stacked."""
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(model.training for model in models) or not any(model.training for model in models)):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("combine_state_for_ensemble: Expected all models to be of the same class.")
    functions, parameters, buffers = zip(*map(make_functional_with_buffers, models), strict=True)
    stacked = [tuple(aten.stack(list(column)) for column in zip(*rows, strict=True)) for rows in (parameters, buffers)]
    return functions[0], stacked[0], stacked[1]
