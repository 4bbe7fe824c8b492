"""The global names of generated op entries, and the functions that the dispatcher takes from the rooms above it.

Every entry that the dispatcher compiles runs with this module's dictionary as its globals, so that one variable,
`observers_active`, is the whole cost of profiling while nothing records.

What `_core` offers is bound here. The other names are declared here with their types and filled by the module that defines
the function, through `install`: autograd, for instance, is above the dispatcher and cannot be imported by it. Until then a
name stands for a function that raises.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from time import perf_counter_ns as clock
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from numpy import asarray, ascontiguousarray, ndarray

from .._core import dtype as _dtype
from .._core import tensor as _tensor
from .._core.half_precision import large_elementwise
from .._core.layout import like_image, like_volume, turned
from .._core.single_pass import elementwise
from .._core.storage import allocation
from .._core.tensor import Tensor, make_sharing, make_view, storage_of
from .._core.threads import ThreadState, threads
from .promotion import promote
from .schema import REQUIRED

if TYPE_CHECKING:
    from types import FunctionType

    from .registry import OpSpec

    # An op and its arguments in the order of its schema: the form in which ops are passed on.
    Runner = Callable[[OpSpec, tuple[Any, ...]], Any]
    # The same with what the short path raised.
    SlowPath = Callable[[OpSpec, tuple[Any, ...], Exception], Any]

    class InPlaceRunner(Protocol):
        """A runner of in-place ops; `execute` is what does the write, the op's kernel by default."""

        def __call__(self, op: OpSpec, args: tuple[Any, ...], execute: Runner = ..., /) -> Any: ...

    class GradRequirer(Protocol):
        """Makes a leaf require grad, or stops it."""

        def __call__(self, tensor: Tensor, on: bool = True, /) -> None: ...


# What a kernel raises on arguments that it was not made for, and NumPy where memory or a number's width is not enough. The slow
# path turns these into torch's exceptions; no kernel raises one on purpose that is not torch's own.
KERNEL_ERRORS: tuple[type[Exception], ...] = (
    ArithmeticError,
    AttributeError,
    KeyError,
    MemoryError,
    NotImplementedError,
    TypeError,
    ValueError,
)

# ---------------------------------------------------------------- values that change while the program runs

# How many recordings and modes are active in the process; entries look further only when it is not zero.
observers_active: int = 0
# The state of the calling thread, or None where only `threads` knows it; `observer.expect_one_thread` sets it.
current: Callable[[], ThreadState | None] = lambda: None  # noqa: E731

# ---------------------------------------------------------------- from _core, NumPy and this room

f32 = _dtype.float32.np
new_tuple = tuple.__new__
# Inference mode installs functions that mark what they make in place of these two.
new: Callable[[type], Any] = object.__new__
make_tensor: Callable[[ndarray[Any, Any]], Tensor] = _tensor.make_tensor

# ---------------------------------------------------------------- installed by _dispatch.dispatcher

# Lays a result out as torch does for these operands: (result, operands) -> its array.
arrange: Callable[..., ndarray[Any, Any]]
keys_of: Callable[[Any], int]
listed_keys: Callable[[Any], int]
# RuntimeError where the first tensor must not be written to because of the memory that it has in common with the others.
check_apart: Callable[..., None]
# Turns the stand-in of an op into its entry: (op, op id, kernel, slow path).
materialize: Callable[[OpSpec, int, Any, SlowPath], FunctionType]
# Raises the TypeError for an argument that was left out.
missing: Callable[[OpSpec, str], None]
overlapping_input: Callable[[ndarray[Any, Any], ndarray[Any, Any]], None]
# Any arguments: subclasses, other devices, numbers in place of tensors.
run_kernel: Runner
slow_path: SlowPath
spread: Callable[[tuple[Any, ...]], Any]
write_result: Callable[[OpSpec, Tensor, ndarray[Any, Any]], None]

# ---------------------------------------------------------------- installed by _dispatch.out_arguments

# The last argument is what the call has as `out=`.
run_out: Callable[[OpSpec, tuple[Any, ...], Any], Any]

# ---------------------------------------------------------------- installed by _dispatch.interception

# NotImplemented where no argument has a `__torch_function__` that takes the call: (op, arguments by schema[, `out=`]).
call_overloaded: Callable[..., Any]
call_subclass: Runner
# Calls the function that it gets first, without modes and with plain tensors in place of subclasses'.
run_below_python: Callable[[Runner, OpSpec, tuple[Any, ...]], Any]
run_modes: Runner

# ---------------------------------------------------------------- installed by _autograd

# RuntimeError where torch forbids writing into a tensor.
check_in_place: Callable[[Tensor], None]
# Records the node of an op: (op, arguments, result).
record_node: Callable[[OpSpec, tuple[Any, ...], Any], None]
# The same for results of a subclass.
record_subclass: Callable[[OpSpec, tuple[Any, ...], Any], None]
# Makes tensors that were written the outputs of a node that raises in backward: (op, what the node follows, tensors).
record_unknown: Callable[..., None]
# A call that has its arguments in an order that torch deprecates: (op, arguments by schema, those left over, `out=`).
call_deprecated: Callable[[OpSpec, tuple[Any, ...], tuple[Any, ...], Any], Any]
# Calls a function with the arguments that follow it, with grad mode off.
below_autograd: Callable[..., Any]
require_grad: GradRequirer
# Gives a leaf that took another shape an AccumulateGrad of that shape.
refresh_accumulator: Callable[[Tensor], None]
run_in_place: InPlaceRunner
# The same as `below_autograd` for (function, arguments, keyword arguments).
without_history: Callable[[Callable[..., Any], Any, Any], Any]

# ---------------------------------------------------------------- installed by _ops and func

# Inside vmap: an op with a batched argument.
run_batched: Runner
# `where` with a number, while something records: by the ops with which torch makes a tensor of the number.
spelled: Runner


class _NotInstalled:
    """The value of a declared name whose function is not installed yet."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(f"entry_globals.{self._name} was called before a module installed it: import mindtorch_v2 first")


_SLOTS = frozenset(__annotations__) - {"observers_active", "current"}
for _name in _SLOTS - globals().keys():
    globals()[_name] = _NotInstalled(_name)


def install(**functions: Any) -> None:
    """Fill declared names: `install(run_modes=run_modes)`. AttributeError for a name that is not declared in this module."""
    unknown = sorted(functions.keys() - _SLOTS)
    if unknown:
        raise AttributeError(f"entry_globals declares no function named {', '.join(unknown)}")
    globals().update(functions)


__all__ = [
    "KERNEL_ERRORS",
    "REQUIRED",
    "Tensor",
    "allocation",
    "arrange",
    "asarray",
    "ascontiguousarray",
    "below_autograd",
    "call_deprecated",
    "call_overloaded",
    "call_subclass",
    "check_apart",
    "check_in_place",
    "clock",
    "current",
    "elementwise",
    "f32",
    "inf",
    "install",
    "keys_of",
    "large_elementwise",
    "like_image",
    "like_volume",
    "listed_keys",
    "make_sharing",
    "make_tensor",
    "make_view",
    "materialize",
    "missing",
    "ndarray",
    "new",
    "new_tuple",
    "observers_active",
    "overlapping_input",
    "promote",
    "record_node",
    "record_subclass",
    "record_unknown",
    "refresh_accumulator",
    "require_grad",
    "run_batched",
    "run_below_python",
    "run_in_place",
    "run_kernel",
    "run_modes",
    "run_out",
    "slow_path",
    "spelled",
    "spread",
    "storage_of",
    "threads",
    "turned",
    "without_history",
    "write_result",
]
