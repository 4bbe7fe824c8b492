"""Tensor methods, operators and properties that are more than an op of the same name."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any, NoReturn

from ._autograd.graph import require_grad as requires_grad
from ._core.keys import AUTOGRAD, LAZY, NPU
from ._core.printing import tensor_repr
from ._core.tensor import Tensor
from ._core.untyped_storage import UntypedStorage
from ._core.untyped_storage import untyped_storage as _untyped_storage
from ._dispatch import interception
from ._dispatch.dispatcher import as_operator, operator_form
from ._dispatch.lazy_values import resolved
from ._dispatch.registry import aten
from ._ops.creation import pinned

METHODS: dict[str, Callable[..., Any]] = {}
PROPERTIES: dict[str, property] = {}


def method(function: Callable[..., Any]) -> Callable[..., Any]:
    METHODS[function.__name__] = function
    return function


def _invert(self: Tensor) -> Tensor:
    """`~x`: the bits turned around."""
    try:
        return aten.bitwise_not(self)
    except NotImplementedError:
        if self.dtype.is_floating_point or self.dtype.is_complex:
            raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors") from None
        raise


OPERATORS: dict[str, Any] = {
    "__neg__": aten.neg,
    "__abs__": aten.abs,
    "__invert__": _invert,
    "__rtruediv__": as_operator(lambda self, other: aten.reciprocal(self) * other),
    "__rpow__": as_operator(lambda self, other: aten.pow(other, self)),
    "__rmatmul__": as_operator(lambda self, other: aten.matmul(other, self)),
    "__hash__": lambda self: id(self),  # noqa: PLW0108  a builtin would not be bound
    # NumPy must not take our tensors apart element by element; it asks us instead.
    "__array_priority__": 1000,
}
OPERATORS |= {
    f"__{operator}__": operator_form(name)
    for operator, name in {
        "add": "add",
        "radd": "add",
        "iadd": "add_",
        "sub": "sub",
        "rsub": "rsub",
        "isub": "sub_",
        "mul": "mul",
        "rmul": "mul",
        "imul": "mul_",
        "truediv": "div",
        "itruediv": "div_",
        "pow": "pow",
        "ipow": "pow_",
        "matmul": "matmul",
        "eq": "eq",
        "ne": "ne",
        "lt": "lt",
        "le": "le",
        "gt": "gt",
        "ge": "ge",
        "and": "__and__",
        "rand": "__and__",
        "or": "__or__",
        "ror": "__or__",
        "xor": "__xor__",
        "rxor": "__xor__",
        "iand": "bitwise_and_",
        "ior": "bitwise_or_",
        "ixor": "bitwise_xor_",
        "lshift": "__lshift__",
        "rshift": "__rshift__",
        "ilshift": "__ilshift__",
        "irshift": "__irshift__",
    }.items()
}


# ---------------------------------------------------------------- text and shorthands


@method
def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory behind this tensor."""
    return _untyped_storage(self)


def _typed_storages() -> Any:
    return import_module("._typed_storage", __package__)  # here, because few programs ask for them


def _bytes_as(name: str) -> Any:
    def convert(self: UntypedStorage) -> Any:
        return _typed_storages().bytes_as(self, name)

    convert.__name__, convert.__doc__ = name, f"A TypedStorage with each byte as a number, of the dtype that {name} stands for."
    return convert


for _name in (
    *("double", "float", "half", "bfloat16", "long", "int", "short", "char", "byte", "bool"),
    *("complex_float", "complex_double", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
):
    setattr(UntypedStorage, _name, _bytes_as(_name))


@method
def storage(self: Tensor) -> Any:
    """The memory behind this tensor as a TypedStorage. Deprecated: untyped_storage() is what stays."""
    return _typed_storages().storage_with_warning(self)


@method
def _typed_storage(self: Tensor) -> Any:
    return _typed_storages().typed_storage(self)


@method
def storage_type(self: Tensor) -> Any:
    """The class of this tensor's storage(), e.g. torch.FloatStorage."""
    return _typed_storages().storage_type(self)


@method
def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether the memory is page-locked, so that a device copies from it while the program goes on."""
    return pinned.is_pinned(self)


@method
def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """The tensor in page-locked memory: itself if it is there already, else a copy. Needs an accelerator."""
    return self if self.device.type == "cpu" and pinned.is_pinned(self) else aten._pin_memory(self, device)  # type: ignore[no-any-return]


@method
def __dir__(self: Tensor) -> list[str]:
    """The attributes that the tensor has; slots of its history are left out where it has none, and what only warns."""
    maybe = ("_grad", "_node", "_output_nr")
    return [name for name in object.__dir__(self) if name != "volatile" and (name not in maybe or hasattr(self, name))]


def _make_wrapper_subclass(cls: type, size: Any, *args: Any, **kwargs: Any) -> Any:
    """A tensor of a subclass with a shape, a dtype and a device and no memory: see `wrapper_subclass`."""
    from ._dispatch.wrapper_subclass import make_wrapper_subclass  # loaded by the few programs that make such tensors

    return make_wrapper_subclass(cls, size, *args, **kwargs)


METHODS["_make_wrapper_subclass"] = staticmethod(_make_wrapper_subclass)


@method
def as_subclass(self: Tensor, cls: type) -> Any:
    """The same tensor as an instance of a subclass."""
    return interception.as_subclass(self, cls)


def _make_subclass(
    cls: type,
    data: Tensor,
    require_grad: bool = False,
    *,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> Any:
    """An instance of a subclass on the memory of a tensor, without its history."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' (position 2) must be Tensor, not {type(data).__name__}")
    if dispatch_sizes_strides_policy is not None or dispatch_device or dispatch_layout:
        raise NotImplementedError("_make_subclass: sizes, strides, device and layout are not dispatched to subclasses")
    made = interception.as_subclass(aten.detach(data), cls)
    if require_grad:
        requires_grad(made)
    return made


METHODS["_make_subclass"] = staticmethod(_make_subclass)


@method
def __delitem__(self: Tensor, index: Any) -> None:  # noqa: N807  a method, by the decorator
    raise TypeError("Tensor does not support deleting items")


@method
def module_load(self: Tensor, other: Any, assign: bool = False) -> Any:
    """What `load_state_dict` swaps this tensor with when it loads `other`, a new tensor object; for subclasses to override."""
    if interception.subclass_types((self, other)):
        overrides = import_module(".overrides", __package__)
        return overrides.handle_torch_function(Tensor.module_load, (self, other), self, other, assign=assign)
    return other.detach() if assign else self.copy_(other).detach()


@method
def __repr__(self: Tensor, *, tensor_contents: Any = None) -> str:  # noqa: N807  a method, by the decorator
    try:
        node = self.grad_fn
        name = None if node is None else node.name()
    except RuntimeError:  # of a view whose base was written in place: the history that it had is gone
        name = "Invalid"
    shown = self.detach().cpu() if self._keys & NPU else self
    shown = resolved(shown.detach()) if self._keys & LAZY else shown
    kind = type(self)
    plain = kind is Tensor or (self._is_param and kind.__name__ == "Parameter")
    text = tensor_repr(
        shown._array,
        dtype=self.dtype,
        device=self.device,
        requires_grad=self.requires_grad,
        grad_fn_name=name,
        class_name="tensor" if plain else kind.__name__,
        contents=tensor_contents,
        tangent=_tangent_text(self),
    )
    return text if plain or not self._is_param else f"Parameter({text})"


def _tangent_text(self: Tensor) -> str | None:
    """The text of the tangent that a tensor has at an open level of forward-mode AD, None without one."""
    forward_ad = sys.modules.get(f"{__package__}._autograd.forward_ad")  # as long as it is not loaded there is no level
    if forward_ad is None or forward_ad.current_level() < 0 or not self._keys & AUTOGRAD:
        return None
    tangent = forward_ad.tangent_of(self)
    return None if tangent is None else repr(tangent)


PROPERTIES["T"] = property(aten.numpy_T)
PROPERTIES["mT"] = property(aten.mT)


# ---------------------------------------------------------------- torch's names with nothing, or little, behind them


def _refused_method(name: str, reason: str) -> Callable[..., Any]:
    def refuse(self: Tensor, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"Tensor.{name}: {reason}. See docs/compatibility.md")

    refuse.__name__, refuse.__qualname__ = name, f"Tensor.{name}"
    refuse.__doc__ = f"NotImplementedError: {reason}."
    return refuse


_REFUSED = {
    "there are no quantized tensors": (
        "int_repr",
        "q_per_channel_axis",
        "q_per_channel_scales",
        "q_per_channel_zero_points",
        "q_scale",
        "q_zero_point",
        "qscheme",
    ),
    "the vendor's layouts are not there: every kernel computes on plain strided memory": ("to_mkldnn",),
    "there are no nested tensors": ("to_padded_tensor",),
    "tensors of the CPU belong to no stream": ("record_stream",),
    "sparse tensors keep their sizes. Make another with torch.sparse_coo_tensor": (
        "resize_as_sparse_",
        "sparse_resize_",
        "sparse_resize_and_clear_",
    ),
    "views do not know how to be undone": ("slice_inverse",),
}
METHODS |= {name: _refused_method(name, reason) for reason, names in _REFUSED.items() for name in names}


def _of_old_name(name: str) -> Callable[..., Any]:
    def call(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return getattr(import_module("._build_questions", __package__), name)(self, *args, **kwargs)

    call.__name__, call.__qualname__ = name, f"Tensor.{name}"
    call.__doc__ = f"`torch.{name}` of this tensor."
    return call


METHODS |= {name: _of_old_name(name) for name in ("dequantize", "eig", "is_distributed", "lstsq", "solve", "symeig")}


@method
def const_data_ptr(self: Tensor) -> int:
    """`data_ptr()`, of memory that is only read."""
    return self.data_ptr()


@method
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """The same elements in another shape, with a warning: `reshape` is its name today."""
    warnings.warn("non-inplace resize is deprecated", stacklevel=2)
    return self.reshape(*sizes)


@method
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """`resize` to the shape of another tensor."""
    warnings.warn("non-inplace resize_as is deprecated", stacklevel=2)
    return self.reshape(tensor.shape)


@method
def reinforce(self: Tensor, reward: Any) -> NoReturn:
    """RuntimeError: torch has removed it; log-probabilities of `torch.distributions` take its place."""
    raise RuntimeError("reinforce() was removed.\nUse torch.distributions instead.")


PROPERTIES["name"] = property(lambda self: None, doc="None: tensors have no names.")
