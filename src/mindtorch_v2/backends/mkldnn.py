"""torch.backends.mkldnn: oneDNN itself is not used; `enabled` decides whether layers that can be a single op are one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from .._ops.nn.lstm_layer import get_mkldnn_enabled, set_mkldnn_enabled


def is_available() -> bool:
    """Whether the library is there: no."""
    return False


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Set the switch inside a block."""
    before = get_mkldnn_enabled()
    set_mkldnn_enabled(enabled)
    try:
        yield
    finally:
        set_mkldnn_enabled(before)


class _Module(ModuleType):
    """Makes `enabled` an attribute that can be assigned, as scripts do."""

    @property
    def enabled(self) -> bool:
        return get_mkldnn_enabled()

    @enabled.setter
    def enabled(self, on: bool) -> None:
        set_mkldnn_enabled(on)


sys.modules[__name__].__class__ = _Module
