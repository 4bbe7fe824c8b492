"""Compare: measurements side by side, a table for each label."""

from __future__ import annotations

import enum
from collections.abc import Callable

from .results import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english


class Colorize(enum.Enum):
    """Which cells are compared with one another when they are colored."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


_Row = tuple[int, str | None, str]  # threads, environment, name
_Cells = dict[tuple[_Row, str], Measurement]

_BETWEEN = "  |  "
_BOLD, _RESET = "\033[1m", "\033[0m"
_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m", "\033[34m", "\033[2m\033[91m", "\033[31m"
_AS_GOOD = 100e-9  # seconds above the best: the noise of a short call


class Compare:
    """The medians of measurements as a table: a row for each sub-label and number of threads, a column for each description."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim_significant_figures = False
        self._colorize = Colorize.NONE
        self._highlight_warnings = False

    def __str__(self) -> str:
        return "\n".join(self._render())

    def extend_results(self, results: list[Measurement]) -> None:
        """Add measurements."""
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(result)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Show no more digits than the spread of the times allows."""
        self._trim_significant_figures = True

    def colorize(self, rowwise: bool = False) -> None:
        """Color cells by how far they are from the best of their column, or of their row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Show the spread of times where it is large."""
        self._highlight_warnings = True

    def print(self) -> None:
        """Print the tables."""
        print(str(self))

    def _render(self) -> list[str]:
        results = Measurement.merge(self._results)
        labels = ordered_unique(each.label for each in results)
        return [self._table([each for each in results if each.label == label]) for label in labels]

    def _table(self, results: list[Measurement]) -> str:
        cells: _Cells = {(_row_of(each), each.description or ""): each for each in results}
        rows = sorted(ordered_unique(row for row, _ in cells), key=lambda row: (row[0], row[1] or ""))
        columns = ordered_unique(column for _, column in cells)
        environments = ordered_unique(row[1] for row in rows)
        unit, scale = select_unit(min(each.median for each in results))
        names = {row: f"  ({row[1]})  {row[2]}" if len(environments) > 1 else f"      {row[2]}" for row in rows}
        shown = [self._column([cells.get((row, column)) for row in rows], scale, column) for column in columns]
        first = max(map(len, names.values()))
        header = " " * first + _BETWEEN + _BETWEEN.join(cell[0].center(cell[1]) for cell in shown)
        title = f" {results[0].task_spec.label or ''} "
        lines = [f"[{title.center(len(header) - 2, '-')}]", header]
        threads = None
        for number, row in enumerate(rows):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(len(header), "-"))
            colored = [
                self._colored(texts[number], cells.get((row, column)), row, column, cells)
                for column, (_, _, texts) in zip(columns, shown, strict=True)
            ]
            lines.append(names[row].ljust(first) + _BETWEEN + _BETWEEN.join(colored))
        footer = f"\nTimes are in {unit_to_english(unit)}s ({unit}).\n"
        if self._highlight_warnings and any(each.has_warnings for each in results):
            footer += "(! XX%) Measurement has high variance, where XX is the IQR / median * 100.\n"
        return "\n".join([*lines, footer])

    def _column(self, column: list[Measurement | None], scale: float, title: str) -> tuple[str, int, list[str]]:
        """A column's title, its width, and the texts of its cells."""
        number = self._number_format(column, scale)
        numbers = ["" if each is None else number(each) for each in column]
        notes = [self._note(each) for each in column]
        digits, behind = max(map(len, numbers)), max(map(len, notes))
        texts = [text.rjust(digits) + note.ljust(behind) for text, note in zip(numbers, notes, strict=True)]
        width = max(len(title), digits + behind)
        return title, width, [text.center(width) for text in texts]

    def _number_format(self, column: list[Measurement | None], scale: float) -> Callable[[Measurement], str]:
        if not self._trim_significant_figures:
            return lambda each: f"{each.median / scale:.1f}"
        known = [each for each in column if each is not None]
        decimals = max(0, *(each.significant_figures - len(str(int(each.median / scale))) for each in known))
        return lambda each: f"{trim_sigfig(each.median, each.significant_figures) / scale:.{decimals}f}"

    def _note(self, each: Measurement | None) -> str:
        if not self._highlight_warnings or each is None or not each.has_warnings:
            return ""
        return f" (! {each.iqr / each.median * 100:.0f}%)"

    def _colored(self, text: str, each: Measurement | None, row: _Row, column: str, cells: _Cells) -> str:
        if each is None or self._colorize is Colorize.NONE:
            return text
        if self._colorize is Colorize.ROWWISE:
            rivals = [other.median for (its_row, _), other in cells.items() if its_row == row]
        else:  # of the same number of threads
            rivals = [other.median for (its_row, name), other in cells.items() if (its_row[0], name) == (row[0], column)]
        before = _color(each.median, min(rivals))
        return f"{before}{text}{_RESET}{_RESET}" if before else text


def _row_of(result: Measurement) -> _Row:
    return result.task_spec.num_threads, result.env, result.as_row_name


def _color(value: float, best: float) -> str:
    """What a terminal is told before a value, by its distance from the best."""
    if value <= best * 1.01 or value <= best + _AS_GOOD:
        return _BEST + _BOLD
    if value <= best * 1.1:
        return _GOOD + _BOLD
    if value >= best * 5:
        return _VERY_BAD + _BOLD
    return _BAD if value >= best * 2 else ""
