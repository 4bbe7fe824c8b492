"""torch.distributed.checkpoint.format_utils: names that libraries import; convert a checkpoint by loading and saving it."""

from __future__ import annotations

from .._absent import absent_class, absent_function

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]

dcp_to_torch_save = absent_function(__name__, "dcp_to_torch_save")
torch_save_to_dcp = absent_function(__name__, "torch_save_to_dcp")
_EmptyStateDictLoadPlanner = absent_class(__name__, "_EmptyStateDictLoadPlanner")
BroadcastingTorchSaveReader = absent_class(__name__, "BroadcastingTorchSaveReader")
DynamicMetaLoadPlanner = absent_class(__name__, "DynamicMetaLoadPlanner")
