"""Tests with other projects' programs. They need the extra `interop`, and node for speedscope: run them with `make interop`."""

from __future__ import annotations

import os

# INTEROP_FOLDER is where `make interop` put what pip cannot install; without it these tests are not even collected.
if not os.environ.get("INTEROP_FOLDER"):
    collect_ignore_glob = ["test_*.py"]
