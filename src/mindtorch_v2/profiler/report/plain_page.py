"""The frame of pages without a script: comparisons and histories. One style, no network."""

from __future__ import annotations

import base64
import hashlib

from .._io.markup import html_text

STYLE = """
:root { color-scheme: light dark; --page: #f6f6f3; --ink: #1d2126; --muted: #5c6570; --line: #dcdcd5;
  --worse: #b3421e; --better: #0b6e75; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14171a; --ink: #e8eaec; --muted: #9aa4ae; --line: #343a40; --worse: #f0936d; --better: #5cc3c4; }
}
body { margin: 0 auto; padding: 24px; max-width: 1100px; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; font-variant-numeric: tabular-nums; }
h1 { font-size: 24px; margin: 0 0 4px; overflow-wrap: anywhere; }
p { margin: 0 0 12px; color: var(--muted); }
p.verdict { font-size: 18px; color: var(--ink); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: 6px 10px; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th { color: var(--muted); font-weight: 550; font-size: 13px; }
th:first-child, td:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere; min-width: 14em; }
.slower, .new { color: var(--worse); }
.faster, .gone { color: var(--better); }
svg { display: block; }
svg.chart { width: 100%; height: auto; margin: 0 0 16px; }
svg .axis { stroke: var(--muted); stroke-dasharray: 2 3; }
svg .interval { stroke: currentColor; stroke-width: 2; }
svg .point { fill: currentColor; }
.flame { width: 100%; font: 11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.flame rect { stroke: var(--page); }
.flame text { fill: #14161a; pointer-events: none; }
.flame .d-3 { fill: #5b9bd0; } .flame .d-2 { fill: #92bfe2; } .flame .d-1 { fill: #c7dff0; } .flame .d0 { fill: #e3e3de; }
.flame .d1 { fill: #f9d9b8; } .flame .d2 { fill: #f5b27a; } .flame .d3 { fill: #e5813a; }
"""


def plain_page(title: str, body: str) -> str:
    """A whole page. `body` is markup; the title is text."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{digest}'">
<title>{html_text(title)}</title>
<style>{STYLE}</style>
{body}</html>
"""
