"""The one way to change state for a while: what was changed is restored whatever arrives when, an interrupt included.

A signal handler may raise at any function's entry, at any jump backwards and after any call of a function that is not written
in Python (see `cpython.without_signals_at_entry`). State is safe all the same if these rules are kept:

- `__enter__` computes everything first; the change is its last step, without a call behind it.
- `__exit__` is `@without_signals_at_entry` and restores by plain stores, or by a single call of a function that is not written
  in Python, which has done its work when the signal is looked at.
- `try`/`finally` begins before the change, or right behind it, without a call in between.
- What takes several calls is a list of actions, noted before the change that each undoes: `carry_out` carries them all out.

A `contextlib.contextmanager` cannot keep them: an interrupt at the entry of its `__exit__` leaves out the generator's
`finally`. `restoring` stands in its place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from .cpython import without_signals_at_entry

P = ParamSpec("P")
T = TypeVar("T")

# Calls without arguments, last one first. Each may be carried out twice, and also if what it undoes was never done.
Actions = list[Callable[[], Any]]

# How often an action may raise before it counts as one that cannot be carried out. An interrupt raises as well.
_TRIES = 8


@without_signals_at_entry
def carry_out(actions: Actions, failed: Any = None, tries: int = _TRIES) -> None:
    """Carry out all actions, last one first, and remove them; what was raised meanwhile is raised afterwards.

    An action that an interrupt ended is begun again, and the interrupt is raised when all are done. Until then nothing but the
    actions themselves is interrupted: on the way from one try to the next there is no place where signals are handled.
    """
    try:
        while actions:
            actions[-1]()
            del actions[-1]
    except BaseException:
        if actions:
            if actions[-1] is not failed:
                failed, tries = actions[-1], _TRIES
            tries -= 1
            if not tries:
                del actions[-1]
            carry_out(actions, failed, tries)
        raise


def enter(undo: Actions, context: Any) -> Any:
    """Enter a context manager that keeps these rules, and note that it is to be left."""
    inside = False

    @without_signals_at_entry
    def leave() -> None:
        nonlocal inside
        if inside:
            inside = False
            context.__exit__(None, None, None)

    value = context.__enter__()
    inside = True
    undo += (leave,)
    return value


class RestoringScope(Generic[T]):
    """A block at whose beginning a function changes state, and at whose end the actions that it noted are carried out.

    As a decorator, it holds for each call of a function.
    """

    __slots__ = ("_args", "_function", "_kwargs", "_open")

    def __init__(self, function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        # The actions of the blocks that are open, innermost first: (actions, those around).
        self._open: Any = ()

    def __enter__(self) -> T:
        actions: Actions = []
        try:
            value = self._function(actions, *self._args, **self._kwargs)
        except BaseException:
            carry_out(actions)
            raise
        self._open = (actions, self._open)
        return value

    @without_signals_at_entry
    def __exit__(self, *exc: Any) -> None:
        actions, self._open = self._open
        carry_out(actions)

    def __call__(self, function: Callable[P, Any]) -> Callable[P, Any]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            with RestoringScope(self._function, self._args, self._kwargs):
                return function(*args, **kwargs)

        return call


def restoring(function: Callable[Concatenate[Actions, P], T]) -> Callable[P, RestoringScope[T]]:
    """Make a context manager of a function that changes state. Before each change it adds to its first argument what undoes it.

    @restoring
    def limit(undo: Actions, most: int) -> None:
        undo.append(partial(set_limit, get_limit()))
        set_limit(most)
    """

    @functools.wraps(function)
    def scope(*args: P.args, **kwargs: P.kwargs) -> RestoringScope[T]:
        signature.bind(*args, **kwargs)  # a wrong call fails here, as that of any function, not when the block is entered
        return RestoringScope(function, args, kwargs)

    whole = inspect.signature(function)
    signature = whole.replace(
        parameters=list(whole.parameters.values())[1:],
        return_annotation=f"AbstractContextManager[{whole.return_annotation}]",
    )
    scope.__signature__ = signature  # type: ignore[attr-defined]
    return scope
