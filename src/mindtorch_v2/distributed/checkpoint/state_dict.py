"""torch.distributed.checkpoint.state_dict: state of models and optimizers by parameter names, whole or in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..._core.tensor import Tensor
from ...nn import Module
from ...optim import Optimizer
from .._groups import get_rank, is_initialized
from ..tensor import DTensor, Shard, shard_bounds

__all__ = [
    "StateDictOptions",
    "get_model_state_dict",
    "get_optimizer_state_dict",
    "get_state_dict",
    "set_model_state_dict",
    "set_optimizer_state_dict",
    "set_state_dict",
]


@dataclass
class StateDictOptions:
    """Whether tensors are gathered whole, where, and how strictly they are taken back."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False
    dsd_fqn_modifiers: str = "_fqn_modifiers"


def _checked(options: StateDictOptions | None) -> StateDictOptions:
    options = options or StateDictOptions()
    for name in ("broadcast_from_rank0", "flatten_optimizer_state_dict"):
        if getattr(options, name):
            raise NotImplementedError(f"StateDictOptions({name}=True)")
    if not options.keep_submodule_prefixes:
        raise NotImplementedError("StateDictOptions(keep_submodule_prefixes=False)")
    return options


def _plain(name: str) -> str:
    """A name without what wrappers put before it."""
    return name.removeprefix("module.")


def _is_wrapped(model: Module) -> bool:
    from ...nn.parallel import DistributedDataParallel

    return isinstance(model, DistributedDataParallel)


def _name(model: Module, name: str) -> str:
    return _plain(name) if _is_wrapped(model) else name


def _value(value: Any, options: StateDictOptions) -> Any:
    """A tensor whole if it is to be, in the first process alone if it is to be on the CPU."""
    if not options.full_state_dict or not isinstance(value, DTensor):
        return value.detach() if isinstance(value, Tensor) else value
    return value.full_tensor()


def _on_first_only(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    first = not is_initialized() or get_rank() == 0
    return state if first or not (options.full_state_dict and options.cpu_offload) else {}


def get_model_state_dict(
    model: Module, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """A model's state by parameter names, without the prefixes of wrappers."""
    if submodules is not None:
        raise NotImplementedError("get_model_state_dict(submodules=)")
    options = _checked(options)
    frozen = {name for name, each in model.named_parameters() if not each.requires_grad} if options.ignore_frozen_params else ()
    own = dict(model.named_parameters())
    state = {
        _name(model, name): _value(own.get(name, value), options)
        for name, value in model.state_dict().items()
        if name not in frozen
    }
    return _on_first_only(state, options)


def set_model_state_dict(model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None) -> Any:
    """Give a model a state by parameter names; of whole tensors each process takes its part."""
    options = _checked(options)
    own = dict(model.named_parameters())
    back = {_name(model, name): name for name in model.state_dict()}
    state = {}
    for name, value in model_state_dict.items():
        known = back.get(name, name)
        parameter = own.get(known)
        if parameter is not None and isinstance(parameter, DTensor) and not isinstance(value, DTensor):
            state[known] = _cut(parameter, value)
        else:
            state[known] = value
    return model.load_state_dict(state, strict=options.strict)


def _cut(parameter: Any, whole: Tensor) -> Tensor:
    placement, mesh = parameter.placements[0], parameter.device_mesh
    if not isinstance(placement, Shard):
        return whole
    begin, end = shard_bounds(whole.shape[placement.dim], mesh.size(), mesh.get_local_rank())
    return whole.narrow(placement.dim, begin, end - begin)


def get_optimizer_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of optimizers with the parameters' names in place of numbers."""
    if submodules is not None:
        raise NotImplementedError("get_optimizer_state_dict(submodules=)")
    options = _checked(options)
    names = {id(each): _name(model, name) for name, each in model.named_parameters()}
    whole: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        for group in optimizer.param_groups:
            listed = [names[id(each)] for each in group["params"]]
            whole["param_groups"].append({**{k: v for k, v in group.items() if k != "params"}, "params": listed})
        for parameter, state in optimizer.state.items():
            whole["state"][names[id(parameter)]] = {key: _like(parameter, value, options) for key, value in state.items()}
    return _on_first_only(whole, options)


def _like(parameter: Any, value: Any, options: StateDictOptions) -> Any:
    """A tensor of an optimizer's state, which is a part as its parameter is."""
    from ..tensor import as_dtensor

    if isinstance(value, Tensor) and isinstance(parameter, DTensor) and value.shape == parameter.shape:
        value = as_dtensor(value.detach(), parameter.device_mesh, parameter.placements[0], parameter.full_shape)
    return _value(value, options)


def set_optimizer_state_dict(
    model: Module, optimizers: Any, optim_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> None:
    """Give optimizers a state by parameter names."""
    _checked(options)
    by_name = {_name(model, name): each for name, each in model.named_parameters()}
    groups = list(optim_state_dict["param_groups"])
    for optimizer in _listed(optimizers):
        for own in optimizer.param_groups:
            saved = groups.pop(0)
            own.update({key: value for key, value in saved.items() if key != "params"})
            for name in saved["params"]:
                parameter = by_name[name]
                if name in optim_state_dict["state"]:
                    optimizer.state[parameter] = {
                        key: _taken(parameter, value) for key, value in optim_state_dict["state"][name].items()
                    }


def _taken(parameter: Any, value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if isinstance(value, DTensor):
        return value.to_local().clone()
    if isinstance(parameter, DTensor) and tuple(value.shape) == tuple(parameter.full_shape):
        return _cut(parameter, value).clone()
    return value.clone()


def get_state_dict(
    model: Module, optimizers: Any, *, submodules: set[Module] | None = None, options: StateDictOptions | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module,
    optimizers: Any,
    *,
    model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any],
    options: StateDictOptions | None = None,
) -> Any:
    """Give a model and its optimizers their states."""
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return set_model_state_dict(model, model_state_dict, options=options)


def _listed(optimizers: Any) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)
