"""Hooks around a module's call: registration, on one module and on all."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..._core.tensor import Tensor
from . import _attributes
from ._attributes import AttributeMixin
from ._handles import RemovableHandle


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

    def _maybe_warn_non_full_backward_hook(self, inputs: Any, result: Any, grad_fn: Any) -> None:
        """Say so where an old backward hook cannot see all that its caller may expect."""
        outputs = (result,) if isinstance(result, Tensor) else result
        inputs = (inputs,) if isinstance(inputs, Tensor) else inputs
        if not _are_tensors(outputs):
            case, missing = "that does not return a single Tensor or a tuple of Tensors", "some of the grad_output"
        elif not _are_tensors(inputs):
            case, missing = "that does not take as input a single Tensor or a tuple of Tensors", "some of the grad_input"
        else:
            nodes = {r.grad_fn for r in outputs if r.grad_fn is not None}
            if nodes == {grad_fn}:
                if {i.grad_fn for i in inputs if i.grad_fn is not None} == {node for node, _ in grad_fn.next_functions}:
                    return
                case, missing = "the forward contains multiple autograd Nodes", "some grad_input"
            elif len(nodes) < 2:
                case, missing = "outputs are nested in python data structure", "some grad_output"
            else:
                case, missing = "outputs are generated by different autograd Nodes", "some grad_output"
        hooks = "non-full backward hooks on a Module" if case.startswith("that") else "a non-full backward hook when"
        advice = " Please use register_full_backward_hook to get the documented behavior."
        warnings.warn(
            f"Using {hooks} {case} is deprecated and will be removed in future versions. This hook will be missing "
            f"{missing}.{'' if 'nested' in case else advice}",
            FutureWarning,
            stacklevel=2,
        )


def _are_tensors(values: Any) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, Tensor) for value in values)


# ---------------------------------------------------------------- hooks of all modules


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, param)` for every parameter that any module registers; it may return another one."""
    return _register(_attributes._global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` for every buffer that any module registers; it may return another one."""
    return _register(_attributes._global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` for every submodule that any module registers; it may return another one."""
    return _register(_attributes._global_module_registration_hooks, hook)
