"""The global names of generated op entries.

Every entry that the dispatcher compiles runs with this module's dictionary as its globals, so that
one variable, `observers_active`, is the whole cost of profiling while nobody profiles. The dispatcher fills the rest in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# How many recordings and modes are active in the process; entries look further only when it is not zero.
observers_active: int = 0

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
