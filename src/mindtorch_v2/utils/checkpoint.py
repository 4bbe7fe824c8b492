"""torch.utils.checkpoint: saving memory by computing the inside of a function again during backward."""

from __future__ import annotations

import contextlib
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from .._autograd.backward import backward
from .._autograd.function import Function
from .._autograd.grad_mode import enable_grad, no_grad
from .._autograd.nodes.saved_hooks import saved_tensors_hooks
from .._autograd.running import running
from .._core.cpython import without_signals_at_entry
from .._core.restoring import Actions, RestoringScope, restoring
from .._core.tensor import Tensor
from .._core.threads import threads
from .._ops.random.uniform_normal import get_rng_state, set_rng_state
from ._checkpoint_log import OpLog, difference
from ._selective_checkpoint import (
    SAC_IGNORED_OPS,
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

Contexts = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]

_EXPLICIT = (
    "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling "
    "checkpoint without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to "
    "preserve the current default behavior, you can pass use_reentrant=True. Refer to docs for more details on the "
    "differences between the two variants."
)


class CheckpointError(RuntimeError):
    """Raised where the second computation does not save what the first one saved."""


class GraphExecGroup:
    """Backward passes inside of one `with GraphExecGroup():` compute a region of `checkpoint(use_reentrant=False)` again once,
    all together. Each must need other tensors of it. Groups are not nested.
    """

    _of_thread = threading.local()

    def __enter__(self) -> GraphExecGroup:
        group = self._get_current_group()
        if group is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {group}")
        self._of_thread.group = self
        return self

    @without_signals_at_entry
    def __exit__(self, *failure: object) -> None:
        self._of_thread.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return getattr(cls._of_thread, "group", None)


class _Settings:
    early_stop = True
    debug: bool | None = None


_settings = _Settings()


@restoring
def set_checkpoint_early_stop(undo: Actions, enable: bool) -> None:
    """Inside, whether recomputation ends as soon as everything that backward needs is there; overrides the argument."""
    undo.append(partial(setattr, _settings, "early_stop", _settings.early_stop))
    _settings.early_stop = enable


@restoring
def set_checkpoint_debug_enabled(undo: Actions, enabled: bool | None) -> None:
    """Inside, whether errors list the ops of both computations; overrides the argument."""
    undo.append(partial(setattr, _settings, "debug", _settings.debug))
    _settings.debug = enabled


def noop_context_fn() -> Contexts:
    """The default `context_fn`: nothing around either computation."""
    return nullcontext(), nullcontext()


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among some arguments as leaves of their own that require grad if those did."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type:  {type(inputs).__name__}")
    return tuple(value.detach().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value for value in inputs)


def check_backward_validity(inputs: Sequence[Any]) -> None:
    """Warn if nothing that goes in requires grad."""
    if not any(value.requires_grad for value in inputs if isinstance(value, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=3)


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """The indices and generators' states of the accelerators that tensors among the arguments are on; empty for the CPU's."""
    if any(isinstance(each, Tensor) and each.device.type not in ("cpu", "meta") for each in args):
        raise NotImplementedError("torch.utils.checkpoint.get_device_states: the generators of NPUs cannot be read")
    return [], []


def set_device_states(devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None) -> None:
    """Set the generators of accelerators to states that `get_device_states` gave."""
    if len(devices) or len(states):
        raise NotImplementedError("torch.utils.checkpoint.set_device_states: the generators of NPUs cannot be set")


class _Surroundings:
    """What a computation depends on besides its arguments: random numbers and autocast."""

    def __init__(self, preserve_rng_state: bool) -> None:
        self.rng = get_rng_state() if preserve_rng_state else None
        self.autocast = _autocast_settings()

    def again(self) -> RestoringScope[None]:
        """A block in which they are what they were."""
        return _in_surroundings(self.autocast, self.rng)


def _autocast_settings() -> Any:
    """What autocast does on this thread: which devices, which dtypes, and whether casts are kept; None if it was never used."""
    casting = threads.state.autocast
    return None if casting is None else (dict(casting.enabled), dict(casting.dtypes), casting.cache_enabled)


def _set_autocast(settings: Any) -> None:
    casting = threads.state.autocast
    if casting is not None:
        casting.enabled, casting.dtypes, casting.cache_enabled = ({}, casting.dtypes, True) if settings is None else settings
        casting.follow()


@restoring
def _in_surroundings(undo: Actions, autocast: Any, rng: Tensor | None) -> None:
    undo.append(partial(_set_autocast, _autocast_settings()))
    _set_autocast(autocast)
    if rng is not None:
        undo.append(partial(set_rng_state, get_rng_state()))
        set_rng_state(rng)


class CheckpointFunction(Function):
    """The reentrant form: forward without history; backward computes again and runs a backward pass of its own."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run the function without history and keep its arguments."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.surroundings = _Surroundings(preserve_rng_state)
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        ctx.arguments = [None if isinstance(a, Tensor) else a for a in args]
        ctx.places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *args: Any) -> Any:
        """Run the function again with history, and backward through it."""
        if running.tasks[-1].targets is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or "
                "passing an `inputs` parameter to .backward(). To resolve this error, you can either "
                "set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.arguments)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            inputs[place] = tensor
        detached = detach_variable(tuple(inputs))
        with ctx.surroundings.again(), enable_grad():
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        roots = [(o, g) for o, g in zip(outputs, args, strict=True) if isinstance(o, Tensor) and o.requires_grad]
        if not roots:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([output for output, _ in roots], [grad for _, grad in roots])
        return (
            None,
            None,
            *[value.grad if isinstance(value, Tensor) else None for value in detached],
        )


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], Contexts] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """`function(*args)`, whose inside is not kept for backward but computed again there.

    With `use_reentrant=False` (recommended) the function may take keyword arguments and works with autograd.grad.
    `preserve_rng_state=False` spares putting the random number generator back.
    """
    if use_reentrant is None:
        warnings.warn(_EXPLICIT, stacklevel=2)
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    debug = debug if _settings.debug is None else _settings.debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    logs = (OpLog(), OpLog()) if debug else None
    return _without_reentrancy(
        function,
        preserve,
        context_fn if logs is None else lambda: logs,
        _Frame(_CHECKS[determinism_check], early_stop and _settings.early_stop, logs),
        args,
        kwargs,
    )


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
    """A sequence of functions in `segments` checkpointed parts; the last part runs as it is."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In version 2.9 we will raise an exception if use_reentrant is not passed. "
            "use_reentrant=False is recommended, but if you need to preserve the current default behavior, "
            "you can pass use_reentrant=True. Refer to docs for more details on the differences between the "
            "two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    stages = list(functions.children()) if hasattr(functions, "children") else list(functions)

    def part(first: int, last: int) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for stage in stages[first:last]:
                value = stage(value)
            return value

        return run

    size = len(stages) // segments
    for first in range(0, size * (segments - 1), size) if size else ():
        input = checkpoint(part(first, first + size), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return part(size * (segments - 1), len(stages))(input)


# ---------------------------------------------------------------- without a second backward pass


def _metadata(tensor: Tensor) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


def _no_metadata(tensor: Tensor) -> None:
    return None


_CHECKS: dict[str, Callable[[Tensor], Any]] = {"default": _metadata, "none": _no_metadata}


class _Holder:
    """Stands in the graph for a tensor that was not kept."""

    __slots__ = ("__weakref__",)


class _Enough(Exception):
    """Everything that backward needs has been computed again."""


class _Frame:
    """One checkpointed call: what it saved, as placeholders, and what each backward pass computed again."""

    # Computes again.
    recompute: Callable[[], Any]

    def __init__(self, describe: Callable[[Tensor], Any], early_stop: bool, logs: tuple[OpLog, OpLog] | None) -> None:
        self.describe = describe
        self.early_stop = early_stop
        # The ops of the two computations, where these are written down.
        self.logs = logs
        self.holders: list[weakref.ref[_Holder]] = []
        self.described: list[Any] = []
        # By pass, or group of them: what was computed again. It goes with the placeholders.
        self.recomputed: dict[int | GraphExecGroup, weakref.WeakKeyDictionary[_Holder, Tensor]] = {}
        # Whether the first computation has ended. It may take gradients of its own before that.
        self.complete = False

    def pack(self, tensor: Tensor) -> _Holder:
        holder = _Holder()
        self.holders.append(weakref.ref(holder))
        self.described.append(self.describe(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Tensor:
        task = GraphExecGroup._get_current_group() or (running.tasks[-1].id if running.tasks else -1)
        if task == -1 or task not in self.recomputed:
            try:
                self._recompute(task)
            except CheckpointError as error:
                if self.logs is None:
                    raise
                raise CheckpointError(difference(*self.logs)) from error
        tensors = self.recomputed[task]
        if holder not in tensors:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already "
                "unpacked once. If you are calling ctx.saved_tensors in backward, make sure to do so "
                "only once. Otherwise please open an issue with details on your use case."
            )
        tensor = tensors.pop(holder)
        if task == -1:
            del self.recomputed[task]
        return tensor

    def _recompute(self, task: int | GraphExecGroup) -> None:
        tensors: weakref.WeakKeyDictionary[_Holder, Tensor] = weakref.WeakKeyDictionary()
        described: list[Any] = []

        def pack(tensor: Tensor) -> Tensor:
            index = len(described)
            described.append(self.describe(tensor))
            if index >= len(self.holders) and not self.complete:
                return tensor.detach()  # the whole function runs again for a gradient that it takes itself
            if index >= len(self.holders):
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than "
                    f"during the original forward pass.{_TIP}"
                )
            kept: Tensor = tensor.detach() if tensor.requires_grad else tensor
            holder = self.holders[index]()
            if holder is not None:
                tensors[holder] = kept
            if self.early_stop and len(described) == len(self.holders):
                raise _Enough
            return kept

        self.recomputed[task] = tensors
        with saved_tensors_hooks(pack, lambda tensor: tensor), contextlib.suppress(_Enough):
            self.recompute()
        self._compare(described)

    def _compare(self, described: list[Any]) -> None:
        if not self.complete:
            described = described[: len(self.described)]
        if len(described) != len(self.described):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.described)}\nNumber of tensors "
                f"saved during recomputation: {len(described)}.{_TIP}"
            )
        differing = [
            f"tensor at position {i}:\nsaved metadata: {a}\nrecomputed metadata: {b}\n"
            for i, (a, b) in enumerate(zip(self.described, described, strict=True))
            if a != b
        ]
        if differing:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different "
                "metadata than during the forward pass.\n" + "".join(differing) + _TIP
            )


_TIP = (
    "\n\nTip: the function has to do the same when it is called again: look for random numbers outside of torch, "
    "state that changes, and branches on either."
)


def _without_reentrancy(
    function: Callable[..., Any],
    preserve: bool,
    context_fn: Callable[[], Contexts],
    frame: _Frame,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    if not threads.state.grad_enabled:
        with context_fn()[0]:
            return function(*args, **kwargs)
    around, around_again = context_fn()
    surroundings = _Surroundings(preserve)

    def recompute() -> None:
        with surroundings.again(), enable_grad(), around_again:
            function(*args, **kwargs)

    frame.recompute = recompute
    with saved_tensors_hooks(frame.pack, frame.unpack), around:
        result = function(*args, **kwargs)
    frame.complete = True
    return result
