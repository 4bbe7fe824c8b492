"""mtprof tree: who called whom, or what each module took."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from ..analysis.calltree import CallNode, CallTree
from ..analysis.findings import duration, size
from ..analysis.module_tree import ModuleNode, module_tree
from . import reading
from .exit_codes import Failure

EXAMPLE = "mtprof tree trace.json --by module --depth 4"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    reading.add_path(parser)
    parser.add_argument("--by", choices=("call", "module"), default="call", help="calls, or nn.Module paths")
    parser.add_argument("--depth", type=int, default=8, help="levels to show (default 8)")
    parser.add_argument("--least", type=float, default=0.5, metavar="PERCENT", help="leave out what took less (default 0.5)")
    parser.add_argument("--python", action="store_true", help="with --by call: Python functions too")


def run(args: argparse.Namespace) -> int:
    """Print the tree."""
    store = reading.open_recording(args.path).store
    if args.by == "module":
        tops = module_tree(store)
        if not tops:
            raise Failure("no modules were recorded: profile(with_modules=True), or `mtprof run --modules`")
        print(f"{'total':>9} {'forward':>9} {'backward':>9} {'memory':>9} {'flops':>9}  module")
        whole = sum(top.forward_ns + top.backward_ns for top in tops)
        for top in tops:
            for line in _module_lines(top, 0, args.depth, whole * args.least / 100):
                print(line)
        return 0
    root = CallTree(store, None if args.python else ~store.is_python).root()
    print(f"{'total':>9} {'self':>9} {'share':>6} {'calls':>9}  call")
    for called in root.children:
        for line in _call_lines(called, 0, args.depth, root.total_ns, root.total_ns * args.least / 100):
            print(line)
    return 0


def _call_lines(node: CallNode, level: int, depth: int, whole: int, least: float) -> Iterator[str]:
    if level >= depth or node.total_ns < least:
        return
    share = node.total_ns / whole if whole else 0.0
    yield (
        f"{duration(node.total_ns):>9} {duration(node.self_ns):>9} {share:>6.1%} {node.count:>9,}  {'  ' * level}{node.name}"
    )
    for child in node.children:
        yield from _call_lines(child, level + 1, depth, whole, least)


def _module_lines(node: ModuleNode, level: int, depth: int, least: float) -> Iterator[str]:
    total = node.forward_ns + node.backward_ns
    if level >= depth or total < least:
        return
    yield (
        f"{duration(total):>9} {duration(node.forward_ns):>9} {duration(node.backward_ns):>9} {size(node.bytes):>9} "
        f"{node.flops:>9.3g}  {'  ' * level}{node.name}"
    )
    for child in sorted(node.children, key=lambda one: -(one.forward_ns + one.backward_ns)):
        yield from _module_lines(child, level + 1, depth, least)
