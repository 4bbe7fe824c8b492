"""torch._VF: ops by the names of torch's functions, past anything that is written around them in Python."""

from __future__ import annotations

from ._dispatch.facts import Surface
from ._dispatch.registry import offered_names

__getattr__, __dir__ = offered_names("torch._VF", Surface.BOTH, Surface.FUNCTION)
