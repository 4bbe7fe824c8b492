"""Names that torch keeps in its compiled module and that scripts reach for there."""

from __future__ import annotations

from importlib import import_module as _import_module
from weakref import ref as _ref

from .._autograd.grad_mode import is_grad_enabled as is_grad_enabled
from .._autograd.grad_mode import is_inference_mode_enabled as is_inference_mode_enabled
from .._autograd.running import current_node as _current_autograd_node
from .._autograd.running import current_task_id as _current_graph_task_id
from .._autograd.running import execution_order as _current_graph_task_execution_order
from .._autograd.running import will_execute as _will_engine_execute_node
from .._core.copy_on_write import is_shared_lazily
from .._core.device import device as _Device
from .._core.tensor import Tensor as _Tensor
from .._core.tensor import storage_of
from .._core.untyped_storage import StorageBase as StorageBase
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


def _get_privateuse1_backend_name() -> str:
    """What the device that others add to torch is called: here that is the NPU."""
    return "npu"


def _get_accelerator(check: bool | None = None) -> _Device:
    """The device of the accelerator, the CPU where there is none."""
    return _import_module("..accelerator", __package__).current_accelerator() or _Device("cpu")  # type: ignore[no-any-return]


def _get_default_device() -> str:
    """The type of device that the default types of tensors have: torch.set_default_device() does not change it."""
    return "cpu"


def _is_cow_tensor(tensor: _Tensor) -> bool:
    """Whether a tensor's memory is shared with lazy clones."""
    return is_shared_lazily(tensor._storage)


def _storage_address(tensor: _Tensor) -> int:
    """A number for the tensor's storage, which stays when that gets other memory."""
    return id(storage_of(tensor))


def _data_address(tensor: _Tensor) -> int:
    """Where a tensor's memory begins; unlike `data_ptr()` it leaves lazy clones as they are."""
    return tensor.data_ptr()


def _is_alias_of(first: _Tensor, second: _Tensor) -> bool:
    """Whether two tensors share a storage."""
    return storage_of(first) is storage_of(second)


class _WeakTensorRef:
    """A weak reference to a tensor."""

    def __init__(self, tensor: _Tensor) -> None:
        self._reference = _ref(tensor)

    def expired(self) -> bool:
        """Whether the tensor is gone."""
        return self._reference() is None


__getattr__, __dir__ = _lazy_exports(
    __name__,
    ("_autograd", "_fft", "_functions", "_functorch", "_linalg", "_nn", "_special"),
    {
        "..autograd.forward_ad": ("_is_fwd_grad_enabled", "_set_fwd_grad_enabled"),
        "._dispatch_keys": ("DispatchKey", "DispatchKeySet", "_ExcludeDispatchKeyGuard"),
        "._tensor_base": ("TensorBase", "_TensorBase"),
        "._functorch": ("_are_functorch_transforms_active",),
    },
)
