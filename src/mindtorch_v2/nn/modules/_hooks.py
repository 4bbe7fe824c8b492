"""Hooks around a module's call: registration, on one module and on all."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ..._core.tensor import Tensor
from . import _attributes
from ._attributes import AttributeMixin
from ._handles import RemovableHandle
from ._state_dict import WrappedHook

__all__ = ["HookMixin", "WrappedHook"]

# Hooks of all modules. Their order of registration is the order of their calls, before the module's own.
global_forward_pre_hooks: dict[int, Any] = OrderedDict()
global_forward_hooks: dict[int, Any] = OrderedDict()
global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
global_backward_pre_hooks: dict[int, Any] = OrderedDict()
global_backward_hooks: dict[int, Any] = OrderedDict()
# Whether the global backward hooks are full ones; the two kinds cannot be mixed.
_global_kind: dict[str, bool] = {}


def has_global_hooks() -> bool:
    """Whether any hook of all modules runs around calls."""
    return bool(global_forward_pre_hooks or global_forward_hooks or global_backward_pre_hooks or global_backward_hooks)


def _register(
    hooks: Any, hook: Any, *, prepend: bool = False, marks: tuple[Any, ...] = (), of: tuple[Any, ...] = ()
) -> RemovableHandle:
    """Enter a hook, mark its number in `marks`, and put it first if asked; `of` are all dicts to clean at removal."""
    handle = RemovableHandle(hooks, extra_dict=list(of))
    hooks[handle.id] = hook
    for mark in marks:
        mark[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


class HookMixin(AttributeMixin):
    """The part of Module that keeps hooks."""

    _backward_pre_hooks: dict[int, Callable[..., Any]]
    _backward_hooks: dict[int, Callable[..., Any]]
    _forward_hooks: dict[int, Callable[..., Any]]
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: dict[int, Callable[..., Any]]
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    # None: no backward hook yet; the full and the old kind cannot be mixed.
    _is_full_backward_hook: bool | None

    def _has_hooks(self) -> bool:
        return bool(
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or has_global_hooks()
        )

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; it may return new arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and it may return a pair of both.
        """
        self.__dict__["_hooked"] = True
        marks = (self._forward_pre_hooks_with_kwargs,)
        return _register(self._forward_pre_hooks, hook, prepend=prepend, marks=marks if with_kwargs else (), of=marks)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; it may return another output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`; with `always_call` it runs though forward raised.
        """
        self.__dict__["_hooked"] = True
        kwargs, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        marks = (kwargs,) * with_kwargs + (always,) * always_call
        return _register(self._forward_hooks, hook, prepend=prepend, marks=marks, of=(kwargs, always))

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before the gradients of the module are computed; it may return others."""
        self.__dict__["_hooked"] = True
        return _register(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the inputs' gradients are known; it may return others."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = True
        self.__dict__["_hooked"] = True
        return _register(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The old kind of backward hook, which sees only the last op's gradients."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. "
                "Please use only one of them."
            )
        self._is_full_backward_hook = False
        self.__dict__["_hooked"] = True
        return _register(self._backward_hooks, hook)

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """Full backward hooks and old ones, global ones first."""
        full: list[Callable[..., Any]] = []
        old: list[Callable[..., Any]] = []
        (full if _global_kind.get("full") else old).extend(global_backward_hooks.values())
        (full if self._is_full_backward_hook else old).extend(self._backward_hooks.values())
        return full, old

    def _maybe_warn_non_full_backward_hook(self, args: Any, result: Any, grad_fn: Any) -> None:
        """Say so where an old backward hook cannot see all that its caller may expect."""
        outputs = (result,) if isinstance(result, Tensor) else result
        inputs = (args,) if isinstance(args, Tensor) else args
        if not (isinstance(outputs, tuple) and all(isinstance(r, Tensor) for r in outputs)):
            problem = "that does not return a single Tensor or a tuple of Tensors"
        elif not (isinstance(inputs, tuple) and all(isinstance(a, Tensor) for a in inputs)):
            problem = "that does not take as input a single Tensor or a tuple of Tensors"
        elif len({r.grad_fn for r in outputs if r.grad_fn is not None}) > 1:
            problem = "with outputs generated by different autograd Nodes"
        else:
            sources = {a.grad_fn for a in inputs if a.grad_fn is not None}
            following = {node for node, _ in grad_fn.next_functions if node is not None}
            if following <= sources | {a._node for a in inputs if a.requires_grad}:
                return
            warnings.warn(
                "Using a non-full backward hook when the forward contains multiple autograd Nodes is "
                "deprecated and will be removed in future versions. This hook will be missing some "
                "grad_input. Please use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
                stacklevel=5,
            )
            return
        warnings.warn(
            f"Using a non-full backward hook on a Module {problem} is deprecated and will be removed in "
            "future versions. This hook will be missing some of the grad_output. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )


# ---------------------------------------------------------------- hooks of all modules


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, param)` for every parameter that any module registers; it may return another one."""
    return _register(_attributes.global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every buffer that any module registers; it may return another one."""
    return _register(_attributes.global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every submodule that any module registers; it may return another one."""
    return _register(_attributes.global_module_registration_hooks, hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before forward of every module."""
    return _register(global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after forward of every module."""
    kwargs, always = global_forward_hooks_with_kwargs, global_forward_hooks_always_called
    marks = (kwargs,) * with_kwargs + (always,) * always_call
    return _register(global_forward_hooks, hook, marks=marks, of=(kwargs, always))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of any module are computed."""
    return _register(global_backward_pre_hooks, hook)


def _set_global_kind(full: bool) -> None:
    if _global_kind.get("full", full) is not full:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_kind["full"] = full


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for every module."""
    _set_global_kind(True)
    return _register(global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The old kind of backward hook, for every module."""
    _set_global_kind(False)
    return _register(global_backward_hooks, hook)
