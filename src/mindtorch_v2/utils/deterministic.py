"""torch.utils.deterministic: what `use_deterministic_algorithms` does to memory that is left unset."""

from __future__ import annotations

import sys
from types import ModuleType

from .._settings import get_fill_uninitialized_memory, set_fill_uninitialized_memory


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether `empty`, `resize_` and the like fill what they leave unset while deterministic algorithms are on."""
        return get_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
