"""The call tree, or the module tree."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....analysis.calltree import CallNode, CallTree
from ....analysis.findings import duration, size
from ....analysis.module_tree import ModuleNode, module_tree
from ....store.store import EventStore
from ... import reading
from ...exit_codes import FINE, Failure

EXAMPLE = "mtprof tree trace.json --by module --depth 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--by", choices=("call", "module"), default="call", help="calls, or nn.Module paths")
    parser.add_argument("--depth", type=int, default=8, help="levels to show (default 8)")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT", help="leave out what took less (default 0.5)")
    reading.add_json(parser)
    parser.add_argument("--python", action="store_true", help="with --by call: Python functions too")


def run(args: argparse.Namespace) -> int:
    """Print the tree with the time of each node, from the roots down to --depth."""
    store = reading.open_recording(args.path).store
    nodes = _modules(store) if args.by == "module" else _calls(store, args.python)
    whole = sum(map(_total, nodes))
    if args.json:
        print(dumps(_as_plain(nodes, args.depth, whole * args.least / 100), indent=1))
    elif args.by == "module":
        _print_modules(nodes, args.depth, whole * args.least / 100)
    else:
        _print_calls(nodes, args.depth, whole, whole * args.least / 100)
    return FINE


def _calls(store: EventStore, python: bool) -> list[Any]:
    return list(CallTree(store, None if python else ~store.is_python).root().children)


def _modules(store: EventStore) -> list[Any]:
    roots = module_tree(store)
    if not roots:
        raise Failure("no modules were recorded: profile(with_modules=True), or `mtprof run --modules`")
    return list(roots)


def _total(node: CallNode | ModuleNode) -> int:
    """Nanoseconds of a node and all below it."""
    return node.total_ns if isinstance(node, CallNode) else node.forward_ns + node.backward_ns


def _as_plain(nodes: list[Any], depth: int, least: float) -> list[dict[str, Any]]:
    """The fields of all nodes that are shown, each with those below it as `children`."""
    if depth <= 0:
        return []
    kept = sorted((node for node in nodes if _total(node) >= least), key=_total, reverse=True)
    return [{**vars(node), "children": _as_plain(node.children, depth - 1, least)} for node in kept]


def _print_modules(roots: list[Any], depth: int, least: float) -> None:
    print(f"{'total':>9} {'forward':>9} {'backward':>9} {'memory':>9} {'flops':>9}  module")
    for root in roots:
        for line in _module_lines(root, 0, depth, least):
            print(line)


def _print_calls(nodes: list[Any], depth: int, whole: int, least: float) -> None:
    print(f"{'total':>9} {'self':>9} {'share':>6} {'calls':>9}  call")
    for node in nodes:
        for line in _call_lines(node, 0, depth, whole, least):
            print(line)


def _call_lines(node: CallNode, level: int, depth: int, whole: int, least: float) -> Iterator[str]:
    if level >= depth or node.total_ns < least:
        return
    share = node.total_ns / whole if whole else 0.0
    label = "  " * level + shown(node.name)
    yield f"{duration(node.total_ns):>9} {duration(node.self_ns):>9} {share:>6.1%} {node.count:>9,}  {label}"
    for child in node.children:
        yield from _call_lines(child, level + 1, depth, whole, least)


def _module_lines(node: ModuleNode, level: int, depth: int, least: float) -> Iterator[str]:
    total = node.forward_ns + node.backward_ns
    if level >= depth or total < least:
        return
    yield (
        f"{duration(total):>9} {duration(node.forward_ns):>9} {duration(node.backward_ns):>9} {size(node.bytes):>9} "
        f"{node.flops:>9.3g}  {'  ' * level}{shown(node.name)}"
    )
    for child in sorted(node.children, key=lambda child: -(child.forward_ns + child.backward_ns)):
        yield from _module_lines(child, level + 1, depth, least)
