"""Writes a recording as one HTML page that needs neither server nor network."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import resources
from typing import Any

from .._io.files import write_file
from .._io.markup import html_text, json_in_html
from .._io.strict_json import dumps
from ..analysis.memory.categories import Uses
from ..store.store import EventStore
from . import data

# The page's script is these files joined in this order: each uses only those before it.
SCRIPTS = (
    "widgets/dom.js",
    "widgets/tables.js",
    "widgets/format.js",
    "widgets/palette.js",
    "model/decode.js",
    "model/model.js",
    "model/groups.js",
    "widgets/app.js",
    "widgets/gestures.js",
    "sections/details.js",
    "model/memory_use.js",
    "charts/step_chart.js",
    "sections/overview.js",
    "sections/operators.js",
    "model/calltree.js",
    "sections/branches.js",
    "charts/icicle.js",
    "sections/flame.js",
    "charts/lanes.js",
    "charts/minimap.js",
    "charts/counters.js",
    "charts/paint.js",
    "sections/timeline.js",
    "charts/memory_chart.js",
    "sections/memory.js",
    "sections/modules.js",
    "sections/source.js",
    "charts/roofline_chart.js",
    "sections/roofline.js",
    "sections/device.js",
    "sections/advice.js",
    "main.js",
)
_IMPORT = re.compile(r"^import [^;]*;\n", re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def export(
    store: EventStore,
    path: str | os.PathLike[str],
    *,
    title: str | None = None,
    findings: Iterable[Any] = (),
    memory: Uses | None = None,
    overhead: Any = None,
) -> None:
    """Write the report of a recording to `path`.

    title: the heading, "Profile" by default. findings: advice, each with rule, title, detail, evidence, where, gain_ns and
    share. memory: categories of memory. overhead: per_event_ns, events, total_ns, low_ns, high_ns and share of the profiler's
    own cost, and optionally self_ns, the self times without that cost.
    """
    about = data.about(store, title=title or "Profile", findings=findings, memory=memory, overhead=overhead)
    write_file(path, page(about, data.columns(store, memory, overhead), joined_script()))


def page(about: dict[str, Any], columns: Iterable[data.Column], script: str, more_style: str = "") -> Iterator[bytes]:
    """A page in pieces: what it is about, which has a title, the columns that its script reads, and the script."""
    style = _asset("style.css") + more_style
    fields = {
        "title": html_text(about["title"]),
        "policy": f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
        "style": style,
        "about": json_in_html(about),
        "script": script,
    }
    head, tail = (_filled(part, fields) for part in _asset("page.html").split("{{columns}}"))
    yield head.encode("utf-8", "replace")
    for column in columns:
        yield (
            f'<script type="application/octet-stream" data-column="{column.name}" data-spec="{html_text(dumps(column.spec))}">'
        ).encode()
        yield column.text
        yield b"</script>\n"
    yield tail.encode("utf-8", "replace")


def _filled(template: str, fields: dict[str, str]) -> str:
    # In one pass, so that a field's own text is never searched for fields.
    return re.sub(r"\{\{(\w+)\}\}", lambda field: fields[field[1]], template)


@cache
def joined_script(names: tuple[str, ...] = SCRIPTS) -> str:
    """Modules in one script; imports and exports are removed, since names are declared above their use."""
    return "\n".join(without_imports(_asset(name)) for name in names)


def without_imports(text: str) -> str:
    """A module as a part of a script that joins several."""
    return _EXPORT.sub("", _IMPORT.sub("", text))


@cache
def _asset(name: str) -> str:
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
