"""torch._dynamo.config: switches of the compiler, kept and read back. Code runs as it is, whatever they say."""

from __future__ import annotations

from contextlib import ContextDecorator as _ContextDecorator
from typing import Any as _Any

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


class _Patch(_ContextDecorator):
    """Other switches for a block, or for the calls of a function."""

    def __init__(self, changes: dict[str, _Any]) -> None:
        for name in changes:
            if name not in globals() or name.startswith("_") or name == "patch":
                raise AttributeError(f"torch._dynamo.config.{name} does not exist")
        self._changes = changes
        self._before: list[dict[str, _Any]] = []

    def __enter__(self) -> None:
        self._before.append({name: globals()[name] for name in self._changes})
        globals().update(self._changes)

    def __exit__(self, *raised: object) -> None:
        globals().update(self._before.pop())


def patch(arg1: _Any = None, arg2: _Any = None, **kwargs: _Any) -> _Patch:
    """Set switches for a block or a function: `patch(verbose=True)`, `patch("verbose", True)` or `patch({"verbose": True})`."""
    if isinstance(arg1, str):
        return _Patch({arg1: arg2})
    return _Patch(arg1 if arg1 is not None else kwargs)
