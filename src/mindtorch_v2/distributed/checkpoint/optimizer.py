"""torch.distributed.checkpoint.optimizer: state of optimizers of the wrapper of before."""

from __future__ import annotations

from .._absent import absent_function

__all__ = ["load_sharded_optimizer_state_dict"]

load_sharded_optimizer_state_dict = absent_function(__name__, "load_sharded_optimizer_state_dict")
