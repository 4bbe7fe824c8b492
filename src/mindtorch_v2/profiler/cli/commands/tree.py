"""The call tree, or the module tree."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..._io.terminal import shown
from ...analysis.calltree import CallNode, CallTree
from ...analysis.findings import duration, size
from ...analysis.module_tree import ModuleNode, module_tree
from ...store.store import EventStore
from .. import reading
from ..exit_codes import FINE, Failure

EXAMPLE = "mtprof tree trace.json --by module --depth 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("--by", choices=("call", "module"), default="call", help="calls, or nn.Module paths")
    parser.add_argument("--depth", type=int, default=8, help="levels to show (default 8)")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT", help="leave out what took less (default 0.5)")
    parser.add_argument("--python", action="store_true", help="with --by call: Python functions too")


def run(args: argparse.Namespace) -> int:
    """Print the tree with the time of each node, from the roots down to --depth."""
    store = reading.open_recording(args.path).store
    if args.by == "module":
        _print_modules(store, args.depth, args.least / 100)
    else:
        _print_calls(CallTree(store, None if args.python else ~store.is_python).root(), args.depth, args.least / 100)
    return FINE


def _print_modules(store: EventStore, depth: int, least: float) -> None:
    roots = module_tree(store)
    if not roots:
        raise Failure("no modules were recorded: profile(with_modules=True), or `mtprof run --modules`")
    print(f"{'total':>9} {'forward':>9} {'backward':>9} {'memory':>9} {'flops':>9}  module")
    whole = sum(root.forward_ns + root.backward_ns for root in roots)
    for root in roots:
        for line in _module_lines(root, 0, depth, whole * least):
            print(line)


def _print_calls(root: CallNode, depth: int, least: float) -> None:
    print(f"{'total':>9} {'self':>9} {'share':>6} {'calls':>9}  call")
    for child in root.children:
        for line in _call_lines(child, 0, depth, root.total_ns, root.total_ns * least):
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
