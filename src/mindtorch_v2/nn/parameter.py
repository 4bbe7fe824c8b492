"""Parameter, Buffer, and their forms whose shape is not known yet."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Self

from .. import _surface as torch
from .._autograd import graph
from .._core.keys import AUTOGRAD, PYTHON
from .._core.memory_format import preserve_format
from .._core.tensor import Tensor
from .._dispatch.interception import disabled_torch_function
from .._dispatch.registry import aten, packets

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


def _share(cls: type, data: Tensor) -> Any:
    """A leaf of class `cls` that looks at the memory of `data`."""
    alias = aten.detach(data)
    made: Any = object.__new__(cls)
    made._array, made._keys, made._storage, made._base = alias._array, alias._keys, alias._storage, None
    return made


class _ParameterMeta(type):
    """A tensor of another class counts as a parameter once `Parameter(tensor)` has marked it."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and instance._is_param
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module takes for one of its parameters when it is assigned as an attribute.

    Ops see it as any other leaf tensor, and their results are plain tensors. A tensor of a subclass keeps
    its class and is only marked.
    """

    __slots__ = ()

    _is_param = True
    __torch_function__ = disabled_torch_function

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        """Wrap `data` without copying it; an empty tensor if there is none."""
        if data is None:
            data = aten.empty((0,))
        if type(data) is Tensor or type(data) is Parameter:
            if requires_grad and not (data.is_floating_point() or data.is_complex()):
                raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
            parameter = _share(cls, data)
            if requires_grad:
                graph.require_grad(parameter)
            return parameter
        marked = data.detach().requires_grad_(requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns "
                f"an instance of the same type, but return type {type(marked).__name__} was found instead. To use the "
                "type as a Parameter, please correct the detach() semantics defined by its __torch_dispatch__() "
                "implementation."
            )
        marked._is_param = True
        return marked  # type: ignore[return-value]  # of the subclass; isinstance takes it for a Parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            copied = self.data.clone(memory_format=preserve_format)
            known = memo[id(self)] = type(self)(copied, self.requires_grad)
        return known

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol: Any) -> Any:
        state = {name: value for name, value in self.__dict__.items() if name != "_backward_hooks"}
        if state:
            return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)
        return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Any:
    """A parameter from its pickled parts."""
    return Parameter(data, requires_grad)


def _rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any) -> Any:
    """A parameter from its pickled parts, with the attributes that were set on it."""
    made = Parameter(data, requires_grad)
    made.__dict__.update(state)
    return made


class _BufferMeta(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """`Buffer(tensor)` is the tensor, marked so that a Module takes it for a buffer when it is assigned."""

    __slots__ = ()

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        """Mark `data` as a buffer; `persistent` says whether the state dict has it."""
        if data is None:
            data = aten.empty((0,))
        buffer: Any = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer


_UNINITIALIZED = (
    "Attempted to use an uninitialized parameter in {}. This error happens when you are using a `LazyModule` or "
    "explicitly manipulating `torch.nn.parameter.{}` objects. When using LazyModules Call `forward` with a dummy batch "
    "to initialize the parameters before calling torch functions"
)

# What may be done to a tensor without a shape: it remembers the dtype and the device for later.
_ALLOWED = ("to", "copy_", "detach", "empty")


class UninitializedTensorMixin:
    """A parameter or buffer that gets its memory, and its real class, when `materialize` is called."""

    __slots__ = ()

    cls_to_become: type

    def materialize(self: Any, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a tensor of this shape, with undefined values; device and dtype as before unless given."""
        made = aten.empty(shape, device=self.device if device is None else device, dtype=self.dtype if dtype is None else dtype)
        self._keys &= ~PYTHON
        self.data = made
        self._keys = made._keys | self._keys & AUTOGRAD
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize "
            "the parameters before calling `module.share_memory()`."
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(func is packets[name].function for name in _ALLOWED):
            return Tensor.__torch_function__(func, types, args, kwargs)
        raise ValueError(_UNINITIALIZED.format(_as_torch_prints(func), cls.__name__))


def _as_torch_prints(func: Any) -> str:
    """A function as torch, where ops are built in, prints it."""
    name = getattr(func, "__name__", str(func))
    if hasattr(torch, name):
        return f"<built-in method {name} of type object at {id(torch):#x}>"
    return f"<method '{name}' of 'torch._C.TensorBase' objects>" if hasattr(Tensor, name) else f"<built-in function {name}>"


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer still has no shape."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter whose shape is found out later, as lazy modules do at their first call."""

    __slots__ = ()

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Self:
        """A parameter without a shape; `materialize` gives it one."""
        parameter = _share(cls, aten.empty((0,), device=device, dtype=dtype))
        graph.require_grad(parameter, requires_grad)
        parameter._keys |= PYTHON
        return parameter

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = type(self)(self.requires_grad, self.device, self.dtype)
        return known


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is found out later."""

    __slots__ = ()

    cls_to_become = Tensor

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True) -> Self:
        """A buffer without a shape; `materialize` gives it one."""
        buffer = _share(cls, aten.empty((0,), device=device, dtype=dtype))
        graph.require_grad(buffer, requires_grad)
        buffer._keys |= PYTHON
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer
