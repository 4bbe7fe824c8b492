"""torch.utils.flop_counter: how many floating point operations the matrix products and convolutions of a program take."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import wraps
from math import prod
from typing import Any

from .._core.cpython import without_signals_at_entry
from .._core.keys import BATCHED
from .._core.restoring import Actions, carry_out, enter
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import entry_globals
from .._dispatch.dispatcher import keys_of
from .._dispatch.interception import Mode, call_arguments, proceed, run_composed
from .._dispatch.overload_api import OpOverloadPacket, ops, overload_of
from .._dispatch.registry import OpSpec
from ..nn.modules.module import Module
from ._pytree import tree_map, tree_map_
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

Formula = Callable[..., Any]
Shape = Sequence[int]

aten = ops.aten

# What is counted: `torch.ops` packets, with formulas that are called with an op's arguments and `out_val`, its result.
flop_registry: dict[Any, Formula] = {}


def get_shape(i: Any) -> Any:
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, Tensor) else i


def shape_wrapper(f: Formula) -> Formula:
    """A formula of shapes as one of tensors (or shapes): `out_val`, an op's result, reaches it as `out_shape`."""

    @wraps(f)
    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> Any:
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Count an op (or each of several) by the decorated formula.

    It is called with the shapes of the op's tensors in their place and with `out_shape`; with `get_raw`, with the tensors
    themselves and with `out_val`.
    """

    def decorate(formula: Formula) -> Formula:
        formula = formula if get_raw else shape_wrapper(formula)

        def register(target: Any) -> None:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    "register_flop_formula(targets): expected each target to be OpOverloadPacket "
                    "(i.e. torch.ops.mylib.foo), JitFunction, or HigherOrderOperator, "
                    f"got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula

        tree_map_(register, targets)
        return formula

    return decorate


# ---------------------------------------------------------------- formulas: a multiplication and an addition count one each


@register_flop_formula(aten.mm)
def mm_flop(a_shape: Shape, b_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """FLOPs of a product of matrices."""
    rows, inner = a_shape
    inner_of_b, columns = b_shape
    if inner != inner_of_b:
        raise AssertionError(f"matmul: inner dimensions must match (k == k2), got {inner} and {inner_of_b}")
    return 2 * rows * inner * columns


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """FLOPs of addmm: those of the product."""
    return int(mm_flop(a_shape, b_shape))


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """FLOPs of a batch of products of matrices."""
    batch, rows, inner = a_shape
    batch_of_b, inner_of_b, columns = b_shape
    if batch != batch_of_b:
        raise AssertionError(f"bmm: batch dimensions must match (b == b2), got {batch} and {batch_of_b}")
    if inner != inner_of_b:
        raise AssertionError(f"bmm: inner dimensions must match (k == k2), got {inner} and {inner_of_b}")
    return 2 * batch * rows * inner * columns


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape: Shape, a_shape: Shape, b_shape: Shape, out_shape: Any = None, **kwargs: Any) -> int:
    """FLOPs of baddbmm: those of the products."""
    return int(bmm_flop(a_shape, b_shape))


def conv_flop_count(x_shape: Shape, w_shape: Shape, out_shape: Shape, transposed: bool = False) -> int:
    """FLOPs of a convolution without its bias, padding counted like data.

    The whole kernel is used once per place of the output, or of the input if the convolution is transposed.
    """
    places = (x_shape if transposed else out_shape)[2:]
    return 2 * x_shape[0] * prod(places) * prod(w_shape)


@register_flop_formula([aten.convolution, aten._convolution])
def conv_flop(
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """FLOPs of a convolution."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def _channels_first(shape: Shape) -> list[int]:
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(aten.convolution_backward)
def conv_backward_flop(
    grad_out_shape: Shape,
    x_shape: Shape,
    w_shape: Shape,
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    output_mask: Sequence[bool],
    out_shape: Any,
    **kwargs: Any,
) -> int:
    """FLOPs of the gradients of a convolution that are asked for: each is a convolution itself.

    That of the input is the opposite kind of convolution of the gradient with the weight. That of the weight convolves
    input with gradient (the other way round if transposed), channels in the place of samples.
    """
    flops = 0
    if output_mask[0]:
        flops += conv_flop_count(grad_out_shape, w_shape, get_shape(out_shape[0]), not transposed)
    if output_mask[1]:
        data, kernel = (grad_out_shape, x_shape) if transposed else (x_shape, grad_out_shape)
        data, kernel, result = map(_channels_first, (data, kernel, get_shape(out_shape[1])))
        flops += conv_flop_count(data, kernel, result)
    return flops


def _check_heads(function: str, of_query: int, of_key: int) -> None:
    if of_query < of_key or of_query % of_key:
        raise AssertionError(f"{function}: query heads ({of_query}) must be a multiple of key/value heads ({of_key})")


def sdpa_flop_count(query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """FLOPs of attention: scores, and their product with the values. Heads of key and value may serve several of query."""
    batch, heads, length, size = query_shape
    _, key_heads, key_length, _ = key_shape
    if tuple(key_shape) != (batch, key_heads, key_length, size) or tuple(value_shape[:3]) != (batch, key_heads, key_length):
        raise AssertionError(
            f"sdpa_flop_count: query/key/value shapes are incompatible: q={query_shape}, k={key_shape}, v={value_shape}"
        )
    _check_heads("sdpa_flop_count", heads, key_heads)
    return 2 * batch * heads * length * key_length * (size + value_shape[3])


# Torch counts fused attention by the two formulas below on devices that are not here, and not at all on the CPU:
# there is no op to register them for.


@shape_wrapper
def sdpa_flop(
    query_shape: Shape, key_shape: Shape, value_shape: Shape, *args: Any, out_shape: Any = None, **kwargs: Any
) -> int:
    """FLOPs of attention, causal or not."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def sdpa_backward_flop_count(grad_out_shape: Shape, query_shape: Shape, key_shape: Shape, value_shape: Shape) -> int:
    """FLOPs of the backward of attention: the scores once more, and the gradients of scores, value, query and key."""
    batch, heads, length, size = query_shape
    key_batch, key_heads, key_length, key_size = key_shape
    value_batch, value_heads, value_length, value_size = value_shape
    grad_batch, grad_heads, grad_length, grad_size = grad_out_shape
    if not (batch == key_batch == value_batch == grad_batch and key_heads == value_heads and heads == grad_heads):
        raise AssertionError("sdpa_backward_flop_count: batch/heads mismatch among tensors")
    _check_heads("sdpa_backward_flop_count", heads, key_heads)
    if (size, value_size, key_length, length) != (key_size, grad_size, value_length, grad_length):
        raise AssertionError("sdpa_backward_flop_count: grad_out/value/key/query shapes are incompatible")
    return 2 * batch * heads * length * key_length * (3 * size + 2 * value_size)


@shape_wrapper
def sdpa_backward_flop(
    grad_out_shape: Shape,
    query_shape: Shape,
    key_shape: Shape,
    value_shape: Shape,
    *args: Any,
    out_shape: Any = None,
    **kwargs: Any,
) -> int:
    """FLOPs of the backward of attention."""
    return sdpa_backward_flop_count(grad_out_shape, query_shape, key_shape, value_shape)


# ---------------------------------------------------------------- text

suffixes = ["", "K", "M", "B", "T"]
_HEADER = ("Module", "FLOP", "% Total")


def normalize_tuple(x: Any) -> tuple[Any, ...]:
    """A value that is no tuple as a tuple of one."""
    return x if isinstance(x, tuple) else (x,)


def get_suffix_str(number: Any) -> str:
    """The unit to show a number in: a larger one only from five digits on, so that 1010 is not 1.01K."""
    steps = (len(str(number)) - 2) // 3
    return suffixes[max(0, min(steps, len(suffixes) - 1))]


def convert_num_with_suffix(number: Any, suffix: str) -> str:
    """A number in a unit, three decimals."""
    return f"{number / 1000 ** suffixes.index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: Any, denom: Any) -> str:
    """A part of a total in percent."""
    return f"{num / denom:.2%}" if denom else "0%"


def _lay_out(rows: list[list[str]], unit: str) -> str:
    """Rows under their header: the first column to the left, the others to the right."""
    if not unit:  # plain numbers are shown without decimals that say nothing
        rows = [[name, f"{float(flops):g}", percent] for name, flops, percent in rows]
    widths = [max(len(title) + 2, *(len(row[i]) for row in rows)) for i, title in enumerate(_HEADER)]
    lines = [_HEADER, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join((name.ljust(widths[0]), flops.rjust(widths[1]), percent.rjust(widths[2]))) for name, flops, percent in lines
    )


# ---------------------------------------------------------------- the counter


class FlopCounterMode:
    """Counts the FLOPs of what runs inside `with FlopCounterMode() as counter:`, by module and op.

    Counted are the ops of `flop_registry` and of `custom_mapping`, a dict of packets and formulas of shapes (a formula
    with a true attribute `_get_raw` is given tensors). With `display` the table is printed at the end, down to modules
    at `depth`. Entering it again starts anew.
    """

    def __init__(
        self,
        mods: Module | list[Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        if mods is not None:
            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.flop_counts: dict[str, dict[Any, Any]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        self.mode: _Counting | None = None
        self._undo: Actions = []
        own = {
            packet: formula if getattr(formula, "_get_raw", False) else shape_wrapper(formula)
            for packet, formula in (custom_mapping or {}).items()
        }
        self.flop_registry = {**flop_registry, **own}
        self.mod_tracker = ModuleTracker()

    def get_total_flops(self) -> int:
        """All FLOPs that were counted."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """FLOPs by module, "Global" for all, and by op, a packet such as `torch.ops.aten.mm`."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as text: modules by name, down to `depth`, each with its ops."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        unit = get_suffix_str(total)

        def rows_of(module: str, indent: int) -> list[list[str]]:
            counts = self.flop_counts[module]
            shown = [(module, sum(counts.values())), *((f" - {packet}", flops) for packet, flops in counts.items())]
            return [
                [" " * indent + name, convert_num_with_suffix(flops, unit), convert_to_percent_str(flops, total)]
                for name, flops in shown
            ]

        modules = [name for name in sorted(self.flop_counts) if name != "Global" and (depth is None or name.count(".") < depth)]
        rows = [row for name in modules for row in rows_of(name, name.count("."))]
        # If a module did everything, its row says what that of "Global" would.
        if not any(sum(self.flop_counts[name].values()) >= total for name in modules):
            rows = rows_of("Global", 0) + [[" " + name, flops, percent] for name, flops, percent in rows]
        return _lay_out(rows, unit)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        undo: Actions = []
        try:
            enter(undo, self.mod_tracker)
            mode = _Counting(self)
            enter(undo, mode)
        except BaseException:
            carry_out(undo)
            raise
        self.mode, self._undo = mode, undo
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        if self.mode is None:
            raise AssertionError("Internal error: FlopCounter.__exit__ called but mode is None")
        self.mode = None
        carry_out(self._undo)
        if self.display:
            print(self.get_table(self.depth))


class _Counting(Mode):
    """Lets every op run as it would and counts those that have a formula.

    Composites count by the ops they are made of, whatever formula there is for themselves; but what is inside an op of
    `torch.library` is its own business.
    """

    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        if keys_of(args) & BATCHED:
            return self._run_batched(op, args)
        composed = op.composite and not op.below_autograd and op.name.startswith("aten::")
        result = run_composed(self, op, args) if composed else proceed(op, args)
        if composed:
            return result
        packet = overload_of(op).overloadpacket
        formula = self.counter.flop_registry.get(packet)
        if formula is not None:
            positional, keywords = call_arguments(op, args)
            flops = formula(*positional, **keywords, out_val=result)
            for module in self.counter.mod_tracker.parents:
                self.counter.flop_counts[module][packet] += flops
        return result

    def _run_batched(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        """An op inside vmap: counted is what it becomes for all samples at once, after the other modes had their say."""
        modes = threads.state.modes
        others = any(not isinstance(mode, _Counting) for mode in modes)
        place = 0 if others else len(modes)
        modes[place:place] = (self,)
        try:
            return proceed(op, args) if others else entry_globals.run_kernel(op, args)
        finally:
            modes.remove(self)
