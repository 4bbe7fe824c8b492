"""torch._dynamo.config: switches of the compiler, kept and read back. Code runs as it is, whatever they say."""

from __future__ import annotations

from typing import Any as _Any

from ._switches import Patch as _Patch

_PLACE = "torch._dynamo.config"

accumulated_cache_size_limit = 256
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = 8
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
dynamic_shapes = True
error_on_recompile = False
guard_nn_modules = True
inline_inbuilt_nn_modules = True
optimize_ddp = True
recompile_limit = 8
skip_fwd_side_effects_in_bwd_under_checkpoint = False
specialize_int = False
suppress_errors = False
verbose = False


def patch(arg1: _Any = None, arg2: _Any = None, **kwargs: _Any) -> _Patch:
    """Set switches for a block or a function: `patch(verbose=True)`, `patch("verbose", True)` or `patch({"verbose": True})`."""
    if isinstance(arg1, str):
        return _Patch(globals(), {arg1: arg2}, _PLACE)
    return _Patch(globals(), arg1 if arg1 is not None else kwargs, _PLACE)
