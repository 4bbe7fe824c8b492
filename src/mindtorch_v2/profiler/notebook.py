"""`%load_ext mindtorch_v2.profiler`: the magic `%%profile` of Jupyter and IPython."""

from __future__ import annotations

import argparse
import ast
import base64
import os
import shlex
import sys
import tempfile
from importlib import import_module
from types import FunctionType
from typing import Any, NoReturn

from ._io.markup import html_text
from .config import RECORD_OPTIONS
from .profiler import profile
from .recording.hidden_threads import hide_threads_of
from .recording.python_calls.stream import OUTERMOST
from .report.flame_svg import flame_graph
from .views.event_list import EventList

_HEIGHT = 700  # of a report in a cell, in pixels


class _Report:
    """The page of a recording as a cell's output. It has a document of its own, so that its script sees nothing else."""

    def __init__(self, page: str) -> None:
        self._page = page

    def _repr_html_(self) -> str:
        encoded = base64.b64encode(self._page.encode()).decode()
        return (
            f'<iframe title="{html_text("Profile")}" sandbox="allow-scripts" '
            f'style="width:100%;height:{_HEIGHT}px;border:1px solid #ccc" src="data:text/html;base64,{encoded}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<report of a profile, {len(self._page):,} characters>"


class _WithFlames:
    """Averages and a flame graph as a cell's output."""

    def __init__(self, averages: EventList, prof: profile) -> None:
        self._averages = averages
        self._flames = flame_graph(prof._recording())

    def _repr_html_(self) -> str:
        return f"{self._averages._repr_html_()}\n{self._flames}"

    def __repr__(self) -> str:
        return self._averages.table(sort_by="self_cpu_time_total", row_limit=10)


class _LineParser(argparse.ArgumentParser):
    """Refuses a wrong line by raising: argparse would end the process."""

    def error(self, message: str) -> NoReturn:
        # IPython writes its own error in one line, where a ValueError has a traceback into this package.
        errors = sys.modules.get("IPython.core.error")
        kind = ValueError if errors is None else errors.UsageError
        raise kind(f"{self.prog}: {message}\n{self.format_usage().rstrip()}")


def _parser() -> _LineParser:
    parser = _LineParser(prog="%%profile", add_help=False)
    for option, keyword in RECORD_OPTIONS.items():
        parser.add_argument(f"--{option}", action="store_true", help=f"profile({keyword}=True)")
    parser.add_argument("--all", action="store_true", help="all of these")
    parser.add_argument("--flame", action="store_true", help="show a flame graph below the table")
    parser.add_argument("--report", action="store_true", help="show the report instead of the table")
    parser.add_argument("--save", metavar="FILE", default=None, help="also write the recording to a file, .mtp")
    parser.add_argument("name", nargs="?", default=None, help="a variable for the profile")
    return parser


def profile_cell(shell: Any, line: str, cell: str) -> Any:
    """Run a cell under a profile; returns what the notebook is to show: the averages, or the report.

    The cell is compiled here and not given back to the shell, so that none of the notebook's own frames are recorded. The value
    of its last expression is shown above. A cell that raises or is interrupted shows what it did until then, before the error.
    """
    parser = _parser()
    try:
        words = shlex.split(line)
    except ValueError as error:
        parser.error(str(error))
    args = parser.parse_args(words)
    if args.name is not None and not args.name.isidentifier():
        parser.error(f"{args.name!r} is no name of a variable")
    source = shell.transform_cell(cell)
    body, value = _compiled(source, _file_name(shell, source))
    options = {keyword: getattr(args, option) or args.all for option, keyword in RECORD_OPTIONS.items()}
    last, namespace = None, shell.user_ns
    # Functions, since exec() and eval() would be rows of the recording. Code of a module has its globals as locals.
    run_body = FunctionType(body, namespace)
    run_value = None if value is None else FunctionType(value, namespace)
    prof = profile(**options)
    began = False
    try:
        with prof:
            began = True
            run_body()
            if run_value is not None:
                last = run_value()
    except BaseException:
        # A cell that took too long and was interrupted is one that somebody wants to know more of.
        if began:
            _display(_shown_result(prof, args, namespace))
        raise
    shown = _shown_result(prof, args, namespace)
    if last is not None:
        shell.displayhook(last)
    return shown


def _display(value: Any) -> None:
    import_module("IPython.display").display(value)  # a notebook has it


def _shown_result(prof: profile, args: argparse.Namespace, namespace: dict[str, Any]) -> Any:
    """Keep the profile where the line says, and return what the notebook is to show of it."""
    if args.name is not None:
        namespace[args.name] = prof
    if args.save is not None:
        prof.save(args.save)
    if args.report:
        return _Report(_page(prof))
    averages = prof.key_averages()
    return _WithFlames(averages, prof) if args.flame else averages


def _compiled(source: str, name: str) -> tuple[Any, Any]:
    """The code of a cell, and that of its last expression apart, if it ends with one whose value a notebook shows."""
    tree = ast.parse(source, name)
    value = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not source.rstrip().endswith(";"):
        last = tree.body.pop()
        assert isinstance(last, ast.Expr)
        value = compile(ast.Expression(last.value), name, "eval")
    return compile(tree, name, "exec"), value


def _file_name(shell: Any, source: str) -> str:
    """The name under which tracebacks and stacks find the cell's lines."""
    cache = getattr(getattr(shell, "compile", None), "cache", None)
    # Newer IPythons count a cell before they run it; the number of its output is that of the cell in all of them.
    return "<cell>" if cache is None else str(cache(source, shell.displayhook.prompt_count))


def _page(prof: profile) -> str:
    with tempfile.TemporaryDirectory(prefix="mtprof-") as folder:
        path = os.path.join(folder, "report.html")
        prof.export_html(path, title="Cell")
        with open(path, encoding="utf-8") as file:
            return file.read()


# The frames of the notebook itself are not the cell's.
OUTERMOST.add(profile_cell.__code__)


def load_ipython_extension(shell: Any) -> None:
    """Register `%%profile`: what `%load_ext mindtorch_v2.profiler` calls. The kernel's threads are not recorded any more."""
    hide_threads_of("ipykernel")
    hide_threads_of("IPython")
    shell.register_magic_function(lambda line, cell: profile_cell(shell, line, cell), "cell", "profile")


def unload_ipython_extension(shell: Any) -> None:
    """Take the magic away: what `%unload_ext` calls."""
    shell.magics_manager.magics["cell"].pop("profile", None)
