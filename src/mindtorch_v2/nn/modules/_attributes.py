"""Attributes of a module: which are parameters, buffers and submodules, and what may be assigned to them."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._core.tensor import Tensor
from ..parameter import Buffer, Parameter
from ._members import Members

if TYPE_CHECKING:
    from .module import Module

# Hooks that see every registration of every module; they may return a replacement.
_global_parameter_registration_hooks: dict[int, Any] = OrderedDict()
_global_buffer_registration_hooks: dict[int, Any] = OrderedDict()
_global_module_registration_hooks: dict[int, Any] = OrderedDict()

_KINDS = ("_parameters", "_buffers", "_modules")
_ROOT = __name__.partition(".")[0]


def typename(value: Any) -> str:
    """The full name of a value's type, as messages show it."""
    if isinstance(value, Tensor) and type(value) is Tensor:
        return value.type()
    kind = value if isinstance(value, type) else type(value)
    if kind.__module__ == "builtins":
        return kind.__qualname__
    module = kind.__module__
    if module.partition(".")[0] == _ROOT:
        module = "torch" + module[len(_ROOT) :]
    return f"{module}.{kind.__qualname__}"


def _check_name(kind: str, name: Any, holder: Any, members: dict[str, Any], *, taken_first: bool = False) -> None:
    """Raise in torch's words if `name` cannot be given to a new member."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    taken = hasattr(holder, name) and name not in members
    if taken and taken_first:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if taken:
        raise KeyError(f"attribute '{name}' already exists")


class AttributeMixin:
    """The part of Module that registers members."""

    _parameters: dict[str, Parameter | None]
    _buffers: dict[str, Tensor | None]
    _modules: dict[str, Module | None]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: dict[int, Callable[..., Any]]
    _state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: dict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: dict[int, Callable[..., Any]]

    def __getattr__(self, name: str) -> Tensor | Module:
        # Members are in __dict__ too, so this is for names that are not there, and for members put there unseen.
        attributes = self.__dict__
        for kind in _KINDS:
            members = attributes.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def _show(self, name: str, member: Any) -> None:
        """Make a member an entry of `__dict__`, where Python finds it first.

        Not if the class has a `__getattr__` of its own, which must be asked for it, nor if the class has an attribute of that
        name, which goes before members as it does in torch.
        """
        kind = type(self)
        if kind.__getattr__ is AttributeMixin.__getattr__ and not any(name in base.__dict__ for base in kind.__mro__):
            self.__dict__[name] = member

    def __setattr__(self, name: str, value: Any) -> None:
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if isinstance(value, Tensor) and isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._drop(name, "_buffers", "_modules")
            self.register_parameter(name, value)
        elif parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, AttributeMixin):
            if "_modules" not in attributes:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._drop(name, "_parameters", "_buffers")
            self._put_module(name, value)
        elif "_modules" in attributes and name in attributes["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._put_module(name, value)
        else:
            self._set_buffer_or_plain(name, value, attributes)

    def _set_buffer_or_plain(self, name: str, value: Any, attributes: dict[str, Any]) -> None:
        buffers = attributes.get("_buffers")
        known = buffers is not None and name in buffers
        marked = isinstance(value, Tensor) and isinstance(value, Buffer)
        if marked or known:
            if value is not None and not isinstance(value, Tensor) and not hasattr(value, "__torch_function__"):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._assign_buffer(name, value, value.persistent if marked else name not in self._non_persistent_buffers_set)
        elif name in _KINDS:
            for old in attributes.get(name, ()):
                attributes.pop(old, None)
            attributes[name] = Members(self, value)
        else:
            object.__setattr__(self, name, value)

    def _assign_buffer(self, name: str, value: Any, persistent: bool) -> None:
        """`register_buffer`, also of a subclass whose own one knows no `persistent`."""
        register = self.register_buffer
        if getattr(register, "__func__", None) is AttributeMixin.register_buffer or (
            "persistent" in inspect.signature(register).parameters
        ):
            register(name, value, persistent)
        elif not persistent:
            raise RuntimeError(
                "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the "
                "persistent argument is not allowed."
            )
        else:
            register(name, value)

    def _drop(self, name: str, *kinds: str) -> None:
        """Forget a plain attribute, or a member of another kind, that gives its name away."""
        attributes = self.__dict__
        for kind in kinds:
            attributes.get(kind, {}).pop(name, None)
        attributes.get("_non_persistent_buffers_set", set()).discard(name)
        if name not in attributes.get("_parameters", ()) and name not in attributes.get("_modules", ()):
            attributes.pop(name, None)

    def __delattr__(self, name: str) -> None:
        if name in self._parameters:
            del self._parameters[name]
            self.__dict__.pop(name, None)
        elif name in self._buffers:
            del self._buffers[name]
            self.__dict__.pop(name, None)
            self._non_persistent_buffers_set.discard(name)
        elif name in self._modules:
            del self._modules[name]
            self.__dict__.pop(name, None)
        else:
            object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[:1].isdigit()})

    # ------------------------------------------------------------------ registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Add a parameter, or None for one that is left out but keeps its name."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name("parameter", name, self, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                    f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                    "the value in the forward() method."
                )
            for hook in _global_parameter_registration_hooks.values():
                replaced = hook(self, name, param)
                param = param if replaced is None else replaced
        self._parameters[name] = param
        self._show(name, param)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that belongs to the module's state and is no parameter; in the state dict if `persistent`."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name("buffer", name, self, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor) and not hasattr(tensor, "__torch_function__"):
            raise TypeError(f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)")
        self._put_buffer(name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def _put_buffer(self, name: str, tensor: Tensor | None) -> None:
        for hook in _global_buffer_registration_hooks.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        self._show(name, tensor)

    def add_module(self, name: str, module: Module | None) -> None:
        """Add a submodule, or None for one that is left out but keeps its name."""
        if module is not None and not isinstance(module, AttributeMixin):
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name("module", name, self, self._modules, taken_first=True)
        self._put_module(name, module)

    def register_module(self, name: str, module: Module | None) -> None:
        """The same as `add_module`, by the name that TorchScript used."""
        self.add_module(name, module)

    def _put_module(self, name: str, module: Any) -> None:
        for hook in _global_module_registration_hooks.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        self._modules[name] = module
        self._show(name, module)

    # ------------------------------------------------------------------ pickling

    def __setstate__(self, state: dict[str, Any]) -> None:
        attributes = self.__dict__
        attributes.update(state)
        for kind in _KINDS:
            attributes[kind] = Members(self, state.get(kind, ()))
        for name in (
            "_forward_pre_hooks",
            "_forward_pre_hooks_with_kwargs",
            "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks",
            "_state_dict_pre_hooks",
            "_load_state_dict_pre_hooks",
            "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):
            attributes.setdefault(name, OrderedDict())
        attributes.setdefault("_non_persistent_buffers_set", set())
        attributes.setdefault("_is_full_backward_hook", None)
