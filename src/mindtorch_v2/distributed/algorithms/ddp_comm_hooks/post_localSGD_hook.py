"""torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook: names that libraries import."""

# ruff: noqa: N999  torch's name of the module
from __future__ import annotations

from ..._absent import absent_class, absent_function

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

PostLocalSGDState = absent_class(__name__, "PostLocalSGDState")
post_localSGD_hook = absent_function(__name__, "post_localSGD_hook")  # noqa: N816
