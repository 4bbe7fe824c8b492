"""The source files of a recording with their figures, for the page's section of code."""

from __future__ import annotations

from typing import Any

from .._io.terminal import shown
from ..analysis.source.lines import FileLines, Line, source_lines
from ..store.store import EventStore

_MOST_FILES, _MOST_LINES, _MOST_CHARACTERS = 40, 5_000, 400


def source_table(store: EventStore) -> dict[str, Any]:
    """The files with most self time: their text and, for each line with figures, these figures in the order of `fields`."""
    found = source_lines(store)
    return {
        "fields": list(Line(0).to_dict()),
        "files": [_file(file) for file in found.files[:_MOST_FILES]],
        "left_out": max(0, len(found.files) - _MOST_FILES),
        "elsewhere": found.elsewhere_ns,
        "limits": shown(found.limits),
    }


def _file(file: FileLines) -> dict[str, Any]:
    texts = file.source.lines[:_MOST_LINES]
    return {
        "name": shown(file.name, _MOST_CHARACTERS),
        "note": file.note,
        "self": file.self_ns,
        "text": [shown(line.expandtabs(4), _MOST_CHARACTERS) for line in texts],
        "lines": [
            [*(value for name, value in line.to_dict().items() if name != "ops"), _shown_ops(line)]
            for number, line in sorted(file.lines.items())
            if not texts or number <= len(texts)
        ],
    }


def _shown_ops(line: Line) -> list[list[Any]]:
    return [[shown(name, _MOST_CHARACTERS), spent] for name, spent in line.ops.items()]
