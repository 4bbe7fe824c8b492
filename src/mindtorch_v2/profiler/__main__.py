"""`python -m mindtorch_v2.profiler` is mtprof."""

from __future__ import annotations

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
