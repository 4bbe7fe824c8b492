"""The torch release whose behavior this package follows, and what it was not built with."""

from __future__ import annotations

__version__ = "2.13.0"
cuda = None
hip = None
rocm = None
xpu = None
git_version = "Unknown"
debug = False
