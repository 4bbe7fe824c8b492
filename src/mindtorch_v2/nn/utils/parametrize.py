"""Parameters that are computed from others: `module.weight` becomes what a module makes of the original."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..._autograd.grad_mode import no_grad
from ..._core.restoring import Actions, restoring
from ..._core.tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..modules.module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

# The `cached()` blocks that are open, and what they have computed.
_cache_enabled: set[object] = set()
_cache: dict[tuple[int, str], Any] = {}


@restoring
def cached(undo: Actions) -> None:
    """Inside, each parametrized tensor is computed once."""
    block = object()

    def leave() -> None:
        _cache_enabled.discard(block)
        if not _cache_enabled:
            _cache.clear()

    undo.append(leave)
    _cache_enabled.add(block)


def _register_parameter_or_buffer(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Parameter):
        module.register_parameter(name, value)
    else:
        module.register_buffer(name, value)


def _take_over(target: Any, value: Any) -> None:
    """Let a tensor that others may hold have another one's data."""
    if target.requires_grad and not isinstance(target, Parameter):
        target.requires_grad_(False)
    target.data = value


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what they start from: `original`, or `original0`, `original1`, ..."""

    def __init__(self, modules: Sequence[Module], original: Any, unsafe: bool = False) -> None:
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new = original
        parametrizations: list[Any] = list(self)
        with no_grad():
            for module in reversed(parametrizations):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):  # the original is then taken as it is
                        new = module.right_inverse(new)
        if not isinstance(new, Tensor) and not isinstance(new, Sequence):
            raise ValueError(
                f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if isinstance(new, Tensor) else len(new)
        if isinstance(new, Tensor):
            if dtype != new.dtype:
                raise ValueError(
                    "When `right_inverse` outputs one tensor, it may not change the dtype.\n"
                    f"original.dtype: {dtype}\nright_inverse(original).dtype: {new.dtype}"
                )
            if new is not original:
                _take_over(original, new)
            _register_parameter_or_buffer(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                        f"Got element {i} of the sequence with type {type(part).__name__}."
                    )
                own = Parameter(part, original.requires_grad) if isinstance(original, Parameter) else part
                own.requires_grad_(original.requires_grad)
                _register_parameter_or_buffer(self, f"original{i}", own)
        if not unsafe:
            parametrized = self()
            if not isinstance(parametrized, Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(parametrized).__name__}.")
            if parametrized.dtype != dtype:
                raise ValueError(
                    "Registering a parametrization may not change the dtype of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: "
                    f"{parametrized.dtype}"
                )
            if parametrized.shape != shape:
                raise ValueError(
                    "Registering a parametrization may not change the shape of the tensor, unless "
                    f"`unsafe` flag is enabled.\nunparametrized shape: {shape}\nparametrized shape: "
                    f"{parametrized.shape}"
                )

    def _originals(self) -> list[Any]:
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value: Any) -> None:
        """Change the originals so that the parametrized tensor becomes `value`."""
        parametrizations: list[Any] = list(self)
        with no_grad():
            for module in reversed(parametrizations):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(
                        "The tensor returned by `right_inverse` has dtype "
                        f"{value.dtype} while `original` has dtype {self.original.dtype}"
                    )
                _take_over(self.original, value)
                return
            if not isinstance(value, Sequence):
                raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
            if len(value) != self.ntensors:
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors of length "
                    f"{self.ntensors}. Got a sequence of length {len(value)}."
                )
            for i, (part, original) in enumerate(zip(value, self._originals(), strict=True)):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"`right_inverse` must return a sequence of tensors. Got element {i} of type {type(part).__name__}"
                    )
                if original.dtype != part.dtype:
                    raise ValueError(
                        f"Tensor {i} returned by `right_inverse` has dtype {part.dtype} while "
                        f"`original{i}` has dtype {original.dtype}"
                    )
                _take_over(original, part)

    def forward(self) -> Any:
        """The parametrized tensor: the originals, through each parametrization in turn."""
        first, *others = self
        value = first(*self._originals())
        for module in others:
            value = module(value)
        return value


def _inject_new_class(module: Module) -> None:
    """Give a module a class of its own, on which properties can be defined."""
    cls = type(module)

    def refuse(self: Any) -> Any:
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
            "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deepcopy(self: Any, memo: dict[int, Any]) -> Any:
        replica = memo.get(id(self))
        if replica is None:
            replica = memo[id(self)] = self.__new__(type(self))
            replica.__setstate__(copy.deepcopy(self.__dict__, memo))
        return replica

    members: dict[str, Any] = {"__getstate__": refuse}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, tensor_name: str) -> None:
    """Make an attribute of the module's own class what its parametrizations compute."""

    def get(self: Any) -> Any:
        if not _cache_enabled:
            return self.parametrizations[tensor_name]()
        key = (id(self), tensor_name)
        if key not in _cache:
            _cache[key] = self.parametrizations[tensor_name]()
        return _cache[key]

    def put(self: Any, value: Any) -> None:
        self.parametrizations[tensor_name].right_inverse(value)

    setattr(type(module), tensor_name, property(get, put))


def _parametrizations(module: Module) -> Any:
    """The ParametrizationLists of a module, by the names of their tensors."""
    return module.parametrizations


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """From now on `module.<tensor_name>` is `parametrization(original)`; assigning uses its `right_inverse`."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_added(module, tensor_name, parametrization)
        listed = _parametrizations(module)[tensor_name]
        listed.append(parametrization)
        listed.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        original = getattr(module, tensor_name)
        started = ParametrizationList([parametrization], original, unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _inject_new_class(module)
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        _parametrizations(module)[tensor_name] = started
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_added(module: Module, tensor_name: str, parametrization: Any) -> None:
    """ValueError if another parametrization would change what the tensor looks like."""
    before = getattr(module, tensor_name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    if after.dtype != before.dtype:
        raise ValueError(
            "Registering a parametrization may not change the dtype of the tensor, unless the `unsafe` "
            f"flag is enabled.\nmodule.{tensor_name}.dtype: "
            f"{before.dtype}\nparametrization(module.{tensor_name}).dtype: {after.dtype}"
        )
    if after.shape != before.shape:
        raise ValueError(
            "Registering a parametrization may not change the shape of the tensor, unless the `unsafe` "
            f"flag is enabled.\nmodule.{tensor_name}.shape: "
            f"{before.shape}\nparametrization(module.{tensor_name}).shape: {after.shape}"
        )
    if hasattr(parametrization, "right_inverse"):
        try:
            back = parametrization.right_inverse(after)
        except NotImplementedError:
            return
        if not isinstance(back, Tensor):
            raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
        if back.dtype != before.dtype:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same dtype as "
                f"module.{tensor_name}, unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.dtype: "
                f"{before.dtype}\nreturned dtype: {back.dtype}"
            )
        if back.shape != before.shape:
            raise ValueError(
                "The tensor returned by parametrization.right_inverse must have the same shape as "
                f"module.{tensor_name}, unless the `unsafe` flag is enabled.\nmodule.{tensor_name}.shape: "
                f"{before.shape}\nreturned shape: {back.shape}"
            )


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Whether a module, or one of its tensors, is parametrized."""
    parametrizations = module.__dict__.get("parametrizations")
    if parametrizations is None or not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make an attribute a plain tensor again: as computed last, or with `leave_parametrized=False` the original."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    listed = _parametrizations(module)[tensor_name]
    if listed.is_tensor:
        original = listed.original
        if leave_parametrized:
            with no_grad():
                value = getattr(module, tensor_name)
            original.data = value
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = Parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in "
            "terms of a sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del _parametrizations(module)[tensor_name]
    _register_parameter_or_buffer(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The module's class as it was before any parametrization."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module: Module, to_module: Module, tensor_name: str | None = None) -> Any:
    """Give a module the parametrizations of another, with the values behind them."""
    if not is_parametrized(from_module):
        return to_module
    if not isinstance(from_module.parametrizations, ModuleDict):
        raise AssertionError("from_module.parametrizations must be a ModuleDict")
    names = list(from_module.parametrizations) if tensor_name is None else [tensor_name]
    for name in names:
        source: Any = from_module.parametrizations[name]
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name)))
        for parametrization in source:
            register_parametrization(to_module, name, parametrization)
        target = _parametrizations(to_module)[name]
        for key in ["original"] if source.is_tensor else [f"original{i}" for i in range(source.ntensors)]:
            setattr(target, key, getattr(source, key))
    return to_module
