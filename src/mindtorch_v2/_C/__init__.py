"""Names that torch keeps in its compiled module and that scripts reach for there."""

from __future__ import annotations

from .._core.tensor import Tensor as _Tensor
from .._dispatch.interception import DisableTorchFunctionSubclass
from .._dispatch.interception import disabled_torch_function as _disabled_torch_function_impl
from .._dispatch.interception import function_mode_is_active as _is_torch_function_mode_enabled
from .._lazy_imports import lazy_exports as _lazy_exports
from .._ops.nn.lstm_layer import get_mkldnn_enabled as _get_mkldnn_enabled
from .._ops.nn.lstm_layer import set_mkldnn_enabled as _set_mkldnn_enabled
from .._settings import get_fill_uninitialized_memory as _get_deterministic_fill_uninitialized_memory
from .._settings import set_fill_uninitialized_memory as _set_deterministic_fill_uninitialized_memory
from . import _profiler
from ._convolution import _ConvBackend, _select_conv_backend

__all__ = ["_profiler"]


def _log_api_usage_once(event: str) -> None:
    """Where torch counts the use of an API if it was built to: it was not."""


_TensorMeta = type(_Tensor)  # the class of the class Tensor


def _get_tracing_state() -> None:
    """The graph that is being traced: `torch.jit.trace` runs functions as they are, and leaves none."""


__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("_autograd", "_functorch", "_nn"),
    {
        "._dispatch_keys": ("DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"),
        "._functorch": ("_are_functorch_transforms_active",),
    },
)
