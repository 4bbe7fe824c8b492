"""torch._dynamo.config: switches of the compiler, kept and read back. Code runs as it is, whatever they say."""

from __future__ import annotations

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
