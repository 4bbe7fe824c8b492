"""Changing the dtype, device or memory of everything a module holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from ..._autograd.grad_mode import no_grad
from ..._core import dtype as dt
from ..._core.device import device as Device
from ..._core.keys import BACKENDS
from ..._core.memory_format import memory_format as MemoryFormat
from ..._core.tensor import Tensor
from ..._dispatch.registry import aten
from ..parameter import Parameter
from ._attributes import AttributeMixin

if TYPE_CHECKING:
    from .module import Module


def _parse_to(
    args: tuple[Any, ...], device: Any, dtype: Any, non_blocking: bool, memory_format: Any, tensor: Any
) -> tuple[Any, Any, bool, Any]:
    """What `module.to(...)` asks for; the forms are to(device, dtype), to(dtype), to(tensor), to(memory_format=...)."""
    loose = list(args) if tensor is None else [tensor, *args]
    for value in loose:
        if isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, dt.dtype):
            dtype = value
        elif isinstance(value, bool):
            non_blocking = value
        elif isinstance(value, (str | Device, int)):
            device = value
        elif isinstance(value, MemoryFormat):
            memory_format = value
        elif value is not None:
            raise TypeError(
                "to() received an invalid combination of arguments - got "
                f"({', '.join(type(a).__name__ for a in loose)}), but expected one of:\n"
                " * (torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, "
                "bool copy = False, *, torch.memory_format memory_format = None)\n"
                " * (torch.dtype dtype, bool non_blocking = False, bool copy = False, *, "
                "torch.memory_format memory_format = None)\n"
                " * (Tensor tensor, bool non_blocking = False, bool copy = False, *, torch.memory_format "
                "memory_format = None)\n"
            )
    return None if device is None else Device(device), dtype, non_blocking, memory_format


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
            if param is None:
                continue
            with no_grad():
                changed = fn(param)
            if (
                type(param) is not type(changed) and type(changed) is not Tensor
            ) or param._keys & BACKENDS != changed._keys & BACKENDS:
                # Another kind of memory: the tensor object cannot take it over.
                kept = Parameter(changed, param.requires_grad)
                self._parameters[name] = self.__dict__[name] = kept
            else:
                param.data = changed
                kept = param
            old_grad = param.grad
            if old_grad is not None:
                with no_grad():
                    grad = fn(old_grad)
                kept.grad = None  # first, since a gradient of the old dtype or device would not fit
                kept.grad = grad.requires_grad_(old_grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = self.__dict__[name] = fn(buffer)
        return self

    def to(
        self,
        *args: Any,
        device: Any = None,
        dtype: Any = None,
        non_blocking: bool = False,
        memory_format: Any = None,
        tensor: Any = None,
    ) -> Self:
        """Move parameters and buffers to a device, and those of floating point to a dtype; in place."""
        device, dtype, non_blocking, memory_format = _parse_to(args, device, dtype, non_blocking, memory_format, tensor)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}")

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

    def share_memory(self) -> Self:
        """Move what the module holds to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())
