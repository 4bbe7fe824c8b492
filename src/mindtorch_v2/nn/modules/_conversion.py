"""Changing the dtype, device or memory of everything a module holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ... import __future__ as future
from ..._autograd.grad_mode import no_grad
from ..._autograd.swap import swap_tensors
from ..._core import dtype as dt
from ..._core.device import device as Device
from ..._core.keys import BACKENDS
from ..._core.memory_format import memory_format as MemoryFormat
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from ..parameter import Parameter
from ._attributes import AttributeMixin, typename
from ._members import Members

if TYPE_CHECKING:
    from .module import Module


_TO_FORMS = """\
 * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, bool copy = False, *, \
torch.memory_format memory_format = None)
 * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
 * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format memory_format = None)
"""


def _to_device(device: Any = None, dtype: Any = None, *rest: Any, **options: Any) -> Any:
    if device is not None and (isinstance(device, bool) or not isinstance(device, str | Device | int)):
        raise TypeError
    if dtype is not None and not isinstance(dtype, dt.dtype):
        raise TypeError
    return device, dtype, *_to_options(*rest, **options)


def _to_dtype(dtype: Any, *rest: Any, **options: Any) -> Any:
    if not isinstance(dtype, dt.dtype):
        raise TypeError
    return None, dtype, *_to_options(*rest, **options)


def _to_tensor(tensor: Any, *rest: Any, **options: Any) -> Any:
    if not isinstance(tensor, Tensor):
        raise TypeError
    return tensor.device, tensor.dtype, *_to_options(*rest, **options)


def _to_options(non_blocking: Any = False, copy: Any = False, *, memory_format: Any = None) -> Any:
    flags = isinstance(non_blocking, bool) and isinstance(copy, bool)
    if not flags or not (memory_format is None or isinstance(memory_format, MemoryFormat)):
        raise TypeError
    return non_blocking, copy, memory_format


def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format that the arguments of `to(...)` ask for, in any of its forms."""
    for form in (_to_device, _to_dtype, _to_tensor):
        try:
            device, dtype, non_blocking, copy, memory_format = form(*args, **kwargs)
        except TypeError:
            continue
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        return None if device is None else Device(device), dtype, non_blocking, memory_format
    got = ", ".join([*map(_kind, args), *(f"{name}={_kind(value)}" for name, value in kwargs.items())])
    raise TypeError(f"to() received an invalid combination of arguments - got ({got}), but expected one of:\n{_TO_FORMS}")


def _kind(value: Any) -> str:
    return typename(type(value)) if isinstance(value, Device | dt.dtype | MemoryFormat) else type(value).__name__


def _takes_data(tensor: Tensor, changed: Tensor) -> bool:
    """Whether a tensor object takes over the memory of its converted form: of the same kind, and unless torch.__future__
    says that parameters are to be replaced."""
    same_class = type(tensor) is type(changed) or type(changed) is Tensor
    same_backend = tensor._keys & BACKENDS == changed._keys & BACKENDS
    return same_class and same_backend and not future.get_overwrite_module_params_on_conversion()


class ConversionMixin(AttributeMixin):
    """The part of Module that converts what it holds, in place."""

    if TYPE_CHECKING:

        def children(self) -> Iterator[Module]: ...

    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every parameter's data, every gradient and every buffer by what `fn` makes of it."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, param in self._parameters.items():
            if param is not None:
                with no_grad():
                    changed = fn(param)
                if future.get_swap_module_params_on_conversion() or hasattr(type(changed), "__tensor_flatten__"):
                    self._swap_parameter(name, param, changed, fn)
                else:
                    self._replace_parameter(name, param, changed, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = changed = fn(buffer)
                self._show(name, changed)
        return self

    def _replace_parameter(self, name: str, param: Any, changed: Any, fn: Callable[[Any], Any]) -> None:
        """Give a parameter new data, or where its object cannot take that over, put a new one in its place."""
        grad = param.grad
        kept = param
        if _takes_data(param, changed):
            param.data = changed
        else:
            kept = Parameter(changed, param.requires_grad)
            self._parameters[name] = kept
            self._show(name, kept)
        if grad is None:
            return
        with no_grad():
            changed_grad = fn(grad)
        if kept is param and _takes_data(grad, changed_grad):
            grad.data = changed_grad
        else:
            kept.grad = changed_grad.requires_grad_(grad.requires_grad)

    def _swap_parameter(self, name: str, param: Any, changed: Any, fn: Callable[[Any], Any]) -> None:
        """Swap a parameter, and its gradient, with what `fn` made of it: every reference to it stays valid."""
        grad = param.grad
        try:
            param.grad = None
            swap_tensors(param, Parameter(changed, requires_grad=param.requires_grad))
        except Exception as error:
            param.grad = grad
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}") from error
        if grad is None:
            return
        with no_grad():
            changed_grad = fn(grad)
        try:
            swap_tensors(grad, changed_grad.requires_grad_(grad.requires_grad))
        except Exception as error:
            raise RuntimeError(f"_apply(): Couldn't swap {type(self).__name__}.{name}.grad") from error
        param.grad = grad

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move parameters and buffers to a device, and those of floating point to a dtype; in place.

        The forms are to(device, dtype), to(dtype), to(tensor) and to(memory_format=...), each with `non_blocking`.
        """
        device, dtype, non_blocking, memory_format = _parse_to(*args, **kwargs)
        if dtype is not None:
            if not (dtype.is_floating_point or dtype.is_complex):
                raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")
            if dtype.is_complex:
                warnings.warn(
                    "Complex modules are a new feature under active development whose design may change, and some modules "
                    "might not work as expected when using complex tensors as parameters or buffers. Please file an issue at "
                    "https://github.com/pytorch/pytorch/issues/new?template=bug-report.yml if a complex module does not work "
                    "as expected.",
                    stacklevel=2,
                )

        def convert(t: Any) -> Any:
            options: dict[str, Any] = {"non_blocking": non_blocking}
            if device is not None:
                if t.is_meta and device.type != "meta":
                    raise NotImplementedError(
                        "Cannot copy out of meta tensor; no data! Please use "
                        "torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving "
                        "module from meta to a different device."
                    )
                options["device"] = device
            if dtype is not None and (t.is_floating_point() or t.is_complex()):
                options["dtype"] = dtype
            if memory_format is not None and t.dim() in (4, 5):
                options["memory_format"] = memory_format
            return t.to(**options)

        return self._apply(convert)

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device without copying what is in them."""
        return self._apply(lambda t: aten.empty_like(t, device=device), recurse=recurse)

    def cuda(self, device: Any = None) -> Self:
        return self.to("cuda" if device is None else Device("cuda", device) if isinstance(device, int) else device)

    def npu(self, device: Any = None) -> Self:
        """Move parameters and buffers to the NPU."""
        return self.to("npu" if device is None else Device("npu", device) if isinstance(device, int) else device)

    def xpu(self, device: Any = None) -> Self:
        """`cuda`, for XPUs: AssertionError for a module with parameters."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """`cuda`, for MTIA devices: AssertionError for a module with parameters."""
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device: Any = None) -> Self:
        """`cuda`, for IPUs: AssertionError for a module with parameters."""
        return self._apply(lambda t: t.ipu(device))

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers, whatever they hold now."""
        return self._apply(lambda t: t.type(dst_type))

    def _cast_floats(self, dtype: Any) -> Self:
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast what is of floating point to float32."""
        return self._cast_floats(dt.float32)

    def double(self) -> Self:
        """Cast what is of floating point to float64."""
        return self._cast_floats(dt.float64)

    def half(self) -> Self:
        """Cast what is of floating point to float16."""
        return self._cast_floats(dt.float16)

    def bfloat16(self) -> Self:
        """Cast what is of floating point to bfloat16."""
        return self._cast_floats(dt.bfloat16)

    def _replicate_for_data_parallel(self) -> Self:
        """A shallow copy without parameters, to which those of a replica are to be assigned."""
        replica = self.__new__(type(self))
        attributes = self.__dict__
        members = {*self._parameters, *self._buffers, *self._modules}
        replica.__dict__.update({name: value for name, value in attributes.items() if name not in members})
        replica.__dict__.update(
            _parameters=Members(replica),
            _buffers=Members(replica, self._buffers),
            _modules=Members(replica, self._modules),
            _is_replica=True,
        )
        return replica

    def share_memory(self) -> Self:
        """Move what the module holds to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())
