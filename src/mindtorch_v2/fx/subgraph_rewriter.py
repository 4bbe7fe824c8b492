"""replace_pattern: find the places where a graph does what a pattern does, and do something else there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .. import nn
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node


class Match(NamedTuple):
    """A place where the pattern was found: its last node there, and the node for each of the pattern's."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """A match, and the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node] = field(default_factory=list)


def _graph_of(pattern: Callable[..., Any] | Graph | GraphModule) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


class _Matcher:
    """Compares a pattern with the nodes that end at one of a graph's nodes."""

    def __init__(self, pattern: Graph) -> None:
        self.inputs = [node for node in pattern.nodes if node.op == "placeholder"]
        result = pattern.output_node().args[0]
        if not isinstance(result, Node):
            raise NotImplementedError("replace_pattern: a pattern with one node as its result")
        self.anchor = result

    def match(self, node: Node) -> dict[Node, Node] | None:
        """The node for each of the pattern's, if the pattern ends at this one and nothing outside uses what is inside."""
        found: dict[Node, Node] = {}
        if not self._same(self.anchor, node, found):
            return None
        inside = {at for of, at in found.items() if of.op != "placeholder"}
        for of, at in found.items():
            if of.op not in ("placeholder", "get_attr") and at is not node and any(user not in inside for user in at.users):
                return None
        return found

    def _same(self, of: Any, at: Any, found: dict[Node, Node]) -> bool:
        if not isinstance(of, Node) or not isinstance(at, Node):
            return self._same_value(of, at, found)
        if of in found:
            return found[of] is at
        if of.op == "placeholder":
            found[of] = at
            return True
        if of.op != at.op or of.target != at.target or len(of.args) != len(at.args) or set(of.kwargs) != set(at.kwargs):
            return False
        found[of] = at
        return all(self._same(a, b, found) for a, b in zip(of.args, at.args, strict=True)) and all(
            self._same(of.kwargs[key], at.kwargs[key], found) for key in of.kwargs
        )

    def _same_value(self, of: Any, at: Any, found: dict[Node, Node]) -> bool:
        if isinstance(of, list | tuple) and isinstance(at, list | tuple):
            return len(of) == len(at) and all(self._same(a, b, found) for a, b in zip(of, at, strict=True))
        return type(of) is type(at) and not isinstance(of, Node) and bool(of == at)


def replace_pattern(
    gm: GraphModule, pattern: Callable[..., Any] | GraphModule, replacement: Callable[..., Any] | GraphModule
) -> list[Match]:
    """Replace every place of a module's graph that does what `pattern` does by what `replacement` does.

    Both are functions or modules of the same inputs, with one result. Places do not overlap; the module is recompiled.
    """
    return [Match(done.anchor, done.nodes_map) for done in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any,
    match_filters: list[Callable[[Match, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, at the places where all filters hold."""
    if ignore_literals:
        raise NotImplementedError("replace_pattern_with_filters(ignore_literals=True)")
    original, pattern_graph, new_graph = gm.graph, _graph_of(pattern), _graph_of(replacement)
    matcher = _Matcher(pattern_graph)
    new_inputs = [node for node in new_graph.nodes if node.op == "placeholder"]
    if len(new_inputs) != len(matcher.inputs):
        raise ValueError(f"the pattern has {len(matcher.inputs)} inputs, the replacement {len(new_inputs)}")
    taken: set[Node] = set()
    replaced: list[ReplacedPatterns] = []
    now: dict[Node, Node] = {}  # a node that was replaced -> what stands in its place
    for node in list(original.nodes):
        nodes = None if node in taken or node._erased else matcher.match(node)
        if nodes is None:
            continue
        inside = [at for of, at in nodes.items() if of.op not in ("placeholder", "get_attr")]
        match = Match(node, nodes)
        if taken.intersection(inside) or not all(f(match, original, pattern_graph) for f in match_filters or ()):
            continue
        taken.update(inside)
        values = {new: now.get(nodes[of], nodes[of]) for new, of in zip(new_inputs, matcher.inputs, strict=True) if of in nodes}
        with original.inserting_before(node):
            before = set(original.nodes)
            result = original.graph_copy(new_graph, values)
            added = [n for n in original.nodes if n not in before]
        if not isinstance(result, Node):
            raise NotImplementedError("replace_pattern: a replacement with one node as its result")
        node.replace_all_uses_with(result)
        now[node] = result
        for old in reversed([n for n in original.nodes if n in set(inside)]):
            if not old.users:
                original.erase_node(old)
        replaced.append(ReplacedPatterns(node, nodes, added))
    _take_in_modules(gm, replacement)
    gm.recompile()
    return replaced


def _take_in_modules(gm: GraphModule, replacement: Any) -> None:
    """Give a module what the nodes of the replacement name and it has not."""
    if not isinstance(replacement, nn.Module):
        return
    for node in gm.graph.nodes:
        if node.op in ("call_module", "get_attr"):
            name = str(node.target)
            try:
                gm.get_submodule(name) if node.op == "call_module" else gm.get_parameter(name)
            except AttributeError:
                gm.add_submodule(name, replacement.get_submodule(name))


__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]
