"""What a source file says of its lines: which can run, where loops and functions are, and which run between two calls.

In a loop that makes no call itself nothing is recorded, so the text tells where the time went.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import NamedTuple

_MOST_BYTES = 4 << 20


class _Span(NamedTuple):
    first: int
    last: int


class Source:
    """The statements and loops of one file."""

    def __init__(self, text: str) -> None:
        tree = ast.parse(text)
        statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
        loops = [node for node in statements if isinstance(node, ast.For | ast.AsyncFor | ast.While)]
        self._loops = sorted({_span(node) for node in loops}, key=lambda span: (span.first - span.last, span.first))
        functions = [node for node in statements if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        # The first line of a function is that of its first decorator.
        self.functions = {
            (min([node.lineno, *(each.lineno for each in node.decorator_list)]), node.name): _span(node).last
            for node in functions
        }

    def line_between(self, before: int, after: int) -> int:
        """The line where the time went between a call on one line and the next on another: a loop in between, if there is one.

        Without one it is the line of the next call, whose arguments come first.
        """
        if before == after:
            return before
        if after > before:
            stretches = [_Span(before, after)]
        else:  # round the loop that both are in
            around = min(
                (loop for loop in self._loops if loop.first <= after and before <= loop.last),
                key=lambda loop: loop.last - loop.first,
                default=None,
            )
            if around is None:
                return after
            stretches = [_Span(around.first, after), _Span(before, around.last + 1)]
        for stretch in stretches:
            for loop in self._loops:  # the longest first
                if stretch.first < loop.first and loop.last < stretch.last:
                    return loop.first
        return after


def _span(node: ast.stmt) -> _Span:
    return _Span(node.lineno, node.end_lineno or node.lineno)


@lru_cache(maxsize=64)
def _read(path: str, changed_ns: int) -> Source | None:
    try:
        with open(path, encoding="utf-8") as stream:
            return Source(stream.read(_MOST_BYTES))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def source_of(file: str) -> Source | None:
    """The source of a recorded file, which is relative to the working directory; None if it is not here or cannot be read."""
    try:
        changed_ns = os.stat(file).st_mtime_ns
    except (OSError, ValueError):
        return None
    return _read(file, changed_ns) if file.endswith(".py") else None


_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def executable_lines(text: str, path: str) -> tuple[list[tuple[CodeType, list[int]]], frozenset[int]]:
    """The functions of a source, each with the lines that can run, and the lines where loops begin.

    The module itself is one of the functions.
    """
    try:
        module = ast.parse(text)
        loops = frozenset(node.lineno for node in ast.walk(module) if isinstance(node, _LOOPS))
        return list(_codes(compile(module, path, "exec", dont_inherit=True))), loops
    except (SyntaxError, ValueError, RecursionError):
        return [], frozenset()


def _codes(code: CodeType) -> Iterator[tuple[CodeType, list[int]]]:
    yield code, sorted({line for _, _, line in code.co_lines() if line})
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
