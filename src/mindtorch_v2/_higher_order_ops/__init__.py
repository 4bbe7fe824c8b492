"""torch._higher_order_ops: functions of functions, computed step by step."""

from __future__ import annotations

from .associative_scan import associative_scan
from .while_loop import while_loop

__all__ = ["associative_scan", "while_loop"]
