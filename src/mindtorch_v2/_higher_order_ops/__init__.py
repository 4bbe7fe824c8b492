"""torch._higher_order_ops: functions of functions, computed step by step."""

from __future__ import annotations

from .associative_scan import associative_scan

__all__ = ["associative_scan"]
