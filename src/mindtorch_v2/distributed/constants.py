"""torch.distributed.constants: how long processes wait for each other, for defaults of arguments."""

from __future__ import annotations

from datetime import timedelta

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_timeout = timedelta(minutes=30)
default_pg_nccl_timeout = None  # of a backend that does not exist here
