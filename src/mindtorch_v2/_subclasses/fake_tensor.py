"""Tensors that have a shape, a dtype and a device of any kind, and no data: what a program would compute, without computing it.

    with FakeTensorMode() as mode:
        model = nn.Linear(4096, 4096, device="cuda")     # no card, no memory
        model(torch.empty(8, 4096, device="cuda"))       # FakeTensor(..., device='cuda:0', size=(8, 4096), ...)

A `FakeTensor` is a tensor on the meta device that says it is somewhere else. Ops on it follow their shape rules; what depends
on values raises. Numbers that a program makes inside a mode (`torch.tensor(3)`) keep their value: `item()` of them works.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, NoReturn, Self

from .._autograd.grad_mode import enable_grad
from .._autograd.graph import require_grad
from .._core.device import device as Device
from .._core.dtype import bool_, get_default_dtype, int64
from .._core.keys import BATCHED, META, PYTHON, SPARSE
from .._core.tensor import Tensor, make_meta, storage_of
from .._core.threads import threads
from .._dispatch import entry_globals
from .._dispatch.dispatcher import in_schema_order, keys_of, proceed
from .._dispatch.facts import Batching
from .._dispatch.interception import TorchDispatchMode, as_subclass, without_modes
from .._dispatch.overload_api import OpOverload, overload_of
from .._dispatch.registry import OpSpec, aten, packets
from ..utils.weak import WeakIdKeyDictionary

__all__ = [
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensor",
    "FakeTensorConverter",
    "FakeTensorDeviceMismatchError",
    "FakeTensorMode",
    "UnsupportedFakeTensorException",
    "UnsupportedOperatorException",
    "is_fake",
]

# Results of no more elements keep their values where all operands have theirs.
CONSTANT_NUMEL_LIMIT = 1

_LIFT = packets["lift_fresh"].overloads[""]
_COPY = packets["copy_"].overloads[""]
_NONZERO = packets["nonzero"].overloads[""]
_RANDOM = (Batching.RANDOM, Batching.RANDOM_BY_SAMPLE)


class _OfOp(RuntimeError):
    """What an op cannot do without data; `func` is the op."""

    def __init__(self, func: OpOverload) -> None:
        super().__init__(func)
        self.func = func


class DataDependentOutputException(_OfOp):
    """An op returns a number or a truth value that depends on data: `item()`, `equal()`."""


class DynamicOutputShapeException(_OfOp):
    """The shape of what an op returns depends on data: `nonzero()`, `unique()`."""


class UnsupportedOperatorException(_OfOp):
    """An op of a library says no shape for its results: see `torch.library.register_fake`."""


class UnsupportedFakeTensorException(RuntimeError):
    """A tensor that no fake one can stand for."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class FakeTensorDeviceMismatchError(RuntimeError):
    """Tensors on different devices in one call."""


class FakeTensor(Tensor):
    """A tensor without data on `fake_device`. `fake_mode` is the mode that it belongs to, `constant` its value if known."""

    fake_device: Device
    fake_mode: FakeTensorMode
    constant: Tensor | None

    def __new__(
        cls,
        fake_mode: FakeTensorMode,
        elem: Tensor,
        device: Device | str,
        constant: Tensor | None = None,
    ) -> Self:
        """Wrap `elem`, a tensor on the meta device, as one on `device`."""
        if elem.device.type != "meta":
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        fake: Any = as_subclass(elem, cls)
        fake.fake_mode, fake.fake_device, fake.constant = fake_mode, _with_index(Device(device)), constant
        return fake

    @staticmethod
    def from_tensor(t: Tensor, fake_mode: FakeTensorMode) -> FakeTensor:
        """The fake tensor of a mode that stands for `t`."""
        return fake_mode.from_tensor(t)

    @classmethod
    def __torch_dispatch__(cls, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an op outside of any mode in the mode of its first fake argument."""
        mode = next(t.fake_mode for t in _tensors((args, tuple((kwargs or {}).values()))) if isinstance(t, FakeTensor))
        return mode.__torch_dispatch__(func, types, args, kwargs)

    @property
    def device(self) -> Device:
        return self.fake_device

    @property
    def is_cpu(self) -> bool:
        return self.fake_device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return self.fake_device.type == "meta"

    @property
    def data(self) -> Tensor:
        """The same tensor without history. Another one can be set in its place, on its device."""
        return aten.detach(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]
        self.fake_device = value.device

    def tolist(self) -> Any:
        """The value of a number that is known, else DataDependentOutputException."""
        if not self._array.ndim:
            return self.item()  # type: ignore[attr-defined]
        return [row.tolist() for row in self.unbind(0)]  # type: ignore[attr-defined]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        text = _text_of(self)
        return f"Parameter({text})" if self._is_param else text

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        known = memo.get(id(self))
        if known is None:
            known = memo[id(self)] = self.fake_mode._wrapped(_like(self), self.fake_device)
            known.constant = deepcopy(self.constant, memo)
            known._is_param = self._is_param
            if self.requires_grad:
                require_grad(known)
            known.grad = deepcopy(self.grad, memo)
        return known

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotImplementedError("a FakeTensor cannot be pickled or saved: it has no data. See docs/compatibility.md")


def is_fake(x: Any) -> bool:
    """Whether a tensor is a FakeTensor."""
    return isinstance(x, FakeTensor)


class FakeTensorConverter:
    """Makes fake tensors of real ones: the same one for the same tensor, as long as that lives."""

    def __init__(self) -> None:
        self.tensor_memo: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def from_real_tensor(self, fake_mode: FakeTensorMode, t: Tensor, make_constant: bool = False) -> FakeTensor:
        """A fake tensor with the shape, strides, device, gradient and views of `t`; with its value if asked for."""
        known = None if make_constant else self.tensor_memo.get(t)
        if known is None:
            known = _stand_in(fake_mode, t, self.from_real_tensor)
            if make_constant:
                known.constant = t
            else:
                self.tensor_memo[t] = known
        return known

    def from_meta_and_device(self, fake_mode: FakeTensorMode, t: Tensor, device: Device | str) -> FakeTensor:
        """`t`, a tensor on the meta device, as a fake one on `device`."""
        known = self.tensor_memo.get(t)
        if known is None:
            known = self.tensor_memo[t] = FakeTensor(fake_mode, t, device)
        return known


def _stand_in(mode: FakeTensorMode, t: Tensor, convert: Callable[[FakeTensorMode, Tensor], FakeTensor]) -> FakeTensor:
    if t._keys & SPARSE:
        raise UnsupportedFakeTensorException("sparse tensors have no fake ones: see docs/compatibility.md")
    if t._keys & PYTHON and not isinstance(t, FakeTensor):
        raise UnsupportedFakeTensorException(
            f"tensors of the subclass {type(t).__name__} have no fake ones: see docs/compatibility.md"
        )
    base = t._base
    if base is not None and not base._keys & PYTHON:
        # A view of what stands for its base, so that the two share what memory they would have.
        whole = convert(mode, base).detach()  # type: ignore[attr-defined]
        fake: FakeTensor = aten.as_strided(whole, tuple(t.shape), t.stride(), t.storage_offset())
    else:
        fake = mode._wrapped(_like(t), t.device)
    if t.requires_grad:
        require_grad(fake)
        if not t.is_leaf:
            with enable_grad():
                fake = aten.clone(fake)
    fake._is_param = t._is_param
    if t.is_leaf and t.grad is not None:
        fake.grad = convert(mode, t.grad)
    return fake


class FakeTensorMode(TorchDispatchMode):
    """Inside `with mode:` new tensors are fake ones, on any device that they name, and ops on them compute shapes alone.

    Real tensors are refused, or with `allow_non_fake_inputs` replaced by what stands for them; `from_tensor` makes that by
    hand. `shape_env` and `export` belong to compilers: sizes are plain numbers here.
    """

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: bool | None = None,
        export: bool = False,
    ) -> None:
        if shape_env is not None or export:
            raise NotImplementedError(
                "torch._subclasses.FakeTensorMode: shape_env= and export=True need symbolic sizes: sizes are plain numbers. "
                "See docs/compatibility.md"
            )
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.allow_meta = True
        self.shape_env = None
        self.static_shapes = True if static_shapes is None else static_shapes
        self.in_kernel_invocation = False
        self.fake_tensor_converter = FakeTensorConverter()

    def from_tensor(
        self,
        tensor: Tensor,
        *,
        static_shapes: bool | None = None,
        source: Any = None,
        symbolic_context: Any = None,
        trace: bool = True,
    ) -> FakeTensor:
        """The fake tensor that stands for `tensor`: the same one for each call, as long as the tensor lives."""
        if symbolic_context is not None:
            raise NotImplementedError(
                "FakeTensorMode.from_tensor(symbolic_context=...): sizes are plain numbers. See docs/compatibility.md"
            )
        return self.fake_tensor_converter.from_real_tensor(self, tensor)

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        if op is _LIFT and not isinstance(args[0], FakeTensor):
            return self.fake_tensor_converter.from_real_tensor(self, args[0], args[0].numel() <= CONSTANT_NUMEL_LIMIT)
        if keys_of(args) & BATCHED:  # vmap comes first: it calls ops of whole batches, which the mode sees again
            threads.state.modes += (self,)
            try:
                return entry_globals.run_batched(op, args)
            finally:
                threads.state.modes.remove(self)
        return self._call(op, args) if op.composite and op.dispatched else super().run(op, args)

    def __torch_dispatch__(self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        op = func._op
        args = self._converted(func, in_schema_order(op, args, kwargs or {}))
        fakes: list[FakeTensor] = list(_tensors(args))  # type: ignore[arg-type]
        constants = self._constants(op, args, fakes)
        if constants is not None and not _returns_tensors(op):
            return constants
        device = _result_device(op, args, fakes)
        originals: dict[int, FakeTensor] = {}
        plain = tuple(_plain(value, originals) for value in args)
        place = next((i for i, a in enumerate(op.schema.arguments) if a.type_text == "Device?"), None)
        if place is not None and (not fakes or plain[place] is not None):
            plain = (*plain[:place], Device("meta"), *plain[place + 1 :])
        try:
            result = without_modes(proceed, op, plain)
        except RuntimeError as error:
            missing = error.__dict__.get("depends_on_values")
            if missing is None:
                raise
            raised = DynamicOutputShapeException if _returns_tensors(op) else DataDependentOutputException
            raise raised(overload_of(_NONZERO) if missing == "mask" else func) from None
        if op.schema.mutates and constants is None:
            _forget_values(fakes[0])
        return self._results(result, constants, device, originals)

    def _converted(self, func: OpOverload, value: Any) -> Any:
        """Arguments with fake tensors in place of real ones; AssertionError where that is not wanted."""
        call = value

        def convert(value: Any) -> Any:
            if isinstance(value, FakeTensor):
                if value.fake_mode is not self:
                    raise AssertionError(f"Mixing fake modes NYI x.fake_mode={value.fake_mode} vs self={self}")
                return value
            if isinstance(value, Tensor):
                if not self.allow_non_fake_inputs:
                    raise AssertionError(
                        "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with "
                        f"'allow_non_fake_inputs'. Found in {_call_text(func, call)}"
                    )
                return self.from_tensor(value)
            return type(value)(map(convert, value)) if type(value) in (list, tuple) else value

        return convert(value)

    def _constants(self, op: OpSpec, args: tuple[Any, ...], fakes: list[FakeTensor]) -> Any:
        """What an op gives for the values of its arguments, where all of them are known and it draws no random numbers."""
        if not fakes or op.batching in _RANDOM or any(fake.constant is None for fake in fakes):
            return None
        values = tuple(_constant(value) for value in args)
        place = next((i for i, a in enumerate(op.schema.arguments) if a.type_text == "Device?"), None)
        if place is not None:
            values = (*values[:place], None, *values[place + 1 :])
        result = without_modes(proceed, op, values)
        return result if all(t.numel() <= CONSTANT_NUMEL_LIMIT for t in _tensors((result,))) else None

    def _results(self, value: Any, constants: Any, device: Device, originals: dict[int, FakeTensor]) -> Any:
        """What an op returned, with fake tensors for those on the meta device."""
        if isinstance(value, Tensor):
            original = originals.get(id(value))
            if original is not None:  # written in place, and perhaps given another shape
                original._array = value._array
                return original
            base = value._base
            value = self._wrapped(value, device)
            if base is not None:
                value._base = originals.get(id(base), base)
            value.constant = constants if isinstance(constants, Tensor) else None
            return value
        if isinstance(value, tuple | list):
            known = constants if constants is not None else [None] * len(value)
            parts = [self._results(part, one, device, originals) for part, one in zip(value, known, strict=True)]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        return value

    def _wrapped(self, tensor: Tensor, device: Device) -> FakeTensor:
        return FakeTensor(self, tensor, device)


# ---------------------------------------------------------------- tensors among arguments


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors among arguments, also inside lists."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for element in value:
            yield from _tensors(element)


def _plain(value: Any, originals: dict[int, FakeTensor]) -> Any:
    """The value with tensors on the meta device for fake ones, which `originals` has by the id of those."""
    if isinstance(value, FakeTensor):
        plain = object.__new__(Tensor)
        plain._array, plain._storage, plain._base, plain._keys = value._array, storage_of(value), value._base, META
        originals[id(plain)] = value
        return plain
    return type(value)(_plain(v, originals) for v in value) if type(value) in (list, tuple) else value


def _constant(value: Any) -> Any:
    if isinstance(value, FakeTensor):
        return value.constant
    return type(value)(map(_constant, value)) if type(value) in (list, tuple) else value


def _forget_values(written: Any) -> None:
    for fake in _tensors((written,)):
        fake.constant = None  # type: ignore[attr-defined]


def _like(t: Tensor) -> Tensor:
    array = t._array
    return make_meta(array.shape, array.dtype, array.strides)


# ---------------------------------------------------------------- devices


def _with_index(device: Device) -> Device:
    """A device as a tensor has it: of several of a kind, the first if none is named."""
    return device if device.type in ("cpu", "meta") or device.index is not None else Device(device.type, 0)


def _result_device(op: OpSpec, args: tuple[Any, ...], fakes: list[FakeTensor]) -> Device:
    """Where results are: where a factory is told to, else where the operands are."""
    compared: list[FakeTensor] = []
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.type_text == "Device?" and value is not None:
            return _with_index(Device(value))
        if argument.type_text != "Tensor?[]" or not compared:  # indices may be on the CPU
            compared += _tensors((value,))  # type: ignore[arg-type]
    if not compared:
        return Device("cpu")
    if op is _COPY:
        return compared[0].fake_device
    return _common_device(compared)


def _common_device(fakes: list[FakeTensor]) -> Device:
    """The device of all; a single element on the CPU goes with any other."""
    common, from_number = fakes[0].fake_device, _is_number(fakes[0])
    for fake in fakes[1:]:
        if fake.fake_device == common or _is_number(fake):
            from_number = from_number and _is_number(fake)
        elif from_number:
            common, from_number = fake.fake_device, False
        else:
            raise FakeTensorDeviceMismatchError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{common} and {fake.fake_device}!"
            )
    return common


def _is_number(fake: FakeTensor) -> bool:
    return not fake._array.ndim and fake.fake_device.type == "cpu"


# ---------------------------------------------------------------- calls


def _returns_tensors(op: OpSpec) -> bool:
    returns = op.schema.returns
    return not returns or returns[0].startswith("Tensor")


# ---------------------------------------------------------------- texts


# What the elements of a tensor show, so that its text does not name it.
_SHOWN = (int64, bool_)


def _text_of(tensor: Tensor, contents: str = "...", name: str = "FakeTensor") -> str:
    """A tensor with its shape in place of its elements."""
    parts = [contents]
    if tensor.device.type != "cpu":
        parts.append(f"device='{tensor.device}'")
    parts.append(f"size={tuple(tensor.shape)}")
    if tensor.dtype is not get_default_dtype() and not (name == "tensor" and tensor.dtype in _SHOWN):
        parts.append(f"dtype={tensor.dtype}")
    node = tensor.grad_fn
    if node is not None:
        parts.append(f"grad_fn=<{node.name()}>")
    elif tensor.requires_grad:
        parts.append("requires_grad=True")
    return f"{name}({', '.join(parts)})"


def _call_text(func: OpOverload, args: tuple[Any, ...]) -> str:
    """A call with its tensors as messages show them."""
    values = list(args)
    arguments = func._schema.arguments
    while values and not isinstance(values[-1], Tensor) and values[-1] == arguments[len(values) - 1].default:
        values.pop()
    texts = [
        f"{argument.python_name}={_value_text(value)}" if argument.keyword_only else _value_text(value)
        for argument, value in zip(arguments, values, strict=False)
        if not argument.keyword_only or value is not argument.default
    ]
    return f"{func}({', '.join(texts)})"


def _value_text(value: Any) -> str:
    if isinstance(value, FakeTensor):
        return repr(value)
    if isinstance(value, Tensor):
        first = repr(value.detach()).removeprefix("tensor(").partition(",")[0].rstrip(")")  # type: ignore[attr-defined]
        return _text_of(value, "[...]" if value.ndim else first, "tensor")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value_text, value))}]"
    return repr(value)
