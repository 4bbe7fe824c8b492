"""The escapers of text for HTML pages: one for text and attributes, one for JSON inside a script element."""

from __future__ import annotations

import html
from typing import Any

from .strict_json import dumps
from .terminal import shown


def html_text(text: str, most: int = 100_000) -> str:
    """Text as HTML shows it, in elements and in quoted attributes; what is not printable is shown escaped, as on terminals."""
    return html.escape(shown(text, most))


def json_in_html(value: Any) -> str:
    """JSON without the characters that an HTML parser takes for markup."""
    return dumps(value, default=str).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
