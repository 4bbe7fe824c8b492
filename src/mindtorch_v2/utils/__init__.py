"""torch.utils: data loading, checkpointing, and small tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy_imports import lazy_exports as _lazy_exports

if TYPE_CHECKING:
    from .._autograd.swap import swap_tensors
    from . import (
        _python_dispatch,
        _pytree,
        benchmark,
        checkpoint,
        collect_env,
        data,
        deterministic,
        dlpack,
        flop_counter,
        hooks,
        module_tracker,
        tensorboard,
    )
    from ._set_module import set_module

__all__ = ["data"]

# Imported when they are first asked for.
__getattr__, __dir__ = _lazy_exports(
    __name__,
    (
        "_device",
        "_python_dispatch",
        "_pytree",
        "benchmark",
        "bundled_inputs",
        "checkpoint",
        "collect_env",
        "cpp_extension",
        "data",
        "deterministic",
        "dlpack",
        "flop_counter",
        "hooks",
        "mkldnn",
        "mobile_optimizer",
        "model_zoo",
        "module_tracker",
        "serialization",
        "tensorboard",
        "throughput_benchmark",
        "weak",
    ),
    {".throughput_benchmark": ("ThroughputBenchmark",), ".._autograd.swap": ("swap_tensors",), "._set_module": ("set_module",)},
)
