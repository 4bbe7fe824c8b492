"""torch.distributed.fsdp.wrap: which modules the wrapper of before would wrap; its policies are refused at use."""

from __future__ import annotations

from .._absent import absent_class, absent_function

__all__ = [
    "CustomPolicy",
    "ModuleWrapPolicy",
    "always_wrap_policy",
    "enable_wrap",
    "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy",
    "transformer_auto_wrap_policy",
    "wrap",
]

ModuleWrapPolicy = absent_class(__name__, "ModuleWrapPolicy")
CustomPolicy = absent_class(__name__, "CustomPolicy")
always_wrap_policy = absent_function(__name__, "always_wrap_policy")
enable_wrap = absent_function(__name__, "enable_wrap")
lambda_auto_wrap_policy = absent_function(__name__, "lambda_auto_wrap_policy")
size_based_auto_wrap_policy = absent_function(__name__, "size_based_auto_wrap_policy")
transformer_auto_wrap_policy = absent_function(__name__, "transformer_auto_wrap_policy")
wrap = absent_function(__name__, "wrap")
_or_policy = absent_function(__name__, "_or_policy")
