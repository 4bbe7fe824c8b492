"""The dispatcher: from a Python call to a kernel, one way for every op.

For each op a Python function, its entry, is generated from its schema at the first call: it binds the arguments, reads
whether anything observes, runs the kernel on arrays and wraps the result. That is the short path. Other devices,
subclasses and operands that are no tensors go through `_run_kernel`, which does the same by interpretation, and calls on
which the short path fails go through `slow_path`. An op is timed and recorded in its entry and nowhere else.
"""

from __future__ import annotations

import linecache
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from .._core import dtype as dt
from .._core.code_cache import compiled
from .._core.device import device as Device
from .._core.half_precision import MANY, is_half, rounded_in_blocks
from .._core.keys import AUTOGRAD, BACKENDS, BATCHED, LAZY, META, NPU, PYTHON, SPARSE, key_names
from .._core.layout import (
    like_image,
    like_operands,
    like_volume,
    on_the_way,
)
from .._core.shape_only import MetaArray
from .._core.storage import check_version
from .._core.tensor import Tensor, make_meta, make_sharing, make_tensor, make_view, storage_of
from .._core.threads import threads
from . import backends, entry_globals, observer, registry
from .entry_codegen import entry_source, iterates
from .errors import (
    check_apart,
    check_listed,
    check_tensor_arguments,
    first_place,
    overlapping_input,
    translate,
    type_name,
)
from .facts import DRAWING, Layout, Promotion
from .lazy_values import execute_lazy
from .overloads import accepts, bind, number_as_tensor, packet_function, resolve, type_word
from .promotion import as_number, is_number, promote
from .registry import OpSpec, aten
from .result_types import result_type_of
from .schema import REQUIRED
from .shape_rules import check_one_device, meta_steps, predicted
from .signatures import OpSignature, describe

# The globals of every entry.
_entry_globals = vars(entry_globals)


# ---------------------------------------------------------------- the general path


def keys_of(values: Any) -> int:
    """The union of the dispatch keys of all tensors among some arguments, lists included."""
    keys = 0
    for value in values:
        if isinstance(value, Tensor):
            keys |= value._keys
        elif isinstance(value, list | tuple):
            keys |= keys_of(value)
    return keys


def listed_keys(tensors: Any) -> int:
    """The same for a list that holds nothing but tensors; AttributeError, which means the slow path, where it does not."""
    if tensors.__class__ is Tensor:  # iterating over it would give its rows
        raise AttributeError
    keys = 0
    for tensor in tensors:
        keys |= tensor._keys
    return keys


def _run_kernel(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op on any arguments: subclasses, other devices, numbers for tensors. The caller has begun the op's row."""
    keys = keys_of(args)
    if keys & PYTHON:
        return entry_globals.call_subclass(op, args)
    if (keys & AUTOGRAD and not op.composite) or op.below_autograd:
        if op.schema.mutates:
            return entry_globals.run_in_place(op, args)
        if keys & SPARSE:  # made of ops on values, which have nodes of their own
            return execute(op, args)
        result = entry_globals.below_autograd(execute, op, args)
        if keys & AUTOGRAD:
            entry_globals.record_node(op, args, result)
        return result
    return execute(op, args)


def execute(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op's kernel on arguments of any device, and record no node."""
    keys = keys_of(args)
    if keys & LAZY:
        return execute_lazy(op, args, execute, execute_eager)
    if op.composite:
        return op.kernel(*args)
    return execute_eager(op, args, keys)


def execute_eager(op: OpSpec, args: tuple[Any, ...], keys: int) -> Any:
    """Run a kernel on what the memory of its tensors holds, whether these values are to be conjugated or not."""
    wanted = _wanted_device(op, args)
    if keys & BACKENDS or wanted is not None:
        return _execute_elsewhere(op, args, keys, wanted)
    if op.recorded_form is not None and threads.state.records:
        return op.recorded_form(*args)
    if op.schema.mutates:
        if isinstance(args[0], Tensor):
            check_version(storage_of(args[0]))  # before its array is read: it may get another one here
        return _execute_in_place(op, args, prepare(op, args))
    arrays = prepare(op, args)
    rounded = _rounded_once(op, args, arrays) if op.wide_numbers else None
    return wrapped(op, args, arrays, op.kernel(*arrays) if rounded is None else rounded)


def _rounded_once(op: OpSpec, args: tuple[Any, ...], arrays: list[Any]) -> np.ndarray | None:
    """The result where a number stands beside half precision, computed in float32 so that it keeps its digits; else None."""
    kind = arrays[0].dtype
    if not is_half(kind):
        return None
    beside = args[:2] if op.promote is Promotion.FLOAT else args[1:2]  # a product with it as the first rounds it, in torch, too
    if all(isinstance(arg, Tensor) and (arg._array.ndim or arg._array.dtype is kind) for arg in beside):
        return None
    operands = [arg._array if isinstance(arg, Tensor) else np.array(arg, np.float32) for arg in args[:2]]
    if operands[0].size < MANY and operands[1].size < MANY:
        small: np.ndarray = op.kernel(*[array.astype(np.float32, copy=False) for array in operands]).astype(kind)
        return small
    return rounded_in_blocks(op.kernel, *operands, kind=kind)


def wrapped(op: OpSpec, args: tuple[Any, ...], arrays: list[Any], result: Any) -> Any:
    """A kernel's results as tensors that lie in memory as the op says."""
    if op.layout in (Layout.ROW_MAJOR, Layout.IMAGES, Layout.INPUT_IMAGES, Layout.VOLUMES):
        image = np.empty(()) if op.layout is Layout.ROW_MAJOR else arrays[int(op.layout is Layout.INPUT_IMAGES)]
        several, like = isinstance(result, tuple | list), like_volume if op.layout is Layout.VOLUMES else like_image
        result = tuple(like(one, image) for one in result) if several else like(np.asarray(result), image)
    wrapped = wrap(op, args, result)
    if wrapped.__class__ is Tensor and (iterates(op) or op.layout in (Layout.OPERANDS, Layout.NOTED)):
        arrange(wrapped, () if op.layout is Layout.NOTED else tuple(arrays[::-1] if op.last_first else arrays))
    return wrapped


def arrange(tensor: Tensor, operands: tuple[Any, ...], turned_by: tuple[int, ...] | bool = True) -> np.ndarray:
    """Lay a pointwise result out as torch does for these operands. One that is not row-major gets its storage here: that is
    how the ops it goes into know that they have to look. `turned_by`: the permutation that turns the result back, if
    `layout.turned` gave one.
    """
    array: np.ndarray = tensor._array
    if turned_by is not True:
        array = tensor._array = np.ascontiguousarray(array).transpose(turned_by)
        storage_of(tensor)
        return array
    arrays = [one for one in operands if one.__class__ is np.ndarray]
    if arrays:
        array = tensor._array = like_operands(array, arrays)
    if not array.flags.c_contiguous:
        storage_of(tensor)
    return array


def prepare(op: OpSpec, args: tuple[Any, ...]) -> list[Any]:
    """Arguments as the kernel takes them: arrays for tensors, promoted where the op says so."""
    arguments = op.schema.arguments
    promoted = [
        (i, args[i]) for i, a in enumerate(arguments) if a.name in op.promoted and (args[i] is not None or not a.optional)
    ]
    for i, value in promoted:
        if not isinstance(value, Tensor) and not (
            is_number(value) and (i or arguments[i].type_text == "Scalar") and not op.tensors_only
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
            prepared.append((value,) * argument.int_count)
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
    rounded = _rounded_once(op, args, arrays) if op.wide_numbers else None
    if rounded is not None:
        write_result(op, target, rounded)
    elif op.inplace_of is None:
        op.kernel(*arrays)
    elif op.takes_out and arrays[0] is target._array:  # it was not promoted
        op.kernel(*arrays, out=arrays[0])
    else:
        write_result(op, target, op.kernel(*arrays))
    storage.version += 1
    return target


def write_result(op: OpSpec, target: Tensor, result: Any) -> None:
    """Store a computed array in an existing tensor; RuntimeError where torch would not cast or broadcast it."""
    _check_storable(target, result.shape, result.dtype)
    np.copyto(target._array, on_the_way(result, target._array.dtype), casting="unsafe")


def _check_storable(target: Tensor, shape: tuple[int, ...], np_dtype: np.dtype) -> None:
    array = target._array
    if np_dtype is not array.dtype:
        computed, kept = dt.from_numpy(np_dtype), dt.from_numpy(array.dtype)
        if not dt.can_cast(computed, kept):
            raise RuntimeError(
                f"result type {computed.scalar_name} can't be cast to the desired output type {kept.scalar_name}"
            )
    if shape != array.shape:
        raise RuntimeError(f"output with shape {list(array.shape)} doesn't match the broadcast shape {list(shape)}")


def wrap(op: OpSpec, args: tuple[Any, ...], result: Any) -> Any:
    """A kernel's arrays as tensors: views of the first tensor argument, or tensors of their own."""
    schema = op.schema
    if not schema.returns:
        return None
    if not schema.returns[0].startswith("Tensor"):
        return result
    source = next((a for a in args if isinstance(a, Tensor)), None) if schema.is_view else None

    def as_tensor(array: Any) -> Tensor:
        if array.__class__ is not np.ndarray:
            array = np.asarray(array)
        if source is None:
            return make_tensor(array)
        return make_sharing(array, source) if op.shares_memory else make_view(array, source)

    if schema.returns_list:
        tensors = [as_tensor(array) for array in result]
        return tensors if source is None else tuple(tensors)
    if len(schema.returns) == 1:
        return as_tensor(result)
    return result_type_of(op)(*[as_tensor(array) for array in result])


def _wanted_device(op: OpSpec, args: tuple[Any, ...]) -> Device | None:
    """The `device=` of a factory's call, or None if that is the CPU or left out."""
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
    fallback = backends.fallbacks.get(name)
    if fallback is not None:
        return fallback(op, args)
    if name in ("cuda", "mps", "xpu", "npu"):
        raise AssertionError(f"Torch not compiled with {name.upper()} enabled")
    raise NotImplementedError(f"Could not run '{op.name}' with arguments from the '{name}' backend.")


def _execute_meta(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Tensors without memory: by the op's shape rule, or for a view by the kernel itself, which moves no data."""
    check_one_device(op, args)
    if op.schema.mutates:
        if not args[0]._keys & META:  # a single element, which a tensor without memory was to be written into
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        computed = op.inplace_of
        if computed is not None and (computed.shape is not None or computed.promote is not None):
            _check_storable(args[0], *predicted(computed, args)[0])
        return args[0]
    if op.schema.is_view:
        result = wrap(op, args, op.kernel(*prepare(op, args)))
        for view in result if isinstance(result, tuple) else (result,):
            view._array = view._array.view(MetaArray)
            view._keys = META
        return result
    tensors = [make_meta(shape, np_dtype, meta_steps(op, args, shape, np_dtype)) for shape, np_dtype in predicted(op, args)]
    return tensors[0] if len(op.schema.returns) == 1 else result_type_of(op)(*tensors)


def dispatch_with_keyset(keyset: int, name: str, /, *args: Any, **kwargs: Any) -> Any:
    """Run the op `name` by the dispatch keys in `keyset`, not by those of its tensors.

    This is how code that takes part in a call passes it on below itself, as torch's `redispatch` does: a kernel, a mode or a
    subclass removes its own key from those that the arguments have, `keys_of(args) & ~PYTHON`. The keys are those of
    `_core.keys`:

        AUTOGRAD             without it no history is recorded
        PYTHON               without it no mode runs, no subclass sees the call, and the result is a plain tensor
        META, NPU, SPARSE,   where the kernel runs; they cannot be left out while a tensor has them
        BATCHED

    A composite op is made of other ops, which are dispatched by the keys of their own tensors. The call records no row: it
    is part of the call that is passed on. `name` is "neg", "aten::neg", "neg.default" or "mul.Tensor"; without an overload
    it means the first that takes the arguments.
    """
    base, _, overload = name.removeprefix("aten::").partition(".")
    packet = registry.packets.get(base)
    if packet is None:
        raise AttributeError(f"no op named {name}")
    by_name = packet.overloads.get("" if overload == "default" else overload)
    op = by_name if overload else resolve(packet, args, kwargs)[0]
    if op is None:
        raise AttributeError(f"aten::{base} has no overload named {overload}")
    return redispatch(keyset, op, in_schema_order(op, args, kwargs))


def in_schema_order(op: OpSpec, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of a call, defaults included, in the order of the op's schema; TypeError where they do not fit."""
    values = bind(op.schema, args, kwargs)
    if values is None or "out" in kwargs:
        raise TypeError(f"{op.schema.name}(): the arguments do not fit {op.schema.text}")
    in_order = []
    for argument in op.schema.arguments:
        value = values.get(argument.python_name, argument.default)
        if value is REQUIRED:
            missing(op, argument.python_name)
        in_order.append((value,) * argument.int_count if argument.is_int_list and isinstance(value, int) else value)
    return tuple(in_order)


def redispatch(keyset: int, op: OpSpec, args: tuple[Any, ...]) -> Any:
    """The same as `dispatch_with_keyset` for an op and its arguments in the order of its schema."""
    if op.composite and not op.below_autograd:
        return op.kernel(*args)
    left_out = keys_of(args) & (BACKENDS | BATCHED) & ~keyset
    if left_out:
        raise NotImplementedError(
            f"Could not run '{op.name}' with arguments from the '{key_names(left_out)}' backend: it is not in the key set"
        )
    if not keyset & PYTHON:
        return entry_globals.run_below_python(partial(redispatch, keyset | PYTHON), op, args)
    if not keyset & AUTOGRAD:
        return entry_globals.below_autograd(proceed, op, args)
    return proceed(op, args)


def proceed(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Run an op below its entry, which has begun its row already: in the next mode, or else by its kernel."""
    if threads.state.modes:
        return entry_globals.run_modes(op, args)
    try:
        return _run_kernel(op, args)
    except entry_globals.KERNEL_ERRORS as error:
        return slow_path(op, args, error)


def dims_of_tensors(op: OpSpec, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with ints in place of 0-d integer tensors where the schema has dims: `x.sum(torch.tensor(1))`."""
    are_dims = [
        a.is_int_list and isinstance(v, Tensor) and accepts(op, a, v) for a, v in zip(op.schema.arguments, args, strict=True)
    ]
    if not any(are_dims):
        return args
    return tuple((int(v._array),) if is_dim else v for v, is_dim in zip(args, are_dims, strict=True))


def _call_by_schema(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """Call an op's entry with all arguments in the order of its schema."""
    named = {a.python_name: value for a, value in zip(op.schema.arguments, args, strict=True) if a.keyword_only}
    assert op.call is not None
    return op.call(*args[: len(args) - len(named)], **named)


def slow_path(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Any:
    """What an entry does when its short path raised `error`: run the op by interpretation, or raise torch's exception.

    The short path takes every tensor argument for a tensor and leaves all checks to NumPy, so an error there means an
    operand of another kind (a number, an object with `__torch_function__`) or a call that torch refuses in other words.
    """
    if "torch_error" in error.__dict__:
        raise error
    if isinstance(error, AttributeError | RuntimeError | TypeError):
        numbers = dims_of_tensors(op, args)
        if numbers is not args:
            return _run_kernel(op, numbers)
    if isinstance(error, AttributeError | TypeError):  # of the short path, or of `_run_kernel` under a mode
        lifted = number_as_tensor(op, args, {})
        if lifted is not None:
            return _call_by_schema(op, lifted)
    if isinstance(error, AttributeError):
        check_listed(op, args)
        handled = entry_globals.call_overloaded(op, args)
        if handled is not NotImplemented:
            return handled
        if not op.composite:
            try:
                return _run_kernel(op, args)
            except entry_globals.KERNEL_ERRORS as again:
                error = again
        if isinstance(error, AttributeError):
            check_tensor_arguments(op, args)
    in_torch_words = torch_exception(op, args, error)
    if in_torch_words is error:
        raise error
    raise in_torch_words from None


def torch_exception(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Exception:
    """The exception that torch raises for a call on which a kernel failed with `error`, which may be that very one."""
    if isinstance(error, TypeError) and str(error).startswith((f"{op.schema.name}(): argument", "expected Tensor as element")):
        return error  # about an argument, and already in torch's words
    for position, (argument, value) in enumerate(zip(op.schema.arguments, args, strict=True)):
        if value is not argument.default and not accepts(op, argument, value):
            shown = value[0] if isinstance(value, tuple) and len(value) == 1 else value
            return TypeError(
                f"{op.schema.name}(): argument '{argument.python_name}' (position "
                f"{position + first_place(op, args)}) must be {type_word(argument)}, not "
                f"{type_name(shown)}"
            )
    if op.schema.mutates and not op.composite and threads.state.grad_enabled:
        # Whether a tensor may be written into at all is what torch asks first.
        try:
            entry_globals.check_in_place(args[0])
        except RuntimeError as refusal:
            return refusal
    return translate(op, args, error)


# ---------------------------------------------------------------- generated entries


def operator_slow_path(op: OpSpec, args: tuple[Any, ...], error: Exception) -> Any:
    """As `slow_path`, for a binary operator: NotImplemented in place of TypeError, so that Python asks the other operand."""
    try:
        return slow_path(op, args, error)
    except TypeError:
        other = args[1]
        if op.schema.name == "eq" and isinstance(other, np.ndarray) and other.dtype.kind in "biufc":
            return _call_by_schema(op, (args[0], make_tensor(other)))  # the only operator that takes arrays
        return NotImplemented


def _stand_in(_op: OpSpec, _id: int, _kernel: Any, _slow_path: Any) -> FunctionType:
    """A function that compiles its op's entry at the first call and becomes it.

    It closes over the same four variables as an entry, so that the entry's code can take its place.
    """

    def entry(*args: Any, **kwargs: Any) -> Any:
        return materialize(_op, _id, _kernel, _slow_path)(*args, **kwargs)

    function = FunctionType(entry.__code__, _entry_globals, _op.schema.name, None, entry.__closure__)
    function.__qualname__ = _op.schema.name  # the name in Python's own messages about arguments
    function.__signature__ = OpSignature(_op)  # type: ignore[attr-defined]
    return function


def spread(values: tuple[Any, ...], op: OpSpec, name: str) -> Any:
    """The sizes of a call that may have them in a list or one by one: `x.view((2, 8))` is `x.view(2, 8)`."""
    if not values:
        missing(op, name)
    return values[0] if isinstance(values[0], tuple | list) else values


def missing(op: OpSpec, name: str) -> None:
    """TypeError, in torch's words, for a required argument that a call leaves out."""
    raise TypeError(f'{op.schema.name}() missing 1 required positional arguments: "{name}"')


# By source: ops with the same signature and the same way of running share one compiled text.
_factories: dict[str, Any] = {}


def materialize(op: OpSpec, ident: int, kernel: Any, on_failure: Any) -> FunctionType:
    """Compile an op's entry and give its code to the stand-in, so that every reference to the function sees the entry."""
    begun = observer.clock()
    source = entry_source(op)
    factory = _factories.get(source)
    # Tracebacks and profiles name the op, and `linecache` has the text to show.
    filename = f"<{op.name}{'.' + op.schema.overload if op.schema.overload else ''}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    if factory is None:
        namespace: dict[str, Any] = {}
        exec(compiled(source, filename), _entry_globals, namespace)
        factory = _factories[source] = namespace["factory"]
    if len(op.schema.returns) > 1 and not op.composite:
        op.results = result_type_of(op)
    if op.batching in DRAWING:
        import_module("numpy.random")  # which `import numpy` leaves out, and which takes longer than most draws
    entry = factory(op, ident, kernel, on_failure)
    function = op.call if on_failure is slow_path else _operators[op]
    assert function is not None
    function.__code__ = entry.__code__.replace(co_name=op.schema.name, co_qualname=op.schema.name, co_filename=filename)
    function.__defaults__ = entry.__defaults__
    function.__kwdefaults__ = entry.__kwdefaults__
    observer.note_first_use(op.name, begun)
    return function


# The second function of an op that is an operator, too: the same entry with `operator_slow_path`.
_operators: dict[OpSpec, FunctionType] = {}


def as_operator(function: Any) -> Any:
    """A binary operator from a function of two operands: NotImplemented where the function raises TypeError."""

    def operator(self: Tensor, other: Any) -> Any:
        try:
            return function(self, other)
        except TypeError:
            return NotImplemented

    return operator


def operator_form(name: str) -> Any:
    """An op as Python's binary operators call it: NotImplemented where the function raises TypeError.

    It takes no longer than the function: the two differ in the slow path alone.
    """
    packet = registry.packets[name]
    spec = next((spec for spec in packet if spec.call is packet.function), None)
    if spec is None:
        return packet_function(packet, operator=True)
    if spec not in _operators:
        function = _operators[spec] = _stand_in(spec, spec.id, spec.kernel, operator_slow_path)
        function.__module__ = "torch"
    return _operators[spec]


def _on_register(spec: OpSpec) -> None:
    function = _stand_in(spec, spec.id, spec.kernel, slow_path)
    function.__module__ = "torch"
    observer.dispatch_code["stand_in"] = function.__code__  # one object, which all stand-ins share
    spec.call = function
    packet = spec.packet
    assert packet is not None
    packet.function = function if len(packet.overloads) == 1 else packet_function(packet)
    describe(packet)
    if "::" not in spec.schema.name:
        setattr(aten, spec.schema.name, packet.function)


def call_deprecated(*args: Any) -> Any:
    """Run a call with its arguments in a deprecated order; few programs have one, so what reads them is loaded here."""
    return import_module(".deprecated_calls", __package__).call_deprecated(*args)


registry.on_register.append(_on_register)
entry_globals.install(
    arrange=arrange,
    call_deprecated=call_deprecated,
    check_apart=check_apart,
    keys_of=keys_of,
    listed_keys=listed_keys,
    materialize=materialize,
    missing=missing,
    overlapping_input=overlapping_input,
    run_kernel=_run_kernel,
    slow_path=slow_path,
    spread=spread,
    write_result=write_result,
)
