"""How ops run on batched tensors: as one op over all samples where there is a rule, else sample by sample."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .._core.rng import default_generator
from .._core.shape_only import CannotBatch
from .._core.tensor import Tensor
from .._core.threads import threads
from .._dispatch import entry_globals, interception
from .._dispatch.facts import DRAWING, Batching
from .._dispatch.registry import OpSpec, aten, packets
from ._batched import BatchedTensor, Level, batched, data_dependent, find_level, level_of, samples, spread, value_at

Rule = Callable[[OpSpec, list[Any], Level], Any]
# By the kind in the op's declaration; where a rule returns NotImplemented, the op runs sample by sample.
_RULES: dict[Batching, Rule] = {}


def rule(*kinds: Batching) -> Callable[[Rule], Rule]:
    """Register a rule for all ops that are declared with one of these kinds."""

    def register(function: Rule) -> Rule:
        _RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


def rule_of(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule that is an op's own."""

    def register(function: Rule) -> Rule:
        for name in names:
            for spec in packets[name]:
                spec.batching_rule = function
        return function

    return register


def call(op: OpSpec, args: Any) -> Any:
    """Run an op on arguments in schema order."""
    positional, keywords = interception.call_arguments(op, tuple(args))
    return op(*positional, **keywords)


def run_batched(op: OpSpec, args: tuple[Any, ...]) -> Any:
    """An op of which at least one argument is batched."""
    level = find_level(level_of(args))
    if op.schema.mutates:
        _check_written(op, args, level)
    if op.batching in DRAWING:
        return _run_random(op, list(args), level)
    batched_form = _rule_for(op)
    if batched_form is not None:
        result = batched_form(op, list(args), level)
        if result is not NotImplemented:
            return args[0] if op.schema.mutates else _wrapped(result, level.number)
    if op.composite and not op.below_autograd:
        if op.schema.mutates:
            return op.kernel(*args)
        try:
            return op.kernel(*args)
        except CannotBatch:  # it reads elements, or writes samples into something that has none
            pass
    return by_sample(op, list(args), level)


def _wrapped(result: Any, number: int) -> Any:
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[_wrapped(item, number) for item in result])
    if isinstance(result, list | tuple):
        return type(result)(_wrapped(item, number) for item in result)
    return batched(result, number)


def _check_written(op: OpSpec, args: tuple[Any, ...], level: Level) -> None:
    for argument, value in zip(op.schema.arguments, args, strict=True):
        if "!" in argument.type_text or argument is op.schema.arguments[0]:
            written = value if type(value) in (list, tuple) else [value]
            if any(isinstance(t, Tensor) and value_at(t, level.number) is None for t in written):
                raise CannotBatch(
                    f"vmap: {op.name}(self, *extra_args) is not possible because there exists a Tensor in "
                    "extra_args that has more elements than `self`. This happened due to a tensor being vmapped "
                    "over in extra_args and not in `self`. Please try to use out-of-place operators instead."
                )
            return


def by_sample(op: OpSpec, args: list[Any], level: Level) -> Any:
    """The op once for each sample; the results are stacked."""
    returned = op.schema.returns
    if returned and not returned[0].startswith("Tensor"):
        data_dependent(op.schema.name)
    if not level.size:
        raise NotImplementedError(f"vmap: {op.name} over a dimension of size 0")
    results = [call(op, each) for each in samples(args, level)]
    if op.schema.mutates or not returned:
        return args[0] if returned else None
    return _stacked(results, level.number)


def _stacked(results: list[Any], number: int) -> Any:
    first = results[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*[_stacked(list(column), number) for column in zip(*results, strict=True)])
    if isinstance(first, list | tuple):
        return type(first)(_stacked(list(column), number) for column in zip(*results, strict=True))
    if any(r._array.shape != first._array.shape for r in results):
        raise RuntimeError("vmap: the samples' results have different shapes, which depend on their data")
    return batched(aten.stack(results), number)


# ---------------------------------------------------------------- random numbers


class Randomness(interception.Mode):
    """The dispatch mode of a running vmap, which runs random ops as its `randomness` demands."""

    def __init__(self, level: Level) -> None:
        self.level = level

    def run(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        level = self.level
        if op.batching in DRAWING and level_of(args) < level.number:
            if level.randomness == "error":
                refuse_random()
            if level.randomness == "different":
                return _wrapped(self._drawn(op, args), level.number)
        if not op.composite or op.below_autograd:
            return interception.proceed(op, args)
        if level_of(args) < 0:
            return interception.run_composed(self, op, args)
        modes = threads.state.modes
        modes += (self,)
        try:
            return run_batched(op, args)
        finally:
            modes.remove(self)

    def _drawn(self, op: OpSpec, args: tuple[Any, ...]) -> Any:
        """Numbers of their own for each sample, from an op that sees nothing batched."""
        if op.schema.mutates:
            raise RuntimeError(
                f"vmap: cannot call {op.name} with randomness='different' on a tensor that is not batched; "
                "use an out-of-place random operation"
            )
        size = next((i for i, a in enumerate(op.schema.arguments) if a.name == "size"), None)
        if size is not None:
            sizes = args[size] if isinstance(args[size], list | tuple) else (args[size],)
            return interception.proceed(op, (*args[:size], (self.level.size, *sizes), *args[size + 1 :]))
        draws = [interception.proceed(op, args) for _ in range(self.level.size)]
        if isinstance(draws[0], tuple):
            return tuple(aten.stack(list(column)) for column in zip(*draws, strict=True))
        return aten.stack(draws)


class RandomOperation(RuntimeError):
    """A random op under `vmap(randomness="error")`."""


def refuse_random() -> None:
    """Raise for a random op where randomness is an error."""
    raise RandomOperation(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or "
        "'different' randomness flags on vmap or perform the randomness operation out of vmap"
    )


def _run_random(op: OpSpec, args: list[Any], level: Level) -> Any:
    if level.randomness == "error":
        refuse_random()
    if level.randomness == "different":
        if op.batching is Batching.RANDOM:
            result = pointwise(op, args, level)
            if result is not NotImplemented:
                return args[0] if op.schema.mutates else _wrapped(result, level.number)
        return by_sample(op, args, level)
    state = default_generator.get_state()
    results = []
    for each in samples(args, level):
        default_generator.set_state(state)
        results.append(call(op, each))
    return args[0] if op.schema.mutates else _stacked(results, level.number)


# ---------------------------------------------------------------- element by element


def _rule_for(op: OpSpec) -> Rule | None:
    """The rule that an op runs by, None if there is none."""
    if op.batching_rule is not None:
        return op.batching_rule
    elementwise = op.batching is Batching.POINTWISE or (op.batching is None and op.promote is not None)
    if not elementwise:
        return None if op.batching is None else _RULES.get(op.batching)
    return None if op.composite and not op.below_autograd else pointwise


def pointwise(op: OpSpec, args: list[Any], level: Level) -> Any:
    """Align the samples' dims to the right, and let the op broadcast."""
    if any(type(a) in (list, tuple) and level_of(a) >= 0 for a in args):
        return NotImplemented
    tensors = [a for a in args if isinstance(a, Tensor)]
    ndim = max(t._array.ndim for t in tensors)
    promotes = len({t._array.dtype for t in tensors}) > 1 and op.promote is not None and ndim
    # A 0-d sample takes part in promotion as a number does, which its batch would not.
    if promotes and any(value_at(t, level.number) is not None and not t._array.ndim for t in tensors):
        return NotImplemented
    if op.schema.name.startswith(("fill", "masked_fill")) and isinstance(args[-1], BatchedTensor):
        return NotImplemented
    return call(op, [_aligned(a, ndim, level, op.promote is None) for a in args])


def _aligned(value: Any, ndim: int, level: Level, same_shape: bool) -> Any:
    """A tensor's samples with as many dims as the others'; kernels that do not promote may want equal shapes."""
    batch = value_at(value, level.number)
    if batch is None:
        wide = same_shape and isinstance(value, Tensor) and value._array.ndim == ndim
        return spread(value, level.size) if wide else value
    shape = batch._array.shape
    missing = ndim + 1 - len(shape)
    return batch if missing <= 0 else aten.reshape(batch, (shape[0], *(1,) * missing, *shape[1:]))


entry_globals.install(run_batched=run_batched)
