"""Symbolic tracing: runs a function or a module on proxies and records what it does."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

from .. import nn
from .._core.restoring import Actions, restoring
from .._core.tensor import Tensor
from ..utils._pytree import tree_leaves
from .graph import Graph
from .graph_module import GraphModule
from .node import Argument, _package, public_module
from .proxy import ParameterProxy, Proxy, TracerBase

HAS_VARSTUFF = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
# (namespace, name) of functions that `wrap` names, and (class, method) of `wrap_method`.
_wrapped_fns_to_patch: dict[tuple[int, str], dict[str, Any]] = {}
# One entry for each function that is being traced, the innermost last.
_being_traced: list[Any] = []


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return bool(_being_traced)


def _proxy_among(args: Any, kwargs: Any) -> Proxy | None:
    for value in tree_leaves((args, kwargs)):
        if isinstance(value, Proxy):
            return value
    return None


def _recorded_call(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that becomes one node where it is called with a proxy."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        proxy = _proxy_among(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        if function.__module__.endswith("nn.functional"):
            args, kwargs = _with_defaults(function, args, kwargs)
        result = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        result.node.meta["is_wrapped"] = True
        return result

    return call


def _with_defaults(function: Any, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """All arguments of a call, as torch's layers record theirs: those that have a default by keyword."""
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.apply_defaults()
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += value
        elif parameter.kind is parameter.VAR_KEYWORD:
            named.update(value)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY:
            positional.append(value)
        else:
            named[name] = value
    return tuple(positional), named


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Record calls of a function of the calling module as one node, instead of what happens inside. Also a decorator."""
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    if frame is None or frame.f_back is None:
        raise AssertionError("wrap() needs its caller's frame")
    if frame.f_back.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    namespace = frame.f_back.f_globals
    _wrapped_fns_to_patch[id(namespace), name] = namespace
    return fn_or_name


def _torch_functions() -> list[tuple[dict[str, Any], str]]:
    """Where torch's functions of tensors are found: a call with a proxy is one node, with the arguments as they were given."""
    from .. import fft, functional, linalg, special
    from ..nn import functional as F

    places = []
    for module in (_package(), functional, F, linalg, special, fft):
        namespace = vars(module)
        places += [
            (namespace, name)
            for name, value in namespace.items()
            if type(value) is FunctionType and not name.startswith("_") and _computes(value)
        ]
    return places


def _computes(function: FunctionType) -> bool:
    """Whether a function is an op, or one that is written with ops."""
    module = function.__module__
    return module == "torch" or module.endswith((".functional", ".overloads")) or "._ops." in module


def _replace(undo: Actions, namespace: dict[str, Any], name: str, value: Any) -> None:
    """Replace an entry of a namespace for a while."""
    before = namespace.get(name, _ABSENT)
    undo.append(partial(namespace.pop, name, None) if before is _ABSENT else partial(namespace.__setitem__, name, before))
    namespace[name] = value


def _replace_method(undo: Actions, owner: type, name: str, value: Any) -> None:
    """Replace a method of a class for a while, or add one."""
    before = vars(owner).get(name, _ABSENT)
    undo.append(partial(_take_away, owner, name) if before is _ABSENT else partial(setattr, owner, name, before))
    setattr(owner, name, value)


def _take_away(owner: type, name: str) -> None:
    if name in vars(owner):
        delattr(owner, name)


_ABSENT = object()


class PHBase:
    """In `concrete_args`: an argument that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class Tracer(TracerBase):
    """Records what a function or a module does with its inputs. Subclasses decide what is a leaf."""

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrap_functions = {
            function: None for module in autowrap_modules for function in vars(module).values() if callable(function)
        }
        self._autowrap_functions.update(dict.fromkeys(autowrap_functions))
        self._autowrap_search = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[nn.Module, str] | None = None
        self.root: nn.Module = nn.Module()
        self.tensor_attrs: dict[Any, str] = {}

    # ------------------------------------------------------------------ what a subclass may decide

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module becomes one node: those of torch.nn do, but for Sequential."""
        # Under the alias the package is named "torch", and its modules are named as ever.
        home = public_module(m.__module__)
        return home.startswith(("torch.nn", "torch.ao.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """The qualified name of a submodule of the root."""
        if self.submodule_paths:
            path = self.submodule_paths.get(mod)
            if path is None:
                raise NameError("module is not installed as a submodule")
            return path
        for name, module in self.root.named_modules():
            if module is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m: nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a submodule: a node for a leaf, else its own forward."""
        path = self.path_of_module(m)
        if not self.is_leaf_module(m, path):
            return forward(*args, **kwargs)
        return self.create_proxy("call_module", path, args, kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a proxy for parameters and, if wanted, for buffers."""
        if isinstance(attr_val, nn.Parameter):
            return self._proxy_of(attr_val, self.root.named_parameters(), parameter_proxy_cache)
        if self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            return self._proxy_of(attr_val, self.root.named_buffers(), parameter_proxy_cache)
        return attr_val

    def _proxy_of(self, value: Any, named: Any, cache: dict[str, Any]) -> Any:
        for name, tensor in named:
            if tensor is value:
                if name not in cache:
                    # Tracers of libraries override create_proxy, and not all of them take a factory.
                    options: dict[str, Any] = {}
                    if self.param_shapes_constant and "proxy_factory_fn" in inspect.signature(self.create_proxy).parameters:
                        options["proxy_factory_fn"] = functools.partial(_shaped, self, name, value)
                    cache[name] = self.create_proxy("get_attr", name, (), {}, **options)
                return cache[name]
        return value

    def create_arg(self, a: Any) -> Argument:
        """Parameters, buffers and submodules become `get_attr` nodes, other tensors constants of the root."""
        if isinstance(a, nn.Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is a:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            for name, buffer in self.root.named_buffers():
                if buffer is a:
                    return self.create_node("get_attr", name, (), {})
            return self.create_node("get_attr", self._constant(a), (), {})
        if isinstance(a, nn.Module):
            for name, module in self.root.named_modules():
                if module is a:
                    return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _constant(self, value: Tensor) -> str:
        name = self.tensor_attrs.get(value)
        if name is None:
            number = 0
            while hasattr(self.root, f"_tensor_constant{number}"):
                number += 1
            name = self.tensor_attrs[value] = f"_tensor_constant{number}"
            setattr(self.root, name, value)
        return name

    # ------------------------------------------------------------------ tracing

    def create_args_for_root(
        self, root_fn: Any, is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Callable[..., Any], list[Any]]:
        """The function to call, and what to call it with: the module itself, proxies, or the values that were given."""
        function = inspect.unwrap(root_fn)
        signature_code: CodeType = function.__code__
        names = list(signature_code.co_varnames)
        total = signature_code.co_argcount + signature_code.co_kwonlyargcount
        args: list[Any] = [self.root] if is_module else []
        if is_module and total == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        first = 1 if is_module else 0
        parameters = _signature(function).parameters
        concrete = dict(concrete_args or {})
        args += [self._input(name, parameters[name], concrete) for name in names[first:total]]
        if isinstance(concrete_args, dict) and concrete:
            raise RuntimeError(f"concrete_args names no argument of {function.__qualname__}: {', '.join(concrete)}")
        named = names[signature_code.co_argcount : total]
        positional = len(args) - len(named)
        if signature_code.co_flags & HAS_VARSTUFF or named:
            at = total
            star, stars = [], {}
            if signature_code.co_flags & inspect.CO_VARARGS:
                star = [self.create_proxy("placeholder", "*" + names[at], (), {})]
                at += 1
            if signature_code.co_flags & inspect.CO_VARKEYWORDS:
                stars = {"": self.create_proxy("placeholder", "**" + names[at], (), {})}
            root_fn = _with_packed(function, positional, named, bool(star), bool(stars))
            args += [*star, *stars.values()]
        return root_fn, args

    def _input(self, name: str, parameter: inspect.Parameter, concrete: dict[str, Any]) -> Any:
        if name in concrete:
            value = concrete.pop(name)
            if value is not PH:
                placeholder = self.create_proxy("placeholder", name, (), {}, name=f"{name}_1")
                placeholder.node.target = f"{name}_1"
                if isinstance(value, bool | int | float) or value is None:
                    text = f"{name} has been specialized to have value {value} but got another value"
                    expected = placeholder == value if value is not None else _is_none(placeholder)
                    self.create_proxy("call_function", _package()._assert, (expected, text), {})
                return value
        default = () if parameter.default is inspect.Parameter.empty else (parameter.default,)
        annotation = None if parameter.annotation is inspect.Parameter.empty else parameter.annotation
        return self.create_proxy(
            "placeholder", name, default, {}, type_expr=None if isinstance(annotation, str) else annotation
        )

    def trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of what a module or function does."""
        _being_traced.append(root)
        try:
            return self._trace(root, concrete_args)
        finally:
            del _being_traced[-1]

    def _trace(self, root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None) -> Graph:
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {type(root).__name__}")
            function = getattr(type(root), self.traced_func_name)
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root = nn.Module()
            function = root
        self.graph = Graph(tracer_cls=type(self))
        self.tensor_attrs = {}
        self._collect_tensor_attributes(self.root, "")
        called, args = self.create_args_for_root(function, isinstance(root, nn.Module), concrete_args)
        proxies: dict[str, Any] = {}
        original_call = nn.Module.__call__

        # Modules keep their members among their plain attributes as well, so that reading one never gets to `__getattr__`.
        def read_attribute(module: Any, name: str) -> Any:
            value = object.__getattribute__(module, name)
            return self.getattr(name, value, proxies) if isinstance(value, Tensor | nn.Module) else value

        @functools.wraps(original_call)
        def call_module(module: Any, *values: Any, **named: Any) -> Any:
            return self.call_module(module, functools.partial(original_call, module), values, named)

        with self._recording(read_attribute, call_module, inspect.unwrap(function).__globals__):
            result = called(*args)
            returned = _signature(inspect.unwrap(function)).return_annotation
            returned = None if returned is inspect.Signature.empty else returned
            self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returned)
        self.submodule_paths = None
        return self.graph

    @restoring
    def _recording(undo: Actions, self: Tracer, read_attribute: Any, call_module: Any, namespace: dict[str, Any]) -> None:  # noqa: N805
        """Inside the block, reading a module's members and calls of modules and functions become nodes."""
        _replace_method(undo, nn.Module, "__getattribute__", read_attribute)
        _replace_method(undo, nn.Module, "__call__", call_module)
        for place, name in _torch_functions():
            _replace(undo, place, name, _recorded_call(place[name]))
        self._wrap_functions(undo, namespace)

    def _wrap_functions(self, undo: Actions, namespace: dict[str, Any]) -> None:
        for name, value in list(namespace.items()):
            if not name.startswith("_") and callable(value) and _hashable_in(value, self._autowrap_functions):
                _replace(undo, namespace, name, _recorded_call(value))
        for module in self._autowrap_search:
            for name, value in list(vars(module).items()):
                if not name.startswith("_") and callable(value):
                    _replace(undo, vars(module), name, _recorded_call(value))
        for (_, name), place in _wrapped_fns_to_patch.items():
            if name in place:
                _replace(undo, place, name, _recorded_call(place[name]))
            elif hasattr(builtins, name):
                _replace(undo, place, name, _recorded_call(getattr(builtins, name)))

    def _collect_tensor_attributes(self, module: nn.Module, prefix: str) -> None:
        for name, value in vars(module).items():
            if isinstance(value, Tensor):
                self.tensor_attrs[value] = prefix + name
        for name, child in module.named_children():
            self._collect_tensor_attributes(child, f"{prefix}{name}.")


def _signature(function: Any) -> inspect.Signature:
    """A signature with its annotations as types; without those that name what is not there."""
    try:
        return inspect.signature(function, eval_str=True)
    except NameError:
        plain = inspect.signature(function)
        parameters = [p.replace(annotation=p.empty) for p in plain.parameters.values()]
        return plain.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


def _shaped(tracer: Tracer, name: str, value: Any, node: Any) -> ParameterProxy:
    return ParameterProxy(tracer, node, name, value)


def _hashable_in(value: Any, functions: dict[Any, None]) -> bool:
    try:
        return value in functions
    except TypeError:
        return False


def _is_none(proxy: Proxy) -> Proxy:
    import operator

    return proxy.tracer.create_proxy("call_function", operator.is_, (proxy, None), {})


def _with_packed(function: Any, positional: int, named: list[str], has_star: bool, has_stars: bool) -> Callable[..., Any]:
    """A function of plain arguments that calls one with keyword-only arguments, `*args` and `**kwargs`.

    The code of the traced function sees the proxies of `*args` and `**kwargs` as they are, and not unpacked.
    """
    code = function.__code__
    flags = code.co_flags & ~HAS_VARSTUFF
    count = positional + len(named) + has_star + has_stars
    flat = code.replace(co_flags=flags, co_argcount=count, co_kwonlyargcount=0, co_posonlyargcount=0)
    return FunctionType(flat, function.__globals__, function.__name__, function.__defaults__, function.__closure__)


def symbolic_trace(root: nn.Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what a module or function does, as a graph that can be read and changed."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
