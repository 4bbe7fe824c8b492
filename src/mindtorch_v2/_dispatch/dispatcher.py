"""The dispatcher: from a Python call to a kernel, one way for every op.

For each op a Python function is generated from its schema, at its first call: it binds the arguments,
looks whether anybody watches, runs the kernel on arrays and wraps the result. Whatever is not plain
(devices, subclasses, odd operands) goes through `_run_kernel`, which does the same by interpretation.
Both are one path: an op is entered, timed and recorded in its generated entry and nowhere else.
"""

from __future__ import annotations

import linecache
import warnings
from types import FunctionType
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.device import device as Device
from .._core.keys import AUTOGRAD, BACKENDS, META, NPU, PYTHON
from .._core.storage import allocation
from .._core.tensor import Tensor, allocated, make_meta, make_sharing, make_tensor, make_view, storage_of
from .._core.threads import threads
from . import backends, entry_globals, observer, registry
from .entry_codegen import entry_source
from .errors import (
    broadcast_mismatch,
    check_listed,
    check_tensor_arguments,
    first_place,
    overlapping_input,
    torch_error,
    translate,
    type_name,
)
from .overloads import accepts, number_as_tensor, packet_function, type_word
from .promotion import as_number, computation_dtype, is_number, promote
from .registry import OpSpec, aten
from .result_types import result_type_of
from .schema import REQUIRED
from .signatures import OpSignature, describe

_space = vars(entry_globals)


# ---------------------------------------------------------------- the general path


def keys_of(values: Any) -> int:
    """The dispatch keys of all tensors among some arguments, lists included."""
    keys = 0
    for value in values:
        if isinstance(value, Tensor):
            keys |= value._keys
        elif isinstance(value, list | tuple):
            keys |= keys_of(value)
    return keys


def listed_keys(tensors: Any) -> int:
    """The dispatch keys of all tensors of a list in which there is nothing else."""
    if tensors.__class__ is Tensor:  # whose rows are tensors, too, but no list of them
        raise AttributeError
    keys = 0
    for tensor in tensors:
        keys |= tensor._keys
    return keys


def _run_kernel(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op on any arguments: subclasses, other devices, numbers for tensors. The entry has begun its record."""
    keys = keys_of(args)
    if keys & PYTHON:
        return entry_globals.call_subclass(op, args)
    if (keys & AUTOGRAD and not op.composite) or op.below_autograd:
        if op.schema.mutates:
            return entry_globals.run_in_place(op, args)
        result = entry_globals.below_autograd(execute, op, args)
        if keys & AUTOGRAD:
            entry_globals.attach(op, args, result)
        return result
    return execute(op, args)


def execute(op: OpSpec, args: tuple[Any, ...], out: np.ndarray | None = None) -> Any:
    """Run an op's kernel on arguments of any device, without history."""
    if op.composite:
        return op.kernel(*args)
    keys = keys_of(args)
    wanted = _wanted_device(op, args)
    if keys & BACKENDS or wanted is not None:
        return _execute_elsewhere(op, args, keys, wanted)
    arrays = prepare(op, args)
    if op.schema.mutates:
        return _execute_in_place(op, args, arrays)
    result = op.kernel(*arrays) if out is None else op.kernel(*arrays, out=out)
    return wrap(op, args, result)


def prepare(op: OpSpec, args: tuple[Any, ...]) -> list[Any]:
    """Arguments as the kernel takes them: arrays for tensors, promoted where the op says so."""
    arguments = op.schema.arguments
    promoted = [
        (i, args[i]) for i, a in enumerate(arguments) if a.name in op.promoted and (args[i] is not None or not a.optional)
    ]
    for i, value in promoted:
        if not isinstance(value, Tensor) and not (
            is_number(value) and (i or arguments[i].type_text == "Scalar") and "tensors" not in op.tags
        ):
            check_tensor_arguments(op, args)
    prepared: list[Any] = []
    for argument, value in zip(arguments, args, strict=True):
        if isinstance(value, Tensor):
            prepared.append(value._array)
        elif argument.is_tensor_list and value is not None:
            check_tensor_arguments(op, args)
            prepared.append([None if v is None else v._array for v in value])
        elif argument.is_tensor and value is not None and argument.name not in op.promoted:
            check_tensor_arguments(op, args)
        elif argument.is_int_list and isinstance(value, int):
            prepared.append((value,))
        else:
            prepared.append(value)
    if promoted:
        # In-place forms compute in the type of all operands and cast on the way out, as the kernel's `out=` does.
        operands = tuple(as_number(value) for _, value in promoted)
        assert op.promote is not None
        for (i, _), array in zip(promoted, promote(op.promote, operands), strict=True):
            prepared[i] = array
    return prepared


def _execute_in_place(op: OpSpec, args: tuple[Any, ...], arrays: list[Any]) -> Any:
    target = args[0]
    storage = storage_of(target)
    version = storage.version + 1  # asked for first: a storage that must not be changed refuses
    if registry.functional_form(op) is None:
        op.kernel(*arrays)
    else:
        write_result(op, target, op.kernel(*arrays))
    storage.version = version
    return target


def write_result(op: OpSpec, target: Tensor, result: Any) -> None:
    """Store a computed array in an existing tensor, under torch's casting rule."""
    _check_storable(target, result)
    np.copyto(target._array, result, casting="unsafe")


def _check_storable(target: Tensor, result: np.ndarray) -> None:
    array = target._array
    if result.dtype is not array.dtype:
        computed, kept = dt.from_numpy(result.dtype), dt.from_numpy(array.dtype)
        if not dt.can_cast(computed, kept):
            raise RuntimeError(
                f"result type {computed.scalar_name} can't be cast to the desired output type {kept.scalar_name}"
            )
    if result.shape != array.shape:
        raise RuntimeError(f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(result.shape)}")


def wrap(op: OpSpec, args: tuple[Any, ...], result: Any) -> Any:
    """A kernel's arrays as tensors: views of the first tensor argument, or tensors of their own."""
    schema = op.schema
    if not schema.returns:
        return None
    if not schema.returns[0].startswith("Tensor"):
        return result
    source = next((a for a in args if isinstance(a, Tensor)), None) if schema.is_view else None

    def one(array: Any) -> Tensor:
        if array.__class__ is not np.ndarray:
            array = np.asarray(array)
        return make_tensor(array) if source is None else make_view(array, source)

    if schema.returns_list:
        return [one(array) for array in result] if source is None else tuple(one(array) for array in result)
    if len(schema.returns) == 1:
        return one(result)
    return result_type_of(op)(*[one(array) for array in result])


def _wanted_device(op: OpSpec, args: tuple[Any, ...]) -> Device | None:
    """The device a factory was asked for, if that is not the CPU."""
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if argument.type_text == "Device?" and value is not None:
            wanted = value if isinstance(value, Device) else Device(value)
            return None if wanted.type == "cpu" else wanted
    return None


def _execute_elsewhere(op: OpSpec, args: tuple[Any, ...], keys: int, wanted: Device | None) -> Any:
    name = wanted.type if wanted is not None else "meta" if keys & META else "npu" if keys & NPU else "sparse"
    backends.load(name)
    kernel = op.kernels.get(name)
    if kernel is not None:
        return kernel(*args)
    if name == "meta":
        return _execute_meta(op, args)
    fallback = _space.get("fallback_" + name)
    if fallback is not None:
        return fallback(op, args)
    if name in ("cuda", "mps", "xpu", "npu"):
        raise AssertionError(f"Torch not compiled with {name.upper()} enabled")
    raise NotImplementedError(f"Could not run '{op.name}' with arguments from the '{name}' backend.")


def _execute_meta(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Results without memory: the op's shape rule, or for a view the kernel itself, which moves no data."""
    for other in args:
        if isinstance(other, Tensor) and not other._keys & META and other._array.ndim:
            raise RuntimeError(
                f"Expected all tensors to be on the same device, but found at least two devices, {other.device} and meta!"
            )
    if op.schema.mutates:
        return args[0]
    if op.schema.is_view:
        result = wrap(op, args, op.kernel(*prepare(op, args)))
        for view in result if isinstance(result, tuple) else (result,):
            view._keys = META
        return result
    tensors = [make_meta(shape, np_dtype) for shape, np_dtype in predicted(op, args)]
    return tensors[0] if len(op.schema.returns) == 1 else result_type_of(op)(*tensors)


def predicted(op: OpSpec, args: tuple[Any, ...]) -> list[tuple[tuple[int, ...], np.dtype]]:
    """Shape and dtype of each result of an op, by its shape rule: no kernel runs."""
    if op.shape is not None:
        made = op.shape(*args)
    elif op.promote is not None:
        made = _pointwise_shape(op, args)
    else:
        raise NotImplementedError(f"{op.name} has no shape rule, which tensors without memory on the CPU need")
    return [(tuple(shape), np_dtype) for shape, np_dtype in (made if isinstance(made, list) else [made])]


def _pointwise_shape(op: OpSpec, args: tuple[Any, ...]) -> tuple[tuple[int, ...], np.dtype]:
    """The shape rule of every op that promotes its operands: they broadcast."""
    shapes = [a._array.shape for a in args if isinstance(a, Tensor)]
    mismatch = broadcast_mismatch(shapes)
    if mismatch is not None:
        raise RuntimeError(mismatch)
    operands = tuple(
        as_number(a)
        for argument, a in zip(op.schema.arguments, args, strict=True)
        if argument.name in op.promoted and a is not None
    )
    assert op.promote is not None
    wanted = dt.bool_ if op.promote == "compare" else computation_dtype(op.promote, operands)
    return np.broadcast_shapes(*shapes), wanted.np


_RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
    "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
    "t.resize_(0)."
)


def run_out(op: OpSpec, args: tuple[Any, ...], out: Any) -> Any:
    """The form with `out=`: compute, then store in the given tensor (or tensors), which takes the result's shape."""
    targets = _targets(op, out)
    if threads.state.grad_enabled and keys_of((args, targets)) & AUTOGRAD:
        raise RuntimeError(
            f"{op.schema.name}(): functions with out=... arguments don't support automatic "
            "differentiation, but one of the arguments requires grad."
        )
    rule = registry.out_rules.get(op.schema.name)
    if rule is not None:
        for target in targets:
            args = rule(op, args, target)
    results = entry_globals.run_modes(op, args) if threads.state.modes else execute(op, args)
    for target, result in zip(targets, results if isinstance(results, list | tuple) else (results,), strict=True):
        on_npu = (target._keys | result._keys) & NPU
        if on_npu and target.device != result.device:
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{result.device} and {target.device}! (when running {op.name})"
            )
        if target._array.shape != result._array.shape:
            if target._array.size:
                warnings.warn(_RESIZED.format(list(target._array.shape), list(result._array.shape)), stacklevel=3)
            target.resize_(result._array.shape)
        if on_npu:
            _check_storable(target, result._array)
            execute(registry.packets["copy_"].overloads[""], (target, result, False))
        else:
            for source in args:
                if isinstance(source, Tensor) and source._storage is not None and source._storage is target._storage:
                    overlapping_input(target._array, source._array)
            storage = storage_of(target)
            version = storage.version + 1
            write_result(op, target, result._array)
            storage.version = version
    return out if len(op.schema.returns) == 1 else result_type_of(op, "_out")(*targets)


def _targets(op: OpSpec, out: Any) -> tuple[Tensor, ...]:
    """What `out=` names: as many tensors as the op has results."""
    count, several = len(op.schema.returns), isinstance(out, list | tuple)
    if several != (count > 1) or (not several and not isinstance(out, Tensor)):
        raise TypeError(
            f"{op.schema.name}(): argument 'out' must be {'Tensor' if count == 1 else 'tuple of Tensors'}, not "
            f"{type(out).__name__}"
        )
    targets = tuple(out) if several else (out,)
    if len(targets) != count:
        raise torch_error(TypeError(f"expected tuple of {count} elements but got {len(targets)}"))
    for at, target in enumerate(targets):
        if not isinstance(target, Tensor):
            raise TypeError(
                f"expected Tensor as element {at} in argument {len(op.schema.arguments)}, but got {type_name(target)}"
            )
    return targets


def dispatch_with_keyset(keyset: int, name: str, *args: Any, **kwargs: Any) -> Any:
    """Call the op `name` ("mul", "aten::mul" or "mul.Tensor") as if only `keyset` of its tensors' keys were there.

    Without AUTOGRAD in the keyset no history is recorded. The op is observed like any other call.
    """
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = registry.packets.get(base)
    if packet is None:
        raise AttributeError(f"no op named {name}")
    function = packet.overloads[overload].call if overload else packet.function
    assert function is not None
    if keyset & AUTOGRAD:
        return function(*args, **kwargs)
    return entry_globals.without_history(function, args, kwargs)


def _dims_of_tensors(op: OpSpec, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with 0-d tensors of integers as ints where dims are asked for: `x.sum(torch.tensor(1))`."""
    meant = [
        a.is_int_list and isinstance(v, Tensor) and accepts(op, a, v) for a, v in zip(op.schema.arguments, args, strict=True)
    ]
    return tuple((int(v._array),) if yes else v for v, yes in zip(args, meant, strict=True)) if any(meant) else args


def _call_by_schema(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Call an op's entry with all arguments in the order of its schema."""
    named = {a.python_name: value for a, value in zip(op.schema.arguments, args, strict=True) if a.keyword_only}
    assert op.call is not None
    return op.call(*args[: len(args) - len(named)], **named)


def recover(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Any:
    """What an entry does when its short path failed: a tensor argument was no tensor, or NumPy complained."""
    if "torch_error" in error.__dict__:
        raise error
    if isinstance(error, AttributeError | RuntimeError | TypeError):
        numbers = _dims_of_tensors(op, args)
        if numbers is not args:
            return _run_kernel(op, numbers)
    if isinstance(error, AttributeError):
        lifted = number_as_tensor(op.schema.name, args, {})
        if lifted is not None:
            return _call_by_schema(op, lifted)
        check_listed(op, args)
        handled = entry_globals.call_overloaded(op, args)
        if handled is not NotImplemented:
            return handled
        if op.composite:
            check_tensor_arguments(op, args)
            raise error
        try:
            return _run_kernel(op, args)
        except (ValueError, TypeError) as again:
            error = again
    if isinstance(error, TypeError) and str(error).startswith((f"{op.schema.name}(): argument", "expected Tensor as element")):
        raise error  # about an argument, and already in torch's words
    for position, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if not accepts(op, argument, value):
            given = value[0] if isinstance(value, tuple) and len(value) == 1 else value
            raise TypeError(
                f"{op.schema.name}(): argument '{argument.python_name}' (position "
                f"{position + first_place(op, args)}) must be {type_word(argument)}, not "
                f"{type_name(given)}"
            ) from None
    known = translate(op, args, error)
    if known is error:
        raise error
    raise known from None


# ---------------------------------------------------------------- generated entries


def recover_operator(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Any:
    """The same for an operator: what is no operand of ours is left to the other side, and to Python's own words."""
    try:
        return recover(op, args, error)
    except TypeError:
        other = args[1]
        if op.schema.name == "eq" and isinstance(other, np.ndarray) and other.dtype.kind in "biufc":
            return _call_by_schema(op, (args[0], make_tensor(other)))  # the one operator that takes arrays
        return NotImplemented


def _stand_in(_op: OpSpec, _id: int, _kernel: Any, _recover: Any) -> FunctionType:
    """A function that compiles its op's entry at the first call and becomes it.

    It closes over the same four variables as an entry, so that the entry's code can take its place.
    """

    def entry(*args: Any, **kwargs: Any) -> Any:
        return materialise(_op, _id, _kernel, _recover)(*args, **kwargs)

    made = FunctionType(entry.__code__, _space, _op.schema.name, None, entry.__closure__)
    made.__qualname__ = _op.schema.name  # the name that Python's own complaints about arguments use
    made.__signature__ = OpSignature(_op)  # type: ignore[attr-defined]
    return made


def spread(values: tuple[Any, ...]) -> Any:
    """`x.view((2, 8))` and `x.view(2, 8)` mean the same: the sizes of a call with one argument."""
    return values[0] if isinstance(values[0], tuple | list) else values


def missing(op: OpSpec, name: str) -> None:
    raise TypeError(f'{op.schema.name}() missing 1 required positional arguments: "{name}"')


_space.update(
    inf=float("inf"),
    ndarray=np.ndarray,
    asarray=np.asarray,
    f32=dt.float32.np,
    new=object.__new__,
    new_tuple=tuple.__new__,
    Tensor=Tensor,
    threads=threads,
    clock=observer.clock,
    allocation=allocation,
    allocated=allocated,
    storage_of=storage_of,
    make_view=make_view,
    make_sharing=make_sharing,
    make_tensor=make_tensor,
    promote=promote,
    keys_of=keys_of,
    listed_keys=listed_keys,
    run_kernel=_run_kernel,
    recover=recover,
    run_out=run_out,
    write_result=write_result,
    overlapping_input=overlapping_input,
    missing=missing,
    REQUIRED=REQUIRED,
    spread=spread,
)


_factories: dict[str, Any] = {}


def materialise(op: OpSpec, ident: int, kernel: Any, recovery: Any) -> FunctionType:
    """Compile an op's entry and put it in place of the stand-in, for everybody who holds the function."""
    source = entry_source(op)
    factory = _factories.get(source)
    # Tracebacks and profiles name the op, and `linecache` has the text to show.
    filename = f"<{op.name}{'.' + op.schema.overload if op.schema.overload else ''}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    if factory is None:
        made: dict[str, Any] = {}
        exec(compile(source, filename, "exec"), _space, made)
        factory = _factories[source] = made["factory"]
    if len(op.schema.returns) > 1 and not op.composite:
        op.results = result_type_of(op)
    entry = factory(op, ident, kernel, recovery)
    function = op.call if recovery is recover else _operators[op]
    assert function is not None
    function.__code__ = entry.__code__.replace(co_name=op.schema.name, co_qualname=op.schema.name, co_filename=filename)
    function.__defaults__ = entry.__defaults__
    function.__kwdefaults__ = entry.__kwdefaults__
    return function


_space["materialise"] = materialise


# The second function of an op that also is an operator: the entry itself, but for what it does with strangers.
_operators: dict[OpSpec, FunctionType] = {}


def as_operator(function: Any) -> Any:
    """What computes a binary operator, with NotImplemented where it raises TypeError."""

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except TypeError:
            return NotImplemented

    return operator


def operator_form(name: str) -> Any:
    """An op as Python's binary operators call it: NotImplemented, where the function raises TypeError.

    It is as quick as the function: only a call that failed gets to know that it was an operator's.
    """
    packet = registry.packets[name]
    spec = next((spec for spec in packet if spec.call is packet.function), None)
    if spec is None:
        return packet_function(packet, operator=True)
    if spec not in _operators:
        made = _operators[spec] = _stand_in(spec, spec.id, spec.kernel, recover_operator)
        made.__module__ = "torch"
    return _operators[spec]


def _on_register(spec: OpSpec) -> None:
    function = _stand_in(spec, spec.id, spec.kernel, recover)
    function.__module__ = "torch"
    spec.call = function
    packet = spec.packet
    assert packet is not None
    packet.function = function if len(packet.overloads) == 1 else packet_function(packet)
    describe(packet)
    if "::" not in spec.schema.name:
        setattr(aten, spec.schema.name, packet.function)


registry.on_register.append(_on_register)
