"""Graph: the operations of a function or a module in order."""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from .._core.restoring import Actions, restoring
from ._code import CodeGen, PythonCode, _format_target, _Namespace, inplace_methods, magic_methods
from .node import Argument, Node, Target, _get_qualified_name, _type_repr, map_arg


class _Nodes:
    """The nodes of a graph in order; it may be changed while one goes over it."""

    def __init__(self, graph: Graph, direction: str = "_next") -> None:
        self._graph = graph
        self._direction = direction

    def __len__(self) -> int:
        return self._graph._len

    def __iter__(self) -> Iterator[Node]:
        root = self._graph._root
        node: Node = getattr(root, self._direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self._direction)

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, "_prev" if self._direction == "_next" else "_next")


class Graph:
    """The operations of a function or a module, each a Node, in the order in which they run."""

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None) -> None:
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self._len = 0
        self._graph_namespace = _Namespace()
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()

    @property
    def owning_module(self) -> Any:
        return self._owning_module

    @owning_module.setter
    def owning_module(self, module: Any) -> None:
        self._owning_module = module

    @property
    def nodes(self) -> _Nodes:
        return _Nodes(self)

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with an op and, if given, a target."""
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def output_node(self) -> Node:
        node = self._root._prev
        if node.op != "output":
            raise AssertionError(f"expected output node, got {node.op}")
        return node

    # ------------------------------------------------------------------ adding and taking away

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the point of insertion, which is the end unless `inserting_before` or `inserting_after` moved it."""
        args = () if args is None else args
        kwargs = {} if kwargs is None else kwargs
        if not isinstance(args, tuple | list):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        unique = self._graph_namespace.create_name(name if name is not None else self._target_to_str(target), None)
        node = Node(self, unique, op, target, tuple(args), kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(unique, node)
        self._insert(node)
        self._len += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        if callable(target):
            name = target.__name__
        else:
            name = target
            if name.startswith("__") and name.endswith("__"):
                name = name[2:-2]
        # `seq.LayerNorm` -> `seq_layer_norm`
        name = name.replace(".", "_")
        return re.sub(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z][a-z])", lambda m: "_" + m.group(0), name).lower()

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """An input of the function."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args=args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A parameter, buffer or other attribute of the module."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a submodule."""
        owner = self._owning_module
        if owner is not None:
            owner.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
        name: str | None = None,
    ) -> Node:
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The result of the function."""
        return self.create_node("output", "output", args=(result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """A copy of a node of another graph, with its arguments transformed."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = copy.copy(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies of all nodes of another graph but its output, whose value is returned; `val_map` gets the nodes."""
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                value = map_arg(node.args[0], lambda old: val_map[old])
                return (value, node) if return_output_node else value
            val_map[node] = self.node_copy(node, lambda old: val_map[old])
        return None

    def erase_node(self, to_erase: Node) -> None:
        """Take a node out; RuntimeError while another takes its result."""
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: {to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase._unlink()
        to_erase._erased = True  # its own neighbors stay, for a loop that stands on it
        self._len -= 1
        to_erase._update_args_kwargs((), {})

    def inserting_before(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go before a node inside the block; without one, to the beginning of the graph."""
        return self.inserting_after(self._root) if n is None else self._insert_point(n, n.prepend)

    def inserting_after(self, n: Node | None = None) -> contextlib.AbstractContextManager[None]:
        """New nodes go behind a node inside the block; without one, to the end of the graph."""
        return self.inserting_before(self._root) if n is None else self._insert_point(n, n.append)

    @restoring
    def _insert_point(undo: Actions, self: Graph, n: Node, insert: Callable[[Node], None]) -> None:  # noqa: N805
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        # In their own order behind a node: each goes behind the one before.
        at = n

        def behind(node: Node) -> None:
            nonlocal at
            at.append(node)
            at = node

        undo.append(partial(setattr, self, "_insert", self._insert))
        self._insert = insert if insert == n.prepend else behind

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase nodes whose result is not used and that have no other effect. Returns whether there were any."""
        impure = Node.is_impure if is_impure_node is None else is_impure_node
        changed = False
        for node in reversed(self.nodes):
            if not node.users and not impure(node) and node.op not in ("placeholder", "output"):
                self.erase_node(node)
                changed = True
        return changed

    # ------------------------------------------------------------------ checks and text

    def lint(self) -> None:
        """RuntimeError where the graph is not well-formed: nodes of others, uses before definitions, missing targets."""
        names: set[str] = set()
        defined: set[Node] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            names.add(node.name)
            for arg in node.all_input_nodes:
                if arg.graph is not self:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' does not belong to this Graph, but was used as an argument! If you "
                        "are copying nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap "
                        "values\n"
                        f"{self}"
                    )
                if arg not in defined:
                    raise RuntimeError(
                        f"Argument '{arg}' of Node '{node}' was used before it has been defined! Please check that Nodes in "
                        f"the graph are topologically ordered\n{self}"
                    )
            defined.add(node)
            if self._owning_module is not None and node.op in ("get_attr", "call_module"):
                _check_target(self._owning_module, node)

    def python_code(self, root_module: str, **unused: Any) -> PythonCode:
        """The graph as Python."""
        namespace = _Namespace()
        for node in self.nodes:
            namespace._rename_object(node, node.name)
        return self._codegen._gen_python_code(self.nodes, root_module, namespace)

    def set_codegen(self, codegen: CodeGen) -> None:
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Any]) -> contextlib.AbstractContextManager[None]:
        """Let a function change the lines of generated code; leaving the returned block undoes it."""
        codegen = self._codegen
        before = codegen._body_transformer
        codegen._body_transformer = make_transformer(before)
        return _restore_code(codegen, before)

    def process_inputs(self, *args: Any) -> Any:
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Print a line for each node in columns."""
        header = ("opcode", "name", "target", "args", "kwargs")
        rows = [header, *[tuple(map(str, (n.op, n.name, n.target, n.args, n.kwargs))) for n in self.nodes]]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        for row in rows:
            print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())

    def __str__(self) -> str:
        parameters: list[str] = []
        returned = [""]
        lines = [node.format_node(parameters, returned) for node in self.nodes]
        return f"graph({', '.join(p for p in parameters if ':' in p)}){returned[0]}:" + "".join(
            f"\n    {line}" for line in lines if line
        )

    def __deepcopy__(self, memo: Any = None) -> Graph:
        memo = {} if memo is None else memo
        copied = Graph(tracer_cls=self._tracer_cls)
        memo[id(self)] = copied
        nodes: dict[Node, Node] = {}
        result = copied.graph_copy(self, nodes, return_output_node=True)
        if result is not None:
            value, old = result
            new = copied.output(value, type_expr=old.type)
            new.meta = copy.copy(old.meta)
        copied._codegen = copy.deepcopy(self._codegen)
        return copied


@restoring
def _restore_code(undo: Actions, codegen: CodeGen, before: Any) -> None:
    """At the end of its block, generated code is changed no more."""
    undo.append(partial(setattr, codegen, "_body_transformer", before))


def _check_target(owner: Any, node: Node) -> None:
    at = owner
    for part in str(node.target).split("."):
        if not hasattr(at, part):
            raise RuntimeError(
                f"Node {node} target {node.target} references nonexistent attribute {part} of {type(at).__name__}"
            )
        at = getattr(at, part)
