"""What DataLoader is made of: collating, fetching, workers, pinning. Libraries import from here although it is private."""

from __future__ import annotations

from . import collate, fetch, pin_memory, worker

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]

MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL
