"""Helpers that optimizers written by others import from `torch.optim.optimizer` by torch's private names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias, TypeVar

from .. import _surface as torch
from .._core.device import device as Device
from .._core.dtype import dtype as DType
from .._core.tensor import Tensor
from ..nn.parameter import Parameter
from ._common import value_of, with_grad_mode
from ._options import step_dtype

ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = dict[str, Any]
StateDict: TypeAlias = dict[str, Any]
DeviceDict: TypeAlias = dict[Device | None, Tensor]
DeviceDtypeDict: TypeAlias = dict[tuple[Device, DType] | None, Tensor]
TensorListList: TypeAlias = list[list[Tensor | None]]
Indices: TypeAlias = list[int]
_Function = TypeVar("_Function", bound=Callable[..., Any])

_foreach_supported_types: list[type] = [Tensor, Parameter]

# Lines for the docstring of an optimizer: one argument each.
_params_doc = 'params (iterable): parameters, (name, parameter) pairs, or dicts with "params" and options of their own'
_foreach_doc = "foreach (bool, optional): whether a step runs on lists of tensors (default: None)"
_fused_doc = "fused (bool, optional): whether a step is one op on all tensors (default: None)"
_maximize_doc = "maximize (bool, optional): go up the gradient, not down (default: False)"
_capturable_doc = "capturable (bool, optional): whether a step may be captured in a graph of a device (default: False)"
_differentiable_doc = "differentiable (bool, optional): whether autograd follows the step (default: False)"

_get_value = value_of
_get_scalar_dtype = step_dtype
_use_grad_for_differentiable = with_grad_mode


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The device types on which optimizers default to steps on lists of tensors."""
    return ["cuda", "xpu", "mtia", "privateuseone"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """The device types that have fused steps."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "privateuseone"]


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The device types on which a step may be captured in a graph."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _default_to_fused_or_foreach(params: list[Any], differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Whether a step on these parameters is fused, and else whether it runs on lists, where its caller did not say."""
    if differentiable:
        return False, False
    given = [param for param in params if param is not None]
    plain = all(type(param) in _foreach_supported_types for param in given)
    kinds = {param.device.type for param in given}
    fused = (
        use_fused
        and plain
        and kinds <= set(_get_fused_kernels_supported_devices())
        and all(param.is_floating_point() for param in given)
    )
    return fused, not fused and plain and kinds <= set(_get_foreach_kernels_supported_devices())


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    """RuntimeError for a parameter that a fused step cannot change."""
    devices = _get_fused_kernels_supported_devices()
    if cuda_unsupported:
        devices.remove("cuda")
    if p.device.type not in devices or not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            f"{devices} but {p.dtype} and {p.device.type}"
        )


def _disable_dynamo_if_unsupported(single_tensor_fn: Callable[..., Any] | None = None) -> Callable[[_Function], _Function]:
    """A decorator that leaves a function as it is: nothing is compiled."""
    return lambda function: function


def _stack_if_compiling(x: Any) -> Any:
    """The list as it is: nothing is compiled."""
    return x


def _to_scalar(x: Any) -> Any:
    """A number, or a tensor of one element without dims."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x  # type: ignore[attr-defined]


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Replace complex parameters, and what belongs to them in the other lists, by real views; in place."""
    for index, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[index] = torch.view_as_real(tensors[index])


def _group_tensors_by_device_and_dtype(
    tensorlistlist: TensorListList, with_indices: bool = False
) -> dict[tuple[Device, DType], tuple[TensorListList, Indices]]:
    """Cut lists of equal length into groups in which the first list's tensors have one device and dtype.

    `with_indices` adds the places that the tensors of a group had. An empty list stays empty in each group.
    """
    places: dict[Any, list[int]] = {}
    for index, tensor in enumerate(tensorlistlist[0]):
        assert tensor is not None
        places.setdefault((tensor.device, tensor.dtype), []).append(index)
    return {
        key: ([[each[i] for i in chosen] if each else [] for each in tensorlistlist], chosen if with_indices else [])
        for key, chosen in places.items()
    }
