"""GraphModule: a module whose forward is the code of a graph."""

from __future__ import annotations

import copy
import itertools
import linecache
import os
from pathlib import Path
from typing import Any

from .. import nn
from .._core.files import write_whole
from .._core.tensor import Tensor
from .._lazy_imports import lazy_exports as _lazy_exports
from .graph import Graph, PythonCode
from .node import _get_qualified_name, _package, map_aggregate, map_arg

_numbers = itertools.count()

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(nn.Module):
    """What a graph module holds, without its graph: for copies and files that make the graph anew."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _compile_forward(code: PythonCode) -> Any:
    """The function of generated code. Its text is in `linecache`, so that tracebacks and `inspect` show it."""
    name = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[name] = (len(code.src), None, code.src.splitlines(keepends=True), name)
    namespace: dict[str, Any] = dict(code.globals)
    exec(compile(code.src, name, "exec"), namespace)
    return namespace["forward"]


def _copy_attr(source: Any, target: nn.Module, path: str) -> None:
    """Give `target` what `source` has at a qualified name, with modules in between where they are missing."""
    *prefix, name = path.split(".")
    for part in prefix:
        source = getattr(source, part)
        if not hasattr(target, part):
            setattr(target, part, nn.Module())
        target = getattr(target, part)
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


def _set_attr(target: nn.Module, path: str, value: Any) -> None:
    *prefix, name = path.split(".")
    for part in prefix:
        if not hasattr(target, part):
            setattr(target, part, nn.Module())
        target = getattr(target, part)
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


def reduce_graph_module(body: dict[Any, Any], graph: Graph) -> GraphModule:
    """Unpickles a GraphModule."""
    class_name = body.pop("_graphmodule_cls_name")
    root = nn.Module()
    root.__dict__.update(body)
    return GraphModule(root, graph, class_name)


class GraphModule(nn.Module):
    """A module with a graph; `forward` is the graph's code, and `recompile()` writes it anew after changes.

    `root` is a module, or a dict of what the graph's targets name. Each instance has a class of its own, since it has its own
    forward.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        own = next((base for base in cls.__mro__ if base.__qualname__ == "GraphModuleImpl"), None)
        return super().__new__(type("GraphModuleImpl", (cls if own is None else own.__bases__[0],), {}))

    def __init__(self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                if _has(root, target):
                    _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for target in sorted(targets, key=lambda path: path.count(".")):
                if target not in root:
                    raise RuntimeError(
                        f"Node {target} referenced target {target} but that target was not provided in ``root``!"
                    )
                _set_attr(self, target, root[target])
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}
        self._graph = graph
        self.graph = graph

    @property
    def graph(self) -> Graph:
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The Python code of the graph."""
        return self._code

    def recompile(self) -> PythonCode:
        """Make `forward` what the graph is now."""
        code = self._graph.python_code("self")
        self._code = code.src
        type(self).forward = _compile_forward(code)  # type: ignore[method-assign]
        return code

    # ------------------------------------------------------------------ submodules

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a qualified name, with modules in between where they are missing. False where one is no module."""
        *prefix, name = target.split(".")
        at: nn.Module = self
        for part in prefix:
            child = getattr(at, part, None)
            if child is None:
                child = nn.Module()
                setattr(at, part, child)
            if not isinstance(child, nn.Module):
                return False
            at = child
        at.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take a submodule away. False where there is none at that name."""
        *prefix, name = target.split(".")
        at: Any = self
        for part in prefix:
            at = getattr(at, part, None)
            if not isinstance(at, nn.Module):
                return False
        if not isinstance(getattr(at, name, None), nn.Module):
            return False
        delattr(at, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take away the submodules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    module = self.get_submodule(str(node.target))
                    used.update(f"{node.target}.{name}" for name, _ in module.named_modules() if name)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # ------------------------------------------------------------------ text and copies

    def print_readable(self, print_output: bool = True, **unused: Any) -> str:
        """The code with the name of the class around it; printed unless `print_output` is False."""
        lines = [line for line in self._code.strip("\n").splitlines() if line.strip()]
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "".join(f"    {line}\n" for line in lines)
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the code as a package: `module.py` with a class, and `state_dict.pt` with its parameters and submodules."""
        from .. import save

        place = Path(folder)
        place.mkdir(exist_ok=True)
        save(self.state_dict(), place / "state_dict.pt")
        save([(name, module) for name, module in self.named_children()], place / "children.pt")
        code = self._graph.python_code("self")
        lines = [line for line in code.src.strip("\n").splitlines() if line.strip() and not line.startswith("torch.fx.")]
        body = "".join(f"    {line}\n" for line in lines)
        parameters = "".join(
            f"        self.{name} = torch.nn.Parameter(torch.empty({list(value.shape)}, dtype={value.dtype}))\n"
            for name, value in self._parameters.items()
            if value is not None
        )
        buffers = "".join(
            f"        self.register_buffer('{name}', torch.empty({list(value.shape)}, dtype={value.dtype}))\n"
            for name, value in self._buffers.items()
            if value is not None
        )
        text = (
            "import pathlib\n\nimport torch\n\n\n"
            f"class {module_name}(torch.nn.Module):\n"
            "    def __init__(self):\n"
            "        super().__init__()\n"
            "        folder = pathlib.Path(__file__).parent\n"
            '        for name, module in torch.load(folder / "children.pt", weights_only=False):\n'
            "            setattr(self, name, module)\n"
            f'{parameters}{buffers}        self.load_state_dict(torch.load(folder / "state_dict.pt"))\n\n{body}'
        )
        write_whole(place / "module.py", [text.encode()])
        write_whole(place / "__init__.py", [f"from .module import {module_name}\n".encode()])

    def __deepcopy__(self, memo: Any) -> GraphModule:
        root = nn.Module()
        root.__dict__ = copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in ("_graph", "_code")}, memo)
        copied = GraphModule(root, copy.deepcopy(self._graph), type(self).__name__)
        copied.meta = copy.copy(self.meta)
        copied.training = self.training
        memo[id(self)] = copied
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, copy.deepcopy(self._graph), type(self).__name__)
        copied.meta = self.meta
        return copied

    def __reduce__(self) -> Any:
        body = {key: value for key, value in self.__dict__.items() if key not in ("_graph", "_code", "meta")}
        graph = copy.deepcopy(self._graph)
        return _rebuild, ({**body, "_graphmodule_cls_name": type(self).__name__}, _as_data(graph))

    def __str__(self) -> str:
        return "\n".join(
            [super().__str__(), self._code, "# To see more debug info, please use `graph_module.print_readable()`"]
        )

    def _get_name(self) -> str:
        return type(self).__name__


def _has(root: Any, target: str) -> bool:
    for part in target.split("."):
        if not hasattr(root, part):
            return False
        root = getattr(root, part)
    return True


def _as_data(graph: Graph) -> list[tuple[Any, ...]]:
    """A graph as plain data: nodes refer to one another by name."""

    def named(value: Any) -> Any:
        return map_arg(value, lambda node: _NodeName(node.name))

    def row(n: Any) -> tuple[Any, ...]:
        return n.name, n.op, _as_name(n.target), named(n.args), named(n.kwargs), n.type, bool(n.meta.get("is_wrapped"))

    return [row(node) for node in graph.nodes]


class _NodeName(str):
    """The name of a node, in place of the node."""

    __slots__ = ()


class _FunctionName(str):
    """The name of one of torch's functions, in place of the function: ops are no functions that pickle finds by themselves."""

    __slots__ = ()


def _as_name(target: Any) -> Any:
    if isinstance(target, str):
        return target
    name = _get_qualified_name(target)
    return _FunctionName(name) if name.startswith("torch.") and _function(name) is target else target


def _function(name: str) -> Any:
    at: Any = _package()
    for part in name.split(".")[1:]:
        at = getattr(at, part, None)
    return at


def _rebuild(body: dict[str, Any], data: list[tuple[Any, ...]]) -> GraphModule:
    graph = Graph()
    nodes: dict[str, Any] = {}

    def resolved(value: Any) -> Any:
        return map_aggregate(value, lambda leaf: nodes[leaf] if isinstance(leaf, _NodeName) else leaf)

    for name, op, target, args, kwargs, kind, *wrapped in data:
        called = _function(target) if isinstance(target, _FunctionName) else target
        nodes[name] = node = graph.create_node(op, called, resolved(args), resolved(kwargs), name, kind)
        if any(wrapped):
            node.meta["is_wrapped"] = True
    return reduce_graph_module(body, graph)


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
