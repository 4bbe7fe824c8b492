"""A hook of MkDocs: pages of the site whose files stand outside of docs/, and the links between both.

README.md is the start page. A link to another file of the repository becomes plain text, as the site has no such page.
A page that would load anything from elsewhere is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# page of the site: its file
OUTSIDE = {
    "index.md": "README.md",
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/README.md",
}
_EXTERNAL = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"?(?:https?:)?//[^>]*>")
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from outside."""
    for page, path in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, files: Files, **_: Any) -> str:
    """Point links to the pages of the site, whichever folder their files are in."""
    here = page.file.src_uri
    source = OUTSIDE.get(here, f"docs/{here}")
    pages = {path: page for page, path in OUTSIDE.items()}

    def target(match: re.Match[str]) -> str:
        is_image, text, link, anchor = match.groups()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link))
        uri = pages.get(path) or path.removeprefix("docs/")
        if files.get_file_from_path(uri) is None:
            return match.group(0) if path.startswith("docs/") else text  # within docs/, MkDocs says what is missing
        return f"{is_image}[{text}]({posixpath.relpath(uri, posixpath.dirname(here) or '.')}{anchor or ''})"

    return _LINK.sub(target, markdown)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """The page as it is; PluginError if a browser would load parts of it from elsewhere."""
    external = _EXTERNAL.search(output)
    if external is not None:
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {external.group()}")
    return output
