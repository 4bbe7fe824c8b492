"""A torch-compatible eager runtime on NumPy, with a profiler at its center.

`import mindtorch_v2 as torch`: the public names, nothing else.
"""

from __future__ import annotations

import sys as _sys
from math import e, inf, nan, pi
from os import environ as _environ
from typing import TYPE_CHECKING

from . import _settings as _switches
from . import _surface, version
from ._autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from ._core import dtype as _dtype
from ._core.device import device, get_default_device, set_default_device
from ._core.dtype import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from ._core.memory_format import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    legacy_contiguous_format,
    memory_format,
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    preserve_format,
    qscheme,
    sparse_coo,
    strided,
)
from ._core.printing import set_printoptions
from ._core.size import Size
from ._core.tensor import Tensor
from ._lazy_imports import lazy_exports as _lazy_exports
from ._op_namespaces import ops

if TYPE_CHECKING:
    from . import (
        _C,
        accelerator,
        amp,
        autograd,
        backends,
        compiler,
        cpu,
        cuda,
        distributed,
        distributions,
        fft,
        func,
        futures,
        hub,
        jit,
        library,
        linalg,
        masked,
        mps,
        multiprocessing,
        nn,
        npu,
        optim,
        overrides,
        profiler,
        quasirandom,
        random,
        return_types,
        serialization,
        signal,
        sparse,
        special,
        storage,
        testing,
        types,
        utils,
        xpu,
    )
    from ._compile import compile
    from ._ops.reduction.histogramdd import histogramdd
    from .amp.autocast_mode import autocast
    from .amp.grad_scaler import GradScaler
    from .func import vmap
    from .serialization import load, save

newaxis = None
globals().update(_dtype.DTYPES)
globals().update(_dtype.ALIASES)
globals().update(_dtype.QUANTIZED)
globals().update(_dtype.PACKED)
globals().update(_surface.public_functions())
globals().update({_name: getattr(_switches, _name) for _name in _switches.__all__})

# Modules, and names that live in them, that are imported when they are first asked for.
_MODULES = (
    "accelerator",
    "autograd",
    "backends",
    "compiler",
    "cuda",
    "fft",
    "jit",
    "library",
    "linalg",
    "mps",
    "nn",
    "npu",
    "optim",
    "overrides",
    "profiler",
    "random",
    "serialization",
    "special",
    "utils",
    "xpu",
)
# Those that `from mindtorch_v2 import *` leaves out.
_MORE_MODULES = (
    "_C",
    "_VF",
    "__config__",
    "__future__",
    "_higher_order_ops",
    "_dynamo",
    "_custom_ops",
    "_functorch",
    "_guards",
    "_inductor",
    "_subclasses",
    "_tensor_str",
    "_utils",
    "_vmap_internals",
    "amp",
    "ao",
    "contrib",
    "cpu",
    "distributed",
    "distributions",
    "export",
    "func",
    "functional",
    "futures",
    "fx",
    "hub",
    "masked",
    "monitor",
    "mtia",
    "nested",
    "multiprocessing",
    "onnx",
    "package",
    "quantization",
    "quasirandom",
    "return_types",
    "signal",
    "sparse",
    "storage",
    "testing",
    "torch_version",
    "types",
)
_NAMES = {
    "._build_questions": (
        "AVG",
        "AggregationType",
        "FatalError",
        "PRIVATE_OPS",
        "SUM",
        "Tag",
        "USE_GLOBAL_DEPS",
        "classes",
        "classproperty",
        "compiled_with_cxx11_abi",
        "cudnn_is_acceptable",
        "dequantize",
        "dsmm",
        "eig",
        "get_device",
        "get_file_path",
        "has_lapack",
        "has_mkl",
        "has_openmp",
        "has_spectral",
        "hsmm",
        "init_num_threads",
        "is_distributed",
        "is_vulkan_available",
        "lstsq",
        "matrix_rank",
        "prepare_multiprocessing_environment",
        "set_anomaly_enabled",
        "solve",
        "spmm",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
        "symeig",
        "thread_safe_generator",
    ),
    "._C": ("DispatchKey", "DispatchKeySet", "DisableTorchFunctionSubclass"),
    "._lobpcg": ("lobpcg",),
    "._checks": (
        "_assert",
        "_assert_async",
        "_check",
        "_check_index",
        "_check_is_size",
        "_check_not_implemented",
        "_check_tensor_all",
        "_check_tensor_all_with",
        "_check_type",
        "_check_value",
        "_check_with",
        "_debug_has_internal_overlap",
    ),
    "._core.memory_format": ("_mkldnn", "jagged", "sparse_bsc", "sparse_bsr", "sparse_csc", "sparse_csr"),
    "._symbolic_numbers": (
        "SymBool",
        "SymFloat",
        "SymInt",
        "sym_float",
        "sym_fresh_size",
        "sym_int",
        "sym_ite",
        "sym_max",
        "sym_min",
        "sym_not",
        "sym_sqrt",
        "sym_sum",
    ),
    ".futures": ("Future",),
    ".jit": ("JITException", "ScriptFunction", "ScriptModule", "fork", "wait"),
    ".signal": ("windows",),
    ".torch_version": ("__version__",),
    "._higher_order_ops.while_loop": ("while_loop",),
    ".accelerator": ("get_device_module",),
    "._backends.errors": ("AcceleratorError", "OutOfMemoryError"),
    "._compile": ("_disable_dynamo", "compile"),
    "._serialization.file_reader": ("PyTorchFileReader",),
    "._streams": ("Event", "Stream"),
    "._ops.reduction.histogramdd": ("histogramdd",),
    ".amp.autocast_mode": (
        "autocast",
        "autocast_decrement_nesting",
        "autocast_increment_nesting",
        "clear_autocast_cache",
        "get_autocast_cpu_dtype",
        "get_autocast_dtype",
        "get_autocast_gpu_dtype",
        "get_autocast_ipu_dtype",
        "get_autocast_xla_dtype",
        "is_autocast_cache_enabled",
        "is_autocast_cpu_enabled",
        "is_autocast_enabled",
        "is_autocast_ipu_enabled",
        "is_autocast_xla_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_cpu_dtype",
        "set_autocast_cpu_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
        "set_autocast_gpu_dtype",
        "set_autocast_ipu_dtype",
        "set_autocast_ipu_enabled",
        "set_autocast_xla_dtype",
        "set_autocast_xla_enabled",
    ),
    ".amp.grad_scaler": ("GradScaler",),
    ".func": ("vmap",),
    ".serialization": ("load", "save"),
    ".storage": (
        "BFloat16Storage",
        "BoolStorage",
        "ByteStorage",
        "CharStorage",
        "ComplexDoubleStorage",
        "ComplexFloatStorage",
        "DoubleStorage",
        "FloatStorage",
        "HalfStorage",
        "IntStorage",
        "LongStorage",
        "ShortStorage",
        "Storage",
        "StorageBase",
        "TypedStorage",
        "UntypedStorage",
        "_storage_classes",
        "_tensor_classes",
    ),
}
__all__ = [_name for _name in globals() if not _name.startswith("_")]
__all__ += [*_MODULES, *[_name for _home in _NAMES.values() for _name in _home if not _name.startswith("_")]]
__all__.remove("annotations")
__all__.remove("TYPE_CHECKING")
__getattr__, __dir__ = _lazy_exports(__name__, (*_MODULES, *_MORE_MODULES), _NAMES)
torch = _sys.modules[__name__]  # `torch.torch`, which some libraries write

if _environ.get("MTPROF"):  # a process that is to be looked at while it runs: see docs/operate.md
    from .profiler.live.environment import open_from as _open_from

    _open_from(_environ["MTPROF"])

if _environ.get("PROF_CONFIG_PATH"):  # one that is profiled by a file: see docs/npu.md
    from .npu.profiler.dynamic_profile import follow as _follow

    _follow(_environ["PROF_CONFIG_PATH"])
