"""Proxy: stands for a value while a function is traced; whatever is done with it becomes a node."""

from __future__ import annotations

import enum
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.memory_format import layout, memory_format
from .._core.size import Size
from .._core.tensor import Tensor
from .._lazy_imports import lazy_exports as _lazy_exports
from ._code import OPERATORS, REFLECTED
from .graph import Graph
from .node import Argument, Node, Target, map_aggregate

base_types = (str, int, float, bool, complex, DType, Device, memory_format, layout, type(None), type(...), bytes)


# What makes a tensor to an op, which asks other objects for `__torch_function__`; and a proxy's own, which a copy has not yet.
_NOT_RECORDED = {*Tensor.__slots__, "node", "tracer", "root", "attr", "_node"}


class TraceError(ValueError):
    """Something that depends on a value, which is not known while a function is traced."""


class TracerBase:
    """What makes nodes of calls with proxies."""

    graph: Graph
    record_stack_traces = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(
        self,
        kind: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A node of the graph; a subclass may add to it."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: str,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """A node for a call with proxies, and the proxy of its result."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        if self.record_stack_traces and node.stack_trace is None:
            node.stack_trace = _user_stack()
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """A value as an argument of a node: proxies become their nodes."""
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, Size):
            return tuple(a)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            return type(a)(*[self.create_arg(value) for value in a])
        if isinstance(a, tuple):
            return tuple([self.create_arg(value) for value in a])
        if isinstance(a, list):
            return [self.create_arg(value) for value in a]
        if isinstance(a, dict):
            for key in a:
                map_aggregate(key, _no_node_in_key)
            return {key: self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (*base_types, enum.Enum)) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a proxy decides about control flow."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called where a proxy is iterated over."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
            "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
            "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for `**proxy`."""
        return Attribute(obj, "keys")()


def _no_node_in_key(value: Any) -> Any:
    if isinstance(value, Proxy | Node):
        raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {value}")
    return value


def _user_stack() -> str:
    frame: Any = sys._getframe(1)
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith(__name__.partition(".")[0]):
        frame = frame.f_back
    import traceback

    return "".join(traceback.format_stack(frame)) if frame is not None else ""


class GraphAppendingTracer(TracerBase):
    """Adds nodes to a graph that exists already."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class Proxy:
    """Stands for the value of a node. Calls, operators and attributes of it become nodes."""

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, name: str) -> Attribute:
        if name in _NOT_RECORDED:
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        count = _count_of_unpacked(sys._getframe(1))
        if count is not None:
            return (operator.getitem(self, i) for i in range(count))  # type: ignore[call-overload]
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __hash__(self) -> int:
        return id(self)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = None, kwargs: Any = None) -> Any:
        args, kwargs = args or (), kwargs or {}
        tracers: dict[Any, None] = {}

        def note(value: Any) -> Any:
            if isinstance(value, Proxy):
                tracers[value.tracer] = None
            return value

        map_aggregate(args, note)
        map_aggregate(kwargs, note)
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        tracer = next(iter(tracers))
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of a proxy; it becomes a node when it is used other than by a call, which is a method's."""

    def __init__(self, root: Proxy, attr: str) -> None:
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __getattr__(self, name: str) -> Attribute:
        if name in _NOT_RECORDED:
            raise AttributeError(name)
        return Attribute(self, name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def _count_of_unpacked(frame: Any) -> int | None:
    """How many names the statement `a, b = proxy` of a frame unpacks to; None where it is another iteration."""
    import dis

    code, at = frame.f_code, frame.f_lasti
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _operator_method(function: Any, reflected: bool = False) -> Any:
    def method(self: Proxy, *args: Any) -> Any:
        ordered = (*args, self) if reflected else (self, *args)
        return self.tracer.create_proxy("call_function", function, ordered, {})

    return method


for _function in (*OPERATORS, operator.setitem):
    setattr(Proxy, f"__{_function.__name__.strip('_')}__", _operator_method(_function))
for _function in REFLECTED:
    setattr(Proxy, f"__r{_function.__name__.strip('_')}__", _operator_method(_function, reflected=True))


class ParameterProxy(Proxy):
    """A parameter whose shape is known while it is traced."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any) -> None:
        super().__init__(node, tracer)
        if not isinstance(param, Tensor):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        return self.param.shape

    def size(self, *args: Any) -> Any:
        return self.param.size(*args)

    def dim(self) -> int:
        return self.param.dim()

    @property
    def ndim(self) -> int:
        return self.param.ndim

    def numel(self) -> int:
        return self.param.numel()

    def nelement(self) -> int:
        return self.param.nelement()


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
