"""Node: one operation of a graph, and the arguments it takes from other nodes."""

from __future__ import annotations

import builtins
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Union

from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

Target = Union[Callable[..., Any], str]  # noqa: UP007  one of torch's names for types
Argument = Any
_PACKAGE = __name__.partition(".")[0]
_legal_ops = frozenset({"placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root"})
_side_effectful_functions: set[Callable[..., Any]] = {print}


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function as one whose calls stay in a graph although their result is not used."""
    _side_effectful_functions.add(fn)
    return fn


def _package() -> Any:
    return sys.modules[_PACKAGE]


def _type_repr(obj: object) -> str:
    """A type as an annotation has it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return f"{public_module(obj.__module__)}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj).replace("mindtorch_v2.", "torch.")


def public_module(name: str) -> str:
    """A module's name as users import it: `torch.nn` for this package's `nn`."""
    return "torch" + name[len(_PACKAGE) :] if name == _PACKAGE or name.startswith(_PACKAGE + ".") else name


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """The name by which generated code calls a function."""
    if getattr(builtins, func.__name__, None) is func:
        return func.__name__
    if isinstance(func, types.MethodDescriptorType | types.WrapperDescriptorType):
        return f"{public_module(func.__objclass__.__module__)}.{func.__objclass__.__qualname__}.{func.__name__}"
    name = func.__name__
    if name == "<lambda>":
        # A lambda that is kept under a name can be called by that name.
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except OSError as error:
            raise RuntimeError("Unable to represent lambda") from error
    if getattr(_package(), name, None) is func:
        return f"torch.{name}"
    if getattr(func, "__module__", None) is None:
        raise RuntimeError(f"cannot find module for {func}")
    module = public_module(func.__module__)
    if module == "torch._ops":
        module = "torch.ops"
    return f"{module.replace('_operator', 'operator')}.{name}"


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """Arguments with `fn` applied to everything that is no tuple, list, dict or slice; these become immutable."""
    if isinstance(a, tuple):
        values = [map_aggregate(value, fn) for value in a]
        return type(a)(*values) if hasattr(a, "_fields") else tuple(values) if type(a) is tuple else type(a)(values)
    if isinstance(a, list):
        return immutable_list([map_aggregate(value, fn) for value in a])
    if isinstance(a, dict):
        return immutable_dict([(key, map_aggregate(value, fn)) for key, value in a.items()])
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """Arguments with `fn` applied to every node in them."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


class Node:
    """One operation of a graph.

    `op` is one of "placeholder", "get_attr", "call_function", "call_module", "call_method" and "output"; `target` is what is
    called or read. `users` are the nodes that take its result, in order.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {_type_repr(type(target))} but a "
                    "Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {_type_repr(type(target))} but a str is "
                "expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self.type = return_type
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self.meta: dict[str, Any] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._update_args_kwargs(args, kwargs)

    # ------------------------------------------------------------------ neighbors

    @property
    def next(self) -> Node:
        return self._next

    @property
    def prev(self) -> Node:
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move another node of the graph before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return
        x._unlink()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move another node of the graph behind this one."""
        self._next.prepend(x)

    def _unlink(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        """Whether this node comes before another one of its graph."""
        return self is not other and any(node is other for node in _from(self))

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # ------------------------------------------------------------------ arguments

    @property
    def args(self) -> tuple[Argument, ...]:
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args: Any, kwargs: Any) -> None:
        inputs: dict[Node, None] = {}

        def note(value: Argument) -> Argument:
            if isinstance(value, Node):
                inputs[value] = None
            return value

        self._args = map_aggregate(tuple(args), note)
        self._kwargs = map_aggregate(dict(kwargs), note)
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = inputs
        for node in inputs:
            node.users.setdefault(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self._args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Add a positional argument before that at `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set one keyword argument."""
        self.kwargs = {**self._kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node's result where one was taken so far."""

        def swap(node: Node) -> Node:
            return new_input if node is old_input else node

        self._update_args_kwargs(map_arg(self._args, swap), map_arg(self._kwargs, swap))

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] = lambda user: True, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Make the users of this node, or those that a predicate allows, take another node's result. Returns these."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has "
                    ".meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # ------------------------------------------------------------------ what it is

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node must stay in the graph although its result is not used."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            schema_name = getattr(self.target, "__name__", "")
            if impure_random and getattr(self.target, "_nondeterministic_seeded", False):
                return True
            # By convention, what changes its first argument ends in an underscore, and so do the in-place operators in `i`.
            in_place = schema_name.endswith("_") and not schema_name.endswith("__")
            return self.target in _side_effectful_functions or in_place or schema_name == "setitem"
        if self.op == "call_method":
            name = str(self.target)
            return (name.endswith("_") and not name.endswith("__")) or name == "__setitem__"
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return bool(getattr(owner.get_submodule(str(self.target)), "_is_impure", False))
        return False

    @property
    def stack_trace(self) -> str | None:
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"  # type: ignore[attr-defined]
        return _get_qualified_name(target)  # type: ignore[arg-type]

    def format_node(
        self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None, **unused: Any
    ) -> str | None:
        """The node as a line of a printed graph."""
        typename = f"{_type_repr(self.type)} " if self.type else ""
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target}: {_type_repr(self.type)}" if self.type else str(self.target))
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}[target={self.target}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}"
            f"[target={self._pretty_print_target(self.target)}](args = {_format_arg(self.args)}, "
            f"kwargs = {_format_arg(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn is not None else self.name


def _from(node: Node) -> Iterable[Node]:
    node = node._next
    while node.op != "root":
        yield node
        node = node._next


def _format_arg(arg: Any) -> str:
    if isinstance(arg, list):
        return "[" + ", ".join(map(_format_arg, arg)) + "]"
    if isinstance(arg, tuple):
        inner = ", ".join(map(_format_arg, arg))
        return f"({inner},)" if len(arg) == 1 else f"({inner})"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)
