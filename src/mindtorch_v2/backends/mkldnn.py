"""torch.backends.mkldnn: oneDNN itself is not used; `enabled` decides whether layers that can be a single op are one."""

from __future__ import annotations

import sys
from functools import partial
from types import ModuleType

from .._core.restoring import Actions, restoring
from .._ops.nn.lstm_layer import get_mkldnn_enabled, set_mkldnn_enabled


def is_available() -> bool:
    """Whether the library is there: no."""
    return False


@restoring
def flags(undo: Actions, enabled: bool = False) -> None:
    """Set the switch inside a block."""
    undo.append(partial(set_mkldnn_enabled, get_mkldnn_enabled()))
    set_mkldnn_enabled(enabled)


class _Module(ModuleType):
    """Makes `enabled` an attribute that can be assigned, as scripts do."""

    @property
    def enabled(self) -> bool:
        return get_mkldnn_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        set_mkldnn_enabled(on)


sys.modules[__name__].__class__ = _Module
