"""A comparison in the forms that CI systems show: Markdown for a comment, JUnit for a test report, annotations of GitHub."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from xml.etree import ElementTree

from .._io.markup import html_text
from .._io.strict_json import dumps
from .._io.terminal import MOST_CHARACTERS, shown
from ..analysis.comparison.diff import Change, Diff
from ..analysis.findings import duration
from ..analysis.memory.diff import MemoryChange

# A change of time or memory, and whether it is over a limit that was asked for.
Checked = tuple[Change | MemoryChange, bool]


def text(comparison: Diff, limit: int, checked: list[Checked]) -> str:
    """The table that a person reads in a terminal."""
    return comparison.table(limit)


def json(comparison: Diff, limit: int, checked: list[Checked]) -> str:
    """All figures, for programs; of the changes those that had most effect, as many as the limit allows."""
    figures = comparison.to_dict()
    changes = figures.pop("changes")
    shown_changes = changes if limit < 0 else changes[:limit]
    over = [_name(change) for change, is_over in checked if is_over]
    return dumps({**figures, "changes": shown_changes, "changes_in_all": len(changes), "over_limit": over}, indent=1)


def markdown(comparison: Diff, limit: int, checked: list[Checked]) -> str:
    """A heading with the step as a whole, notes, and a table of what changed."""
    step = comparison.step
    over = {id(change) for change, is_over in checked if is_over}
    mark = " **over the limit**" if id(step) in over else ""
    lines = [
        f"### Step: {duration(step.a_ns)} → {duration(step.b_ns)} ({step.verdict}){mark}",
        "",
        f"{comparison.confidence:.0%} interval {step.interval}; {comparison.a_steps} and {comparison.b_steps} steps"
        f"{comparison.of_recordings}{comparison.kind_of_steps}.",
    ]
    lines += [f"\n{_cell(str(change))}{'. **Over the limit**' if id(change) in over else ''}." for change in comparison.memory]
    lines += [f"\n> {_cell(note)}" for note in comparison.notes]
    changes = comparison.listed if limit < 0 else comparison.listed[:limit]
    if not changes:
        return "\n".join([*lines, "", "No op changed by more than can be told from noise."] if comparison.enough else lines)
    lines += [f"\n{_cell(comparison.taken_out.capitalize())} below."]
    lines += ["", "| op | before | after | change | interval | |", "|---|---:|---:|---:|---|---|"]
    for change in changes:
        interval = change.interval if change.moved else ""
        verdict = f"{change.verdict}, **over the limit**" if id(change) in over else change.verdict
        cells = (_cell(str(change.key)), duration(change.a_ns), duration(change.b_ns), change.moved, interval, verdict)
        lines.append(f"| {' | '.join(cells)} |")
    left = len(comparison.listed) - len(changes)
    return "\n".join([*lines, f"\n{left} more."] if left else lines)


def junit(comparison: Diff, limit: int, checked: list[Checked]) -> str:
    """A test suite: a case for the step, each figure of memory and each op that changed; those over a limit have failed."""
    failed = {id(change) for change, over in checked if over}
    changes: list[Change | MemoryChange] = [comparison.step, *comparison.memory, *comparison.found]
    counts = {"tests": str(len(changes)), "failures": str(sum(id(change) in failed for change in changes))}
    suite = ElementTree.Element("testsuite", {"name": "mtprof diff", **counts})
    for change in changes:
        seconds = {} if isinstance(change, MemoryChange) else {"time": f"{change.b_ns / 1e9:.9f}"}
        case = ElementTree.SubElement(suite, "testcase", {"classname": "mtprof.diff", "name": shown(_name(change)), **seconds})
        if id(change) in failed:
            ElementTree.SubElement(case, "failure", {"message": _sentence(change)})
        else:
            ElementTree.SubElement(case, "system-out").text = _sentence(change)
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=False)


def github(comparison: Diff, limit: int, checked: list[Checked]) -> str:
    """Workflow commands: an error for what is over a limit, a notice for other changes, as many as the limit allows."""
    found = comparison.found if limit < 0 else comparison.found[:limit]
    changes: list[Change | MemoryChange] = [comparison.step, *comparison.memory, *found]
    over = {id(change) for change, is_over in checked if is_over}
    lines = [
        f"::{'error' if id(change) in over else 'notice'} title={_property(_name(change))}::{_message(_sentence(change))}"
        for change in changes
    ]
    return "\n".join([*lines, *(f"::notice::{_message(note)}" for note in comparison.notes)])


FORMATS: Mapping[str, Callable[[Diff, int, list[Checked]], str]] = {
    "text": text,
    "json": json,
    "markdown": markdown,
    "junit": junit,
    "github": github,
}


def _name(change: Change | MemoryChange) -> str:
    return change.name if isinstance(change, MemoryChange) else str(change.key)


def _sentence(change: Change | MemoryChange) -> str:
    if isinstance(change, MemoryChange):
        return str(change)
    beside = "" if change.key.name == "step" else " beside the other ops"
    ratio = f" ({change.moved}{beside}, interval {change.interval})" if change.moved else ""
    return f"{duration(change.a_ns)} -> {duration(change.b_ns)} a step{ratio}: {change.verdict}"


def _cell(value: str) -> str:
    """Text in a table of Markdown: neither markup nor the end of the cell."""
    return html_text(value, MOST_CHARACTERS).replace("|", "\\|").replace("`", "&#96;").replace("*", "\\*").replace("_", "\\_")


def _message(value: str) -> str:
    """Text after a workflow command, in which it escapes what would end it."""
    return shown(value).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _message(value).replace(":", "%3A").replace(",", "%2C")
