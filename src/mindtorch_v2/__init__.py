"""A torch-compatible eager runtime on NumPy, with a profiler at its centre.

`import mindtorch_v2 as torch`: the public names, nothing else.
"""

from __future__ import annotations

import importlib as _importlib

from . import (
    _C,
    _surface,
    accelerator,
    autograd,
    backends,
    compiler,
    cuda,
    fft,
    jit,
    library,
    linalg,
    mps,
    nn,
    npu,
    optim,
    overrides,
    profiler,
    random,
    serialization,
    special,
    utils,
    version,
    xpu,
)
from . import _settings as _switches
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._compile import compile
from ._core import dtype as _dtype
from ._core.device import device, get_default_device, set_default_device
from ._core.dtype import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._core.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_coo,
    strided,
)
from ._core.printing import set_printoptions
from ._core.size import Size
from ._core.tensor import Tensor
from ._dispatch.overload_api import ops
from .serialization import load, save
from .version import __version__

globals().update(_dtype.DTYPES)
globals().update(_dtype.ALIASES)
globals().update(_surface.functions())
globals().update({_name: getattr(_switches, _name) for _name in _switches.__all__})

# Modules that few scripts use, and names that live in them: imported when they are first asked for.
_LATER_MODULES = ("__future__", "_utils", "amp", "cpu", "distributed", "distributions", "func", "hub",
                  "multiprocessing", "return_types", "sparse", "storage", "testing", "types")
_LATER_NAMES = {
    "func": ("vmap",),
    "amp.autocast_mode": (
        "autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
        "get_autocast_cpu_dtype", "get_autocast_dtype", "get_autocast_gpu_dtype", "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled", "is_autocast_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled", "set_autocast_dtype", "set_autocast_enabled", "set_autocast_gpu_dtype"),
}
_LATER = {_name: _home for _home, _names in _LATER_NAMES.items() for _name in _names}


def __getattr__(name: str) -> object:
    if name in _LATER_MODULES:
        return _importlib.import_module(f".{name}", __name__)
    if name not in _LATER:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    found = globals()[name] = getattr(_importlib.import_module(f".{_LATER[name]}", __name__), name)
    return found
