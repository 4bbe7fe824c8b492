"""The Python code that a graph is: names, values, statements."""

from __future__ import annotations

import builtins
import enum
import keyword
import math
import operator
import re
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.memory_format import layout, memory_format
from .node import Argument, Node, _get_qualified_name, _package, _type_repr, public_module

if TYPE_CHECKING:
    from .graph import _Nodes

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

    __module__ = "mindtorch_v2.fx.graph"

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

    __module__ = "mindtorch_v2.fx.graph"

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
