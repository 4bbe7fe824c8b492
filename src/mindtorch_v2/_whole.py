"""Completes a package of which only the profiler's reader was loaded: `mtprof` starts so, to be quick."""

from __future__ import annotations

import sys


def load_runtime() -> None:
    """Load the ops and all else that `import mindtorch_v2` loads, if that was left out."""
    assert __package__ is not None
    sys.modules[__package__].Tensor  # noqa: B018  asking for it executes the package
