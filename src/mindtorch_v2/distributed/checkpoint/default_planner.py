"""torch.distributed.checkpoint.default_planner: plans of one's own, which are refused; the plan here is the default one."""

from __future__ import annotations

from .._absent import absent_class

__all__ = ["DefaultLoadPlanner", "DefaultSavePlanner"]

DefaultLoadPlanner = absent_class(__name__, "DefaultLoadPlanner")
DefaultSavePlanner = absent_class(__name__, "DefaultSavePlanner")
