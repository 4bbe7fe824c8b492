"""torch._C._nn: the ops of layers as torch's compiled module offers them, and the reading of `Module.to`'s arguments."""

from __future__ import annotations

from .._dispatch.facts import Surface
from .._dispatch.registry import offered_names
from ..nn.modules._conversion import _parse_to

__all__ = ["_parse_to"]

# Convolutions that name their kernel are nowhere else: they say that nothing offers them.
__getattr__, __dir__ = offered_names("torch._C._nn", Surface.LAYER, Surface.NONE)
