"""torch.distributed.checkpoint.default_planner: plans of one's own, which are refused; the plan here is the default one."""

from __future__ import annotations

from .._absent import absent_class, absent_function

__all__ = [
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "create_default_global_load_plan",
    "create_default_global_save_plan",
    "create_default_local_load_plan",
    "create_default_local_save_plan",
]

DefaultLoadPlanner = absent_class(__name__, "DefaultLoadPlanner")
DefaultSavePlanner = absent_class(__name__, "DefaultSavePlanner")
create_default_global_load_plan = absent_function(__name__, "create_default_global_load_plan")
create_default_global_save_plan = absent_function(__name__, "create_default_global_save_plan")
create_default_local_load_plan = absent_function(__name__, "create_default_local_load_plan")
create_default_local_save_plan = absent_function(__name__, "create_default_local_save_plan")
