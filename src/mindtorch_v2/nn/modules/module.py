"""Module: a callable with parameters, buffers, submodules and hooks."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self, TypeVar

from ..._core.tensor import Tensor
from ..._core.threads import ThreadState, threads
from ..._dispatch import entry_globals
from . import _attributes
from ._attributes import (
    AttributeMixin,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
)
from ._backward_hook import BackwardHook
from ._conversion import ConversionMixin
from ._handles import RemovableHandle
from ._hooks import (
    HookMixin,
    _register,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._members import Members
from ._state_dict import _EXTRA_STATE_KEY_SUFFIX, StateDictMixin, _IncompatibleKeys, _WrappedHook
from ._traversal import TraversalMixin

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


# Hooks of all modules. Their order of registration is the order of their calls, before the module's own. Programs empty these
# dicts and put others in their places, so all that uses them is in this file.
_global_forward_pre_hooks: dict[int, Any] = OrderedDict()
_global_forward_hooks: dict[int, Any] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_backward_pre_hooks: dict[int, Any] = OrderedDict()
_global_backward_hooks: dict[int, Any] = OrderedDict()
# Whether the backward hooks are full ones; None while there are none. The two kinds cannot be mixed.
_global_is_full_backward_hook: bool | None = None


def _has_any_global_hook() -> bool:
    """Whether any hook of all modules runs around calls."""
    return bool(_global_forward_pre_hooks or _global_forward_hooks or _global_backward_pre_hooks or _global_backward_hooks)


def _forward_unimplemented(self: Any, *input: Any) -> None:
    """Define the computation; every subclass overrides this."""
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


class Module(HookMixin, StateDictMixin, TraversalMixin, ConversionMixin, AttributeMixin):
    """Base class of all layers and models.

    Assigning a Parameter, a Buffer or another Module as an attribute registers it. Calling the module runs its
    hooks and `forward`.
    """

    dump_patches: bool = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])  # what state_dict(destination=...) fills and returns
    _version: int = 1
    call_super_init: bool = False
    _compiled_call_impl: Callable[..., Any] | None = None
    # Whether a call must look at hooks; set on the instance with its first hook, on the class by global hooks.
    _hooked: bool = False

    training: bool
    forward: Callable[..., Any] = _forward_unimplemented

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init:
            if kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            if args:
                raise TypeError(f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        self.__dict__.update(
            training=True,
            _parameters=Members(self),
            _buffers=Members(self),
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules=Members(self),
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    # ------------------------------------------------------------------ calling

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if entry_globals.observers_active:
            state: Any = entry_globals.current()
            if state is None:
                state = threads.state
            log = state.module_log
            if log is not None:
                # What the two functions of the state do, written out: half of all calls go to modules that do little.
                events, numbers, ident, now, times = log
                try:
                    events += (numbers[ident(self)], now())
                except KeyError:
                    state.module_enter(self)
                try:
                    return self._call_impl(*args, **kwargs) if self._hooked else self.forward(*args, **kwargs)
                finally:
                    if state.module_log is log:
                        for moment in times:  # not a call of `now`, after which an interrupt would leave out the end
                            events += (-1, moment)
                            break
                    elif state.module_exit is not None:
                        state.module_exit(self)
            if state.module_enter is not None:
                return _observed_call(self, args, kwargs, state)
        return self._call_impl(*args, **kwargs) if self._hooked else self.forward(*args, **kwargs)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        """`forward` with all hooks around it."""
        if not self._has_hooks():  # all were removed: the next call need not look
            self.__dict__.pop("_hooked", None)
            Module._hooked = False
            return self.forward(*args, **kwargs)
        done: set[int] = set()
        try:
            return self._run_with_hooks(args, kwargs, done)
        except Exception:
            self._run_always_called(args, kwargs, done)
            raise

    def _has_hooks(self) -> bool:
        return bool(
            self._forward_pre_hooks
            or self._forward_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _has_any_global_hook()
        )

    def _run_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], done: set[int]) -> Any:
        full_hooks, other_hooks = self._get_backward_hooks()
        pre_hooks = self._get_backward_pre_hooks()
        for number, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        border = BackwardHook(self, full_hooks, pre_hooks) if full_hooks or pre_hooks else None
        if border is not None:
            args = border.setup_input_hook(args)
        result = self.forward(*args, **kwargs)
        for number, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            done.add(number)
            with_kwargs = number in self._forward_hooks_with_kwargs or number in _global_forward_hooks_with_kwargs
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        if border is not None:
            result = border.setup_output_hook(result)
        if other_hooks:
            self._attach_to_last_node(args, result, other_hooks)
        return result

    def _get_backward_hooks(self) -> tuple[list[Callable[..., Any]], list[Callable[..., Any]]]:
        """Full backward hooks and old ones, those of all modules first."""
        by_kind: dict[bool | None, list[Callable[..., Any]]] = {True: [], False: [], None: []}
        by_kind[_global_is_full_backward_hook].extend(_global_backward_hooks.values())
        by_kind[self._is_full_backward_hook].extend(self._backward_hooks.values())
        return by_kind[True], by_kind[False]

    def _get_backward_pre_hooks(self) -> list[Callable[..., Any]]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]

    def _attach_to_last_node(self, args: Any, result: Any, hooks: list[Callable[..., Any]]) -> None:
        """The old kind of backward hook: it sees the gradients of the last op and no more."""
        output = result
        while not isinstance(output, Tensor):
            output = (
                next((v for v in output.values() if isinstance(v, Tensor)), None) if isinstance(output, dict) else output[0]
            )
            if output is None:
                return
        node = output.grad_fn
        if node is not None:
            for hook in hooks:
                node.register_hook(_WrappedHook(hook, self))
            self._maybe_warn_non_full_backward_hook(args, result, node)

    def _run_always_called(self, args: Any, kwargs: Any, done: set[int]) -> None:
        """After a failure: the hooks that asked to be called anyway; what they raise becomes a warning."""
        result = None
        every = [
            (n, h, _global_forward_hooks_with_kwargs)
            for n, h in _global_forward_hooks.items()
            if n in _global_forward_hooks_always_called
        ]
        every += [
            (n, h, self._forward_hooks_with_kwargs)
            for n, h in self._forward_hooks.items()
            if n in self._forward_hooks_always_called
        ]
        for number, hook, with_kwargs in every:
            if number in done:
                continue
            try:
                changed = hook(self, args, kwargs, result) if number in with_kwargs else hook(self, args, result)
                result = result if changed is None else changed
            except Exception as error:
                kind = "global module" if number in _global_forward_hooks else "module"
                warnings.warn(
                    f"{kind} forward hook with ``always_call=True`` raised an exception that was silenced as "
                    f"another error was raised in forward: {error}",
                    stacklevel=2,
                )

    def compile(self, *, backend: Any = "inductor", **options: Any) -> None:
        """Compile calls of this module. Compiled code computes the same; there is no compiler, so it runs as it is."""
        if not isinstance(backend, str):
            raise NotImplementedError("nn.Module.compile(backend=<callable>): there are no graphs to hand over")

    # ------------------------------------------------------------------ modes and gradients

    def apply(self, fn: Callable[[Module], Any]) -> Self:
        """Call `fn` on every descendant, children first, and on the module itself."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True) -> Self:
        """Set training mode in the whole tree."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Set evaluation mode in the whole tree."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Make all parameters require grad, or stop them."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or with `set_to_none=False` fill them with zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ------------------------------------------------------------------ how it prints

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What stands between the brackets when a module is printed; override to add to it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if not children and len(lines) < 2:
            return f"{self._get_name()}({extra})"
        body = "\n  ".join(lines + children)
        return f"{self._get_name()}(\n  {body}\n)"


def _observed_call(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], state: ThreadState) -> Any:
    """A call between `module_enter` and `module_exit` of the thread's state."""
    assert state.module_enter is not None
    state.module_enter(module)
    try:
        return module._call_impl(*args, **kwargs) if module._hooked else module.forward(*args, **kwargs)
    finally:
        if state.module_exit is not None:
            state.module_exit(module)


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803  torch's name
    """A text whose lines, but for the first and empty ones, are moved to the right."""
    first, *lines = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line if line.strip() else "" for line in lines)])


# ---------------------------------------------------------------- hooks of all modules. From the first on, calls look at hooks.


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before forward of every module."""
    Module._hooked = True
    return _register(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after forward of every module."""
    kwargs, always = _global_forward_hooks_with_kwargs, _global_forward_hooks_always_called
    marks = (kwargs,) * with_kwargs + (always,) * always_call
    Module._hooked = True
    return _register(_global_forward_hooks, hook, marks=marks, of=(kwargs, always))


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before the gradients of any module are computed."""
    Module._hooked = True
    return _register(_global_backward_pre_hooks, hook)


def _register_global_backward_hook(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook  # noqa: PLW0603  torch's name, which programs set too
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
            "Please use only one of them."
        )
    _global_is_full_backward_hook = full
    Module._hooked = True
    return _register(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for every module."""
    return _register_global_backward_hook(hook, True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The old kind of backward hook, for every module."""
    return _register_global_backward_hook(hook, False)


# typing.get_type_hints() of a module's class evaluates the annotations of its bases where they stand.
_attributes.Module = Module  # type: ignore[misc]
# Libraries evaluate the annotations of an instance where they stand themselves: these are types, not texts.
Module.__annotations__ = inspect.get_annotations(Module, eval_str=True)
