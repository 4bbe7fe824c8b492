"""Graph: the operations of a function or a module in order, and the Python code that they are."""

from __future__ import annotations

import builtins
import contextlib
import copy
import enum
import keyword
import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.memory_format import layout, memory_format
from .._core.restoring import Actions, restoring
from .node import Argument, Node, Target, _get_qualified_name, _package, _type_repr, map_arg, public_module

# Operators as generated code writes them. Those that have a reflected form come first.
REFLECTED = {
    operator.add: "{} + {}",
    operator.sub: "{} - {}",
    operator.mul: "{} * {}",
    operator.floordiv: "{} // {}",
    operator.truediv: "{} / {}",
    operator.mod: "{} % {}",
    operator.pow: "{} ** {}",
    operator.lshift: "{} << {}",
    operator.rshift: "{} >> {}",
    operator.and_: "{} & {}",
    operator.or_: "{} | {}",
    operator.xor: "{} ^ {}",
    operator.matmul: "{} @ {}",
}
OPERATORS: dict[Any, str] = {
    **REFLECTED,
    operator.eq: "{} == {}",
    operator.ne: "{} != {}",
    operator.lt: "{} < {}",
    operator.gt: "{} > {}",
    operator.le: "{} <= {}",
    operator.ge: "{} >= {}",
    operator.getitem: "{}[{}]",
    operator.neg: "-{}",
    operator.invert: "~{}",
    operator.pos: "+{}",
}
# Those that change their first operand; the statement has no value.
_IN_PLACE: dict[Any, str] = {
    operator.iadd: "{} += {}",
    operator.iand: "{} &= {}",
    operator.ifloordiv: "{} //= {}",
    operator.ilshift: "{} <<= {}",
    operator.imod: "{} %= {}",
    operator.imul: "{} *= {}",
    operator.imatmul: "{} @= {}",
    operator.ior: "{} |= {}",
    operator.ipow: "{} **= {}",
    operator.irshift: "{} >>= {}",
    operator.isub: "{} -= {}",
    operator.itruediv: "{} /= {}",
    operator.ixor: "{} ^= {}",
    operator.setitem: "{}[{}] = {}",
}
# By name, as torch has them.
magic_methods = {function.__name__: sign for function, sign in OPERATORS.items()}
inplace_methods = {function.__name__: sign for function, sign in _IN_PLACE.items()}
_reserved = {*dir(builtins), *keyword.kwlist, "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree"}


class _Namespace:
    """Names for nodes and for the globals of generated code: identifiers, each once."""

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}
        self._used: set[str] = set()
        self._counts: defaultdict[str, int] = defaultdict(int)

    def create_name(self, candidate: str, obj: Any | None) -> str:
        if obj is not None and obj in self._names:
            return self._names[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = candidate, None
        if match := re.match(r"(.*)_(\d+)$", candidate):
            base, number = match.group(1), int(match.group(2))
        name = candidate
        count = self._counts[base] if number is None else number
        while name in self._used or (name in _reserved and not (obj is not None and _is_global(name, obj))):
            count += 1
            name = f"{base}_{count}"
        self._used.add(name)
        self._counts[base] = count
        if obj is not None:
            self._names[obj] = name
        return name

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        self._names[obj] = name

    def _rename_object(self, obj: Any, name: str) -> None:
        self._names[obj] = name
        self._used.add(name)


def _is_global(name: str, obj: Any) -> bool:
    """Whether a reserved name means this very object in generated code."""
    return obj is getattr(builtins, name, None) or (obj in _GLOBALS.values() and _GLOBALS.get(name) is obj)


_GLOBALS: dict[str, Any] = {"inf": math.inf, "nan": math.nan, "NoneType": type(None), "device": Device}


class PythonCode(NamedTuple):
    """Generated code, and the globals it needs."""

    src: str
    globals: dict[str, Any]


class CodeGen:
    """Writes a graph as a function. A subclass may change its signature, and how inputs and outputs are packed."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument) -> str:
        """The statement that ends the function."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        return args

    def process_outputs(self, outputs: Any) -> Any:
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        return []

    def _gen_python_code(self, nodes: _Nodes, root_module: str, namespace: _Namespace) -> PythonCode:
        writer = _Writer(root_module, namespace)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        lines = writer.body(nodes, self)
        if not lines:
            lines = ["pass\n"]
        if self._body_transformer is not None:
            lines = self._body_transformer(lines)
        body = "".join("    " + line for line in "".join(lines).splitlines(keepends=True))
        prologue = self.gen_fn_def(writer.parameters, writer.return_annotation)
        # A function that `wrap` named stays one node when the code is traced in its turn.
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        if wraps:
            writer.globals.setdefault("torch", _package())
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{body}    ", writer.globals)


class _Writer:
    """The statements of a graph's function."""

    def __init__(self, root_module: str, namespace: _Namespace) -> None:
        self._root = root_module
        self._namespace = namespace
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}  # names of functions that are called as a whole, in order
        self.parameters: list[str] = []
        self.return_annotation = ""

    def add_global(self, name_hint: str, obj: Any) -> str:
        """The name of an object in the code: torch's own by their qualified names."""
        if public_module(getattr(obj, "__module__", None) or "").partition(".")[0] == "torch" or _in_torch(name_hint):
            self.globals.setdefault("torch", _package())
            return name_hint
        name = self._namespace.create_name(name_hint.replace(".", "_"), obj if _hashable(obj) else None)
        self.globals[name] = obj
        return name

    def _type_name(self, annotation: Any) -> str:
        text = _type_repr(annotation)
        if isinstance(annotation, type) and annotation.__module__ == "builtins":
            return text
        if text.startswith("torch."):
            return self.add_global(text, annotation)
        return self.add_global(text.rpartition(".")[2] if isinstance(annotation, type) else "annotation", annotation)

    def value(self, arg: Any) -> str:
        """An argument as an expression."""
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            inner = ", ".join(f"{name} = {self.value(value)}" for name, value in zip(arg._fields, arg, strict=True))
            return f"{self.add_global(_type_repr(type(arg)).rpartition('.')[2], type(arg))}({inner})"
        if isinstance(arg, tuple):
            inner = ", ".join(map(self.value, arg))
            return f"({inner},)" if len(arg) == 1 else f"({inner})"
        if isinstance(arg, list):
            return "[" + ", ".join(map(self.value, arg)) + "]"
        if isinstance(arg, dict):
            return "{" + ", ".join(f"{key!r}: {self.value(value)}" for key, value in arg.items()) + "}"
        if isinstance(arg, slice):
            return f"slice({self.value(arg.start)}, {self.value(arg.stop)}, {self.value(arg.step)})"
        if isinstance(arg, Device):
            self.globals["device"] = Device
            return repr(arg)
        if isinstance(arg, float) and not math.isfinite(arg):
            self.globals.update(inf=math.inf, nan=math.nan)
            return repr(arg)
        if isinstance(arg, DType | memory_format | layout):
            return self.add_global(repr(arg), arg)
        if isinstance(arg, enum.Enum):
            kind = type(arg)
            return f"{self.add_global(kind.__name__, kind)}.{arg.name}"
        if isinstance(arg, type):
            return self._type_name(arg)
        if arg is ...:
            return "Ellipsis"
        if callable(arg) and hasattr(arg, "__name__"):
            return self.add_global(_get_qualified_name(arg), arg)
        return repr(arg)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The arguments of a call."""
        return ", ".join([*map(self.value, args), *[f"{name} = {self.value(value)}" for name, value in kwargs.items()]])

    def body(self, nodes: _Nodes, codegen: CodeGen) -> list[str]:
        last_uses = _last_uses(nodes)
        lines: list[str] = []
        for node in nodes:
            statement = self._statement(node, codegen)
            if statement is None:
                continue
            done = last_uses.get(node, [])
            if node.op not in ("placeholder", "output") and not node.users:
                done = [*done, node]  # its result is not used: it is freed at once
            if node.op == "placeholder":
                lines.append(statement + "\n")
            elif done and node.op != "output":
                lines.append(f"{statement};  {' = '.join(map(repr, done))} = None\n")
            else:
                lines.append(statement + "\n")
        return lines

    def _statement(self, node: Node, codegen: CodeGen) -> str | None:
        annotation = f" : {self._type_name(node.type)}" if node.type is not None else ""
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.parameters.append(f"{node.target}{annotation}{default}")
            plain = str(node.target).replace("*", "")
            return f"{node!r} = {plain}" if plain != repr(node) else None
        if node.op == "output":
            if node.type is not None:
                self.return_annotation = f" -> {self._type_name(node.type)}"
            return codegen.generate_output(_Written(self.value(node.args[0])))
        if node.op == "call_method":
            return f"{node!r}{annotation} = {self._owner(node.args[0])}.{node.target}({self.call(node.args[1:], node.kwargs)})"
        if node.op == "call_module":
            return f"{node!r}{annotation} = {_format_target(self._root, str(node.target))}({self.call(node.args, node.kwargs)})"
        if node.op == "get_attr":
            return f"{node!r}{annotation} = {_format_target(self._root, str(node.target))}"
        return self._function_call(node, annotation)

    def _owner(self, arg: Any) -> str:
        text = self.value(arg)
        return text if isinstance(arg, Node) else f"({text})"

    def _function_call(self, node: Node, annotation: str) -> str:
        target: Any = node.target
        if getattr(target, "__module__", None) == "_operator" and not node.kwargs:
            sign = OPERATORS.get(target)
            if sign is not None and len(node.args) == sign.count("{}"):
                return f"{node!r}{annotation} = {sign.format(*map(self.value, node.args))}"
            sign = _IN_PLACE.get(target)
            if sign is not None and len(node.args) == sign.count("{}"):
                change = sign.format(*map(self.value, node.args))
                return f"{change};  {node!r}{annotation} = {self.value(node.args[0])}"
        name = _get_qualified_name(target)
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{node!r}{annotation} = {self._owner(node.args[0])}.{node.args[1]}"
        known = self.add_global(name, target)
        if node.meta.get("is_wrapped") and known.isidentifier():
            self.wrapped[known] = None
        return f"{node!r}{annotation} = {known}({self.call(node.args, node.kwargs)})"


class _Written(str):
    """Text whose repr is itself: an expression that is written already."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _in_torch(name: str) -> bool:
    return name.startswith("torch.")


def _hashable(obj: Any) -> bool:
    try:
        hash(obj)
    except TypeError:
        return False
    return True


def _last_uses(nodes: _Nodes) -> dict[Node, list[Node]]:
    """By node: those whose results are not used any more once it has run."""
    seen: set[Node] = set()
    ends: dict[Node, list[Node]] = {}
    for user in reversed(nodes):
        for node in user.all_input_nodes:
            if node not in seen:
                seen.add(node)
                ends.setdefault(user, []).append(node)
    return ends


def _format_target(base: str, target: str) -> str:
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


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
