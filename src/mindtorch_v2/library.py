"""torch.library: ops from outside, declared in the same form as the package's own."""

from __future__ import annotations

import dis
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from ._core import dtype as dt
from ._core.device import device as Device
from ._core.keys import META
from ._core.restoring import Actions, restoring
from ._core.tensor import Tensor
from ._core.threads import threads
from ._dispatch.observer import call_user_code
from ._dispatch.overload_api import OpOverload, OpOverloadPacket, ops
from ._dispatch.registry import OpSpec, composite, packets
from ._dispatch.schema import parse
from ._lazy_imports import lazy_exports as _lazy_exports

_TYPES: dict[Any, str] = {
    Tensor: "Tensor",
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    dt.dtype: "ScalarType",
    Device: "Device",
    typing.Union[int, float, bool]: "Scalar",  # noqa: UP007  int | float | bool has another hash
}


def _type_text(annotation: Any) -> str:
    """A Python annotation in the schema's notation."""
    known = _TYPES.get(annotation) if isinstance(annotation, typing.Hashable) else None
    if known is not None:
        return known
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in arguments if a is not type(None)]
        if len(rest) < len(arguments):
            return _type_text(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)]) + "?"  # noqa: UP007
    if origin in (list, tuple, Sequence, typing.Sequence) and arguments:
        return _type_text(arguments[0]) + "[]"
    raise ValueError(f"infer_schema: unsupported type {annotation!r}")


def infer_schema(prototype_function: Callable[..., Any], /, *, mutates_args: Any = (), op_name: str | None = None) -> str:
    """The schema that a function's annotations describe, e.g. `(Tensor x, float scale=1.0) -> Tensor`."""
    hints = typing.get_type_hints(prototype_function)
    signature = inspect.signature(prototype_function)
    parts: list[str] = []
    for name, parameter in signature.parameters.items():
        if name not in hints:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        text = _type_text(hints[name])
        if (mutates_args == "unknown" and text == "Tensor") or (not isinstance(mutates_args, str) and name in mutates_args):
            text = text.replace("Tensor", f"Tensor(a{len(parts)}!)", 1)
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        parts.append(f"{text} {name}{default}")
    returned = hints.get("return", type(None))
    if returned is type(None):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = "(" + ", ".join(map(_type_text, typing.get_args(returned))) + ")"
    else:
        result = _type_text(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class _Context:
    """What `setup_context` and `backward` of a registered derivative share."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for `backward`, which finds them in `saved_tensors`."""
        self.saved_tensors = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Only the default, True, is supported: undefined gradients arrive as zeros."""
        if not value:
            raise NotImplementedError("register_autograd: set_materialize_grads(False)")


def _reads_output(setup_context: Callable[..., Any] | None) -> bool:
    """Whether a `setup_context(ctx, inputs, output)` mentions its last argument; True where that cannot be seen."""
    if setup_context is None:
        return False
    code = getattr(setup_context, "__code__", None)
    if code is None or code.co_argcount != 3:
        return True
    output = code.co_varnames[2]
    mentioned = (instruction.argval for instruction in dis.get_instructions(code))
    return any(name == output or (isinstance(name, tuple) and output in name) for name in mentioned)


class CustomOpDef:
    """An op made by `custom_op`; calling it runs the op."""

    def __init__(self, namespace: str, name: str, schema: str, function: Callable[..., Any]) -> None:
        self._namespace, self._name = namespace, name
        self._qualname = f"{namespace}::{name}"
        self._kernels: dict[str | None, Callable[..., Any]] = {None: function}
        self._fake: Callable[..., Any] | None = None
        text = f"{namespace}::{name}{schema}"
        parse(text)  # the registry would find a mistake in it at the first call
        self._spec: OpSpec = composite(text, self._run)
        self.__name__, self.__doc__ = name, function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the op; the profiler and autograd see one call."""
        return self._spec(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    def _run(self, *args: Any) -> Any:
        tensors = [a for a in args if isinstance(a, Tensor)]
        kind = tensors[0].device.type if tensors else "cpu"
        if any(tensor._keys & META for tensor in tensors) and "meta" not in self._kernels:
            if self._fake is None:
                raise RuntimeError(
                    f"There was no fake impl registered for {self!r}. This is necessary for torch.compile/export/fx tracing to "
                    f"work. Please use `{self._name}.register_fake` to add an fake impl."
                )
            return self._fake(*args)
        autocast = threads.state.autocast
        if autocast is not None and autocast.enabled.get(kind, False):
            kind = f"autocast{kind}" if f"autocast{kind}" in self._kernels else kind
        positional = [a for a, info in zip(args, self._spec.schema.arguments, strict=True) if not info.keyword_only]
        keywords = {info.name: a for a, info in zip(args, self._spec.schema.arguments, strict=True) if info.keyword_only}
        kernel = self._kernels.get(kind, self._kernels[None])
        if isinstance(self._spec.autocast, dt.dtype) and autocast is not None and autocast.enabled.get(kind, False):
            with import_module(".amp.autocast_mode", __package__).autocast(kind, enabled=False):
                return kernel(*positional, **keywords)
        return kernel(*positional, **keywords)

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """How to compute shapes without data: used for meta tensors."""
        self._fake = fn
        return fn

    def register_kernel(self, device_types: Any, func: Callable[..., Any] | None = None, /) -> Any:
        """Another implementation for some devices."""
        kinds = [device_types] if isinstance(device_types, str) else device_types

        def register(function: Callable[..., Any]) -> Callable[..., Any]:
            for kind in kinds or [None]:
                self._kernels[kind] = function
            return function

        return register if func is None else register(func)

    def register_autocast(self, device_type: str, cast_inputs: dt.dtype) -> None:
        """Floating point inputs become `cast_inputs` in `torch.autocast(device_type)`, and the op runs without autocast."""
        if Device(device_type).type == "cpu":  # of the devices that autocast knows, the only one with tensors
            self._spec.autocast = cast_inputs

    def register_autograd(self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None) -> None:
        """The derivative: `backward(ctx, *grads)`, with what `setup_context(ctx, inputs, output)` kept."""
        schema = self._spec.schema
        names = [a.name for a in schema.arguments]
        count = len(schema.returns)
        # Results are kept only for a setup that looks at them: a program may write into others before backward runs.
        results = [f"result{i}" for i in range(count)] if _reads_output(setup_context) else []
        tensors = [i for i, a in enumerate(schema.arguments) if a.is_tensor or a.is_tensor_list]
        several = count > 1

        def joint(g: Any, *values: Any) -> Any:
            inputs, outputs, needs = values[: len(names)], values[len(names) : -1] or (None,) * count, values[-1]
            wanted = [False] * len(names)
            for i, needed in zip(tensors, needs, strict=True):
                wanted[i] = needed
            context = _Context(tuple(wanted))
            if setup_context is not None:
                setup_context(context, inputs, outputs if several else outputs[0])
            grads = call_user_code(backward, context, *(g if several else (g,)))
            grads = grads if isinstance(grads, tuple) else (grads,)
            return tuple(grads[i] for i in tensors)

        parameters = [inspect.Parameter(n, inspect.Parameter.POSITIONAL_OR_KEYWORD) for n in ["g", *names, *results, "needs"]]
        joint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        if several:
            self._spec.takes_all_grads = True
        self._spec.vjp(joint)


_custom: dict[str, CustomOpDef] = {}


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: Any,
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make a Python function an op: `@custom_op("mylib::twice", mutates_args=())`."""
    namespace, _, base = name.partition("::")
    if not base:
        raise ValueError(f"custom_op: expected a name of the form 'namespace::name', got {name!r}")

    def declare(function: Callable[..., Any]) -> CustomOpDef:
        text = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        packets.pop(name, None)  # a second definition replaces the first, as in torch
        definition = _custom[name] = CustomOpDef(namespace, base, text, function)
        if device_types is not None:
            definition.register_kernel(device_types, function)
        return definition

    return declare if fn is None else declare(fn)


def _qualified(op: Any) -> Any:
    """`namespace::name` of a packet or an overload of `torch.ops`; anything else as it is."""
    if isinstance(op, OpOverload):
        return op.name()
    return op._qualified_op_name if isinstance(op, OpOverloadPacket) else op


def _defined(name: Any) -> CustomOpDef:
    name = _qualified(name)
    found = _custom.get(name) if isinstance(name, str) else name if isinstance(name, CustomOpDef) else None
    if found is None:
        raise RuntimeError(f"{name} was not defined with torch.library")
    return found


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """`CustomOpDef.register_fake` of the op with a qualified name; a decorator without `func`."""
    return (lambda f: _defined(op).register_fake(f)) if func is None else _defined(op).register_fake(func)


def impl_abstract(qualname: str, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """`register_fake` under its old name."""
    return register_fake(qualname, func, lib=lib)


def register_autocast(op: Any, device_type: str, cast_inputs: dt.dtype, /, *, lib: Any = None) -> None:
    """`CustomOpDef.register_autocast` of the op with a qualified name."""
    _defined(op).register_autocast(device_type, cast_inputs)


def register_autograd(op: Any, backward: Callable[..., Any], /, *, setup_context: Any = None, lib: Any = None) -> None:
    """`CustomOpDef.register_autograd` of the op with a qualified name."""
    _defined(op).register_autograd(backward, setup_context=setup_context)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """`CustomOpDef.register_kernel` of the op with a qualified name; a decorator without `func`."""
    return _defined(op).register_kernel(device_types, func)


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Declare an op by its schema; `impl` gives it a body."""
    namespace, _, name = qualname.partition("::")
    parse(name + schema)

    def not_implemented(*args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError(f"Could not run '{qualname}': no implementation was registered")

    _custom[qualname] = CustomOpDef(namespace, name, schema, not_implemented)


def impl(qualname: Any, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Give a defined op its body, for a device or (`CompositeImplicitAutograd`, `default`) for all.

    The older form `impl(library, name, dispatch_key)` is a decorator, too.
    """
    if isinstance(qualname, Library):
        library, name, key = qualname, types, func or ""

        def register_in(function: Callable[..., Any]) -> Callable[..., Any]:
            library.impl(name, function, str(key))
            return function

        return register_in
    kinds = [types] if isinstance(types, str) else list(types)
    wanted = [
        None if k.lower() in ("default", "compositeimplicitautograd", "compositeexplicitautograd") else k.lower() for k in kinds
    ]

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for kind in wanted:
            _defined(qualname)._kernels[kind] = function
        return function

    return register if func is None else register(func)


@restoring
def _scoped_library(undo: Actions, *args: Any, **kwargs: Any) -> Library:
    """A `Library` whose ops are gone after the block."""
    library = Library(*args, **kwargs)
    undo.append(library._destroy)
    return library


class Library:
    """A namespace of ops: `Library("mylib", "DEF")`, then `define` and `impl`."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "IMPL", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._defined: list[str] = []

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Declare an op of this namespace by its schema; returns its qualified name."""
        name, _, rest = schema.partition("(")
        define(f"{self.ns}::{name.strip()}", "(" + rest)
        self._defined.append(f"{self.ns}::{name.strip()}")
        return self._defined[-1]

    def _destroy(self) -> None:
        """Take away the ops that this library declared."""
        for name in self._defined:
            packets.pop(name, None)
            _custom.pop(name, None)
            vars(getattr(ops, self.ns)).pop(name.partition("::")[2], None)  # made at its first use
        self._defined.clear()

    def impl(self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Give an op of this namespace its body, for `dispatch_key` or, without one, for every device."""
        if with_keyset:
            raise NotImplementedError("Library.impl(with_keyset=True)")
        name = op_name if isinstance(op_name, str) else _qualified(op_name).partition("::")[2]
        impl(f"{self.ns}::{name}", dispatch_key or self.dispatch_key or "default", fn)


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
