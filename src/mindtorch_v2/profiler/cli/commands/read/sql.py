"""Questions of one's own in SQL, answered by DuckDB."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterable
from typing import Any

from ...._io.csv_cells import csv_cell
from ...._io.strict_json import dumps
from ...._io.terminal import shown
from ....views.tabular import import_extra, to_arrow
from ... import reading
from ...exit_codes import FINE, USAGE, Failure
from ...progress import CountLine

EXAMPLE = 'mtprof sql profile.mtp "select name, sum(self_ns) / 1e6 ms from events group by name order by ms desc limit 5"'

_TABLES = (
    "tables: events (one row per event, times in ns), averages (one row per key, times in us); of a folder of ranks: ranks, "
    "steps, ops, communications"
)
_DIGESTS = ".mtranks"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what the command takes."""
    reading.add_path(parser)
    parser.add_argument("query", help=f"a statement of DuckDB; {_TABLES}")
    parser.add_argument("--columns", action="store_true", help="list the columns of both tables first")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--csv", action="store_true", help="comma-separated values with a header")


def run(args: argparse.Namespace) -> int:
    """Print what the statement returns."""
    try:
        duckdb = import_extra("duckdb", "sql", "this command")
        import_extra("pyarrow", "sql", "this command")
    except ImportError as error:
        raise Failure(str(error), USAGE) from None
    tables = _job_tables(args.path) if _is_job(args.path) else _recording_tables(args.path)
    # Statements see these tables, and neither files nor the network.
    connection = duckdb.connect(":memory:", config={"enable_external_access": "false"})
    try:
        for name, table in tables.items():
            connection.register(name, table)
        if args.columns:
            for table in tables:
                names = [row[0] for row in connection.execute(f"describe {table}").fetchall()]
                print(f"{table}: {', '.join(names)}", file=sys.stderr)
        result = connection.execute(args.query)
        header = [column[0] for column in result.description or ()]
        rows = result.fetchall()
    except duckdb.Error as error:
        said = " ".join(str(error).partition("\n\n")[0].split())  # without the statement, which follows
        raise Failure(f"{said}; {_TABLES}", USAGE) from None
    finally:
        connection.close()
    if args.json:
        for row in rows:
            print(dumps(dict(zip(header, map(_plain, row), strict=True))))
    elif args.csv:
        csv.writer(sys.stdout, lineterminator="\n").writerows([header, *([csv_cell(cell) for cell in row] for row in rows)])
    else:
        _print_table(header, rows)
    return FINE


def _is_job(path: str) -> bool:
    """Whether the path is of many ranks: a folder of recordings, a pattern, digests, or an address."""
    return "://" in path or path.endswith(_DIGESTS) or "*" in path or os.path.isdir(path)


def _recording_tables(path: str) -> dict[str, Any]:
    profile = reading.open_recording(path)
    return {"events": to_arrow(profile.store), "averages": to_arrow(profile.key_averages())}


def _job_tables(path: str) -> dict[str, Any]:
    from ....formats import TraceError
    from ....ranks import load
    from ....ranks.tables import job_tables

    with CountLine("reading ranks", "files") as line:
        try:
            return job_tables(load(path, progress=line.update))
        except TraceError as error:
            raise Failure(str(error)) from None


def _plain(cell: Any) -> Any:
    """A cell as JSON has it: what JSON does not know (dates, decimals of DuckDB) as text."""
    return cell if cell is None or isinstance(cell, str | int | float | bool | list | dict) else str(cell)


def _print_table(header: list[str], rows: Iterable[tuple[Any, ...]]) -> None:
    texts = [
        [shown("" if cell is None else f"{cell:,.6g}" if isinstance(cell, float) else str(cell)) for cell in row]
        for row in rows
    ]
    heads = [shown(name) for name in header]
    widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
    for line in [heads, ["-" * width for width in widths], *texts]:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
