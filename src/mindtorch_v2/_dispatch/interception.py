"""Python-level interception: `__torch_function__`, `__torch_dispatch__`, and modes of either kind.

None of it is on an op's short path: tensors of a subclass that takes part carry the PYTHON key, and an active mode counts
among `entry_globals.observers_active`, so that entries look at their thread's state.
"""

from __future__ import annotations

from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.device import default_elsewhere, on_default_change
from .._core.device import device as Device
from .._core.keys import AUTOGRAD, BATCHED, PYTHON
from .._core.tensor import Tensor, storage_of
from .._core.threads import threads
from . import dispatcher, entry_globals, observer
from .dispatcher import proceed as proceed  # what a mode calls for an op that it lets pass
from .errors import torch_error
from .overload_api import overload_of
from .registry import OpSpec


class Mode:
    """Takes over the ops of the calling thread inside a `with` block: `run(op, args)` is called in place of each."""

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        """The op's result; the mode is off meanwhile. `proceed(op, args)` lets the op pass."""
        raise NotImplementedError

    def before_out(self, targets: tuple[Tensor, ...]) -> None:
        """Called before an op writes its results into the tensors that a call has as `out=`."""

    def __enter__(self) -> Any:
        modes = threads.state.modes
        modes += (self,)
        observer.acquire()
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        modes = threads.state.modes
        if self not in modes:
            raise ValueError(f"{type(self).__name__} is not active on this thread")
        try:
            modes.remove(self)
        finally:
            observer.release()


class TorchFunctionMode(Mode):
    """Inside `with mode:` every op calls `mode.__torch_function__(func, types, args, kwargs)`."""

    __module__ = "mindtorch_v2.overrides"

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        positional, keywords = call_arguments(op, args)
        assert op.packet is not None
        return self.__torch_function__(op.packet.function, subclass_types(args), positional, keywords)


class TorchDispatchMode(Mode):
    """Inside `with mode:` every op below autograd calls `mode.__torch_dispatch__(func, types, args, kwargs)`."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it belongs to a compiler, not to a program."""
        return False

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Whether it asks not to see what a compiler does."""
        return False

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        if op.composite and not op.below_autograd:
            return run_composed(self, op, args)
        with_history = dispatcher.keys_of(args) & AUTOGRAD
        if with_history and op.schema.mutates and threads.state.grad_enabled:
            return entry_globals.run_in_place(op, args, self._call)
        result = self._call(op, args)
        if with_history and not op.schema.mutates:
            entry_globals.record_subclass(op, args, result)  # the mode's results may be of a subclass
        return result

    def _call(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        positional, keywords = call_arguments(op, args)
        return entry_globals.below_autograd(
            self.__torch_dispatch__, overload_of(op), subclass_types(args), positional, keywords
        )


class _DefaultDevice(Mode):
    """While a thread's default device is not the CPU: fills in that device in calls of factories without `device=`."""

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        default = default_elsewhere()
        if default is not None:
            arguments = op.schema.arguments
            empty = [i for i, a in enumerate(arguments) if a.type_text == "Device?" and args[i] is None]
            if empty and not any(a.is_tensor or a.is_tensor_list for a in arguments):
                args = (*args[: empty[0]], default, *args[empty[0] + 1 :])
        if op.composite and not op.below_autograd:
            return run_composed(self, op, args)
        return proceed(op, args)

    def follow(self, default: Device | None) -> None:
        """Enter the mode on this thread if it has a default device other than the CPU, else leave it."""
        modes = threads.state.modes
        if default is None and self in modes:
            self.__exit__()
        elif default is not None and self not in modes:
            self.__enter__()


on_default_change.append(_DefaultDevice().follow)


class DisableTorchFunctionSubclass(Mode):
    """Inside `with DisableTorchFunctionSubclass():` tensors of subclasses are plain ones to every op, and so are results."""

    __module__ = "mindtorch_v2._C"

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        originals: dict[int, Tensor] = {}
        plain = _strip(args, originals)
        composed = op.composite and not op.below_autograd
        return _restored(run_composed(self, op, plain) if composed else proceed(op, plain), originals)


def function_mode_is_active() -> bool:
    """Whether a `TorchFunctionMode` sees the ops of this thread."""
    return any(isinstance(mode, TorchFunctionMode) for mode in threads.state.modes)


def subclass_types(args: Any) -> list[type]:
    """The subclasses among some arguments that take part in interception, most derived first."""
    kinds: list[type] = []

    def collect(values: Any) -> None:
        for value in values:
            if isinstance(value, Tensor):
                kind = type(value)
                if value._keys & PYTHON and kind not in kinds:
                    place = next((i for i, other in enumerate(kinds) if issubclass(kind, other)), len(kinds))
                    kinds.insert(place, kind)
            elif isinstance(value, list | tuple):
                collect(value)

    collect(args)
    return kinds


def call_arguments(op: OpSpec, args: tuple[Any, ...]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The positional and keyword arguments that a call of the op would have, defaults left out where they can be."""
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.keyword_only:
            if value is not argument.default and value != argument.default:
                keywords[argument.python_name] = value
        else:
            positional.append(value)
    arguments = [a for a in op.schema.arguments if not a.keyword_only]
    while positional and _is_default(positional[-1], arguments[len(positional) - 1].default):
        positional.pop()
    return tuple(positional), keywords


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    return not isinstance(value, Tensor) and type(value) is type(default) and value == default


def run_modes(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op in the innermost active mode, which is off meanwhile."""
    modes = threads.state.modes
    mode = modes[-1]
    del modes[-1]
    try:
        return mode.run(op, args)
    except entry_globals.KERNEL_ERRORS as error:
        raise torch_error(error) from error.__cause__  # of the mode's code: no kernel's, to be translated
    finally:
        modes += (mode,)


def without_modes(function: Any, *args: Any) -> Any:
    """Call a function while no mode is active on this thread."""
    state = threads.state
    modes, state.modes = state.modes, []
    try:
        return function(*args)
    finally:
        state.modes = modes


def run_composed(mode: Any, op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run a composite with the mode on, so that the mode sees the ops that it is made of."""
    if op.dispatched:  # for modes further out and subclasses it is one op
        return proceed(op, args)
    modes = threads.state.modes
    modes += (mode,)
    try:
        return op.kernel(*args)
    except entry_globals.KERNEL_ERRORS as error:
        return entry_globals.slow_path(op, args, error)  # as the entry would
    finally:
        modes.remove(mode)


def call_overloaded(op: OpSpec, args: tuple[Any, ...], out: Any = None) -> Any:
    """Call `__torch_function__` of arguments that are no tensors but have one; NotImplemented where there is none."""
    given = _flat((*args, out))
    kinds = list(dict.fromkeys(type(a) for a in given if not isinstance(a, Tensor) and hasattr(type(a), "__torch_function__")))
    if not kinds:
        return NotImplemented
    positional, keywords = call_arguments(op, args)
    if out is not None:
        keywords["out"] = out
    for kind in kinds:
        assert op.packet is not None
        result = _call_handler(kind.__torch_function__, op.packet.function, tuple(kinds), positional, keywords)
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{op.schema.name}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n\n  - {kinds}"
    )


def _flat(values: Any) -> Any:
    for value in values:
        if type(value) in (list, tuple):
            yield from _flat(value)
        else:
            yield value


def _call_handler(handler: Any, *args: Any) -> Any:
    """Call a `__torch_function__` or `__torch_dispatch__`; what it raises reaches the caller of the op as it is."""
    try:
        return handler(*args)
    except entry_globals.KERNEL_ERRORS as error:
        raise torch_error(error) from error.__cause__


def call_subclass(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Call `__torch_function__` or `__torch_dispatch__` of the subclasses among the arguments, in torch's order."""
    if dispatcher.keys_of(args) & BATCHED:
        return entry_globals.run_batched(op, args)
    types = subclass_types(args)
    positional, keywords = call_arguments(op, args)
    handlers = [kind.__torch_function__ for kind in types]  # type: ignore[attr-defined]
    overridden = [handler for handler in handlers if getattr(handler, "__func__", handler) is not _plain_torch_function]
    if not overridden and any(hasattr(kind, "__torch_dispatch__") for kind in types):
        return _call_dispatch(op, args, types, positional, keywords)
    for handler in overridden or handlers:
        result = _call_handler(handler, op.packet.function, tuple(types), positional, keywords)  # type: ignore[union-attr]
        if result is not NotImplemented:
            return result
    raise TypeError(
        f"Multiple dispatch failed for 'torch.{op.schema.name}'; all __torch_function__ handlers returned "
        f"NotImplemented:\n\n  - tensor subclass {types}"
    )


def _call_dispatch(op: OpSpec, args: tuple[Any, ...], types: list[type], positional: Any, keywords: Any) -> Any:
    if op.composite and not op.below_autograd and not op.dispatched:
        return op.kernel(*args)

    def call(op: OpSpec, args: tuple[Any, ...]) -> Any:
        for kind in types:
            handler = getattr(kind, "__torch_dispatch__", None)
            if handler is not None:
                result = _call_handler(handler, overload_of(op), tuple(types), positional, keywords)
                if result is not NotImplemented:
                    return result
        raise TypeError(f"no implementation found for '{op.name}' on types that implement __torch_dispatch__: {types}")

    with_history = dispatcher.keys_of(args) & AUTOGRAD
    if with_history and op.schema.mutates and not op.nondiff:
        return entry_globals.run_in_place(op, args, call)
    result = entry_globals.below_autograd(call, op, args)
    if with_history and not op.nondiff and not op.schema.mutates:
        entry_globals.record_subclass(op, args, result)
    return result


def disabled_torch_function(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`__torch_function__ = torch._C._disabled_torch_function_impl`: calls ignore the subclass, results are plain tensors."""
    return func(*args, **(kwargs or {}))


def _strip(value: Any, originals: dict[int, Tensor]) -> Any:
    """The value with subclass tensors as plain ones that share everything; `originals` gets the tensors by id of those."""
    if isinstance(value, Tensor) and value._keys & PYTHON:
        plain = object.__new__(Tensor)
        plain._array, plain._storage, plain._base = value._array, storage_of(value), value._base
        plain._keys = value._keys & ~PYTHON
        if value._keys & AUTOGRAD:
            plain._node, plain._output_nr, plain._grad = value._node, value._output_nr, None
        originals[id(plain)] = value
        return plain
    if type(value) in (list, tuple):
        return type(value)(_strip(v, originals) for v in value)
    return value


def run_below_python(run: entry_globals.Runner, op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op as if no tensor were of a subclass and no mode were active. In-place ops return the tensor they got."""
    originals: dict[int, Tensor] = {}
    return _restored(without_modes(run, op, _strip(args, originals)), originals)


def _restored(result: Any, originals: dict[int, Tensor]) -> Any:
    """The result of an op on what `_strip` returned: an in-place op's is the tensor before it was stripped."""
    original = originals.get(id(result))
    if original is None:
        return result
    original._array = result._array
    if result._keys & AUTOGRAD:
        original._keys |= AUTOGRAD
        original._node, original._output_nr = result._node, result._output_nr
    return original


def without_subclasses(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call with plain tensors for those of subclasses."""
    return _strip(tuple(args), {}), {name: _strip(value, {}) for name, value in kwargs.items()}


def _plain_torch_function(cls: type, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`Tensor.__torch_function__`: run the call on plain tensors and make the results instances of `cls`."""
    iter(types)  # TypeError, as in torch, before anything is called
    originals: dict[int, Tensor] = {}
    plain = _strip(tuple(args), originals)
    keywords = {name: _strip(value, originals) for name, value in dict(kwargs or {}).items()}
    result = func(*plain, **keywords)
    restored = _restored(result, originals)
    return restored if restored is not result else wrap_subclass(cls, result)


Tensor.__torch_function__ = classmethod(_plain_torch_function)


def wrap_subclass(cls: type, value: Any) -> Any:
    """A result with its plain tensors as instances of `cls`; tuples and lists item by item."""
    if isinstance(value, Tensor):
        if type(value) is not Tensor:
            return value
        return as_subclass(value, cls)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[wrap_subclass(cls, v) for v in value])
    if isinstance(value, list | tuple):
        return type(value)(wrap_subclass(cls, v) for v in value)
    return value


def as_subclass(tensor: Tensor, cls: type) -> Any:
    """The same tensor, history included, as an instance of a subclass."""
    result: Any = object.__new__(cls)
    result._array, result._storage, result._base = tensor._array, tensor._storage, tensor._base
    result._keys = tensor._keys | python_key(cls)
    if tensor._keys & AUTOGRAD:
        result._node, result._output_nr = tensor._node, tensor._output_nr
        result._grad = None
    return result


def python_key(cls: type) -> int:
    """PYTHON for a class that takes part in interception, 0 for Tensor and classes that opted out."""
    handler = getattr(cls, "__torch_function__", None)
    disabled = handler is disabled_torch_function or getattr(handler, "__func__", None) is disabled_torch_function
    if cls is Tensor or (disabled and not hasattr(cls, "__torch_dispatch__")):
        return 0
    return PYTHON


entry_globals.install(
    call_overloaded=call_overloaded, call_subclass=call_subclass, run_below_python=run_below_python, run_modes=run_modes
)
