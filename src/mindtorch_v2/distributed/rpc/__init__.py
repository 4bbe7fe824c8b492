"""torch.distributed.rpc: names that libraries import; no function is called in another process."""

from __future__ import annotations

from .api import *  # noqa: F403
from .api import __all__ as __all__
