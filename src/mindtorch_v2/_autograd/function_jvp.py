"""Forward-mode AD of custom Functions: their `jvp` computes the tangents of the outputs when they are applied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._core.tensor import Tensor
from .._dispatch.registry import aten
from . import forward_ad
from .graph import FLOATING, without_history

_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view"


def tangents_of(args: Sequence[Any]) -> list[Tensor | None] | None:
    """The tangents of a Function's arguments, None if none of them has one. Asked before forward, which may change them."""
    known = [forward_ad.tangent_of(a) if isinstance(a, Tensor) else None for a in args]
    return None if all(tangent is None for tangent in known) else known


def require_jvp(args: Sequence[Any]) -> None:
    """NotImplementedError if an argument of a Function without `jvp` has a tangent."""
    if any(isinstance(each, Tensor) and forward_ad.is_dual(each) for each in args):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )


def push_tangents(function: Any, ctx: Any, args: Sequence[Any], known: Sequence[Tensor | None], outputs: Sequence[Any]) -> None:
    """Give the outputs of a Function the tangents that its `jvp` returns for those of its arguments.

    RuntimeError where those do not go with what `forward` did: a tensor changed in place, a view, an output without derivative.
    """
    tangents = [_filled(a, tangent, ctx.materialize_grads) for a, tangent in zip(args, known, strict=True)]
    versions = [0 if tangent is None else tangent._version for tangent in tangents]
    ctx._pushing = True
    try:
        returned = without_history(function.jvp, (ctx, *tangents), {})
    finally:
        ctx._pushing = False
    results = returned if isinstance(returned, tuple) else (returned,)
    if len(results) != len(outputs):
        raise RuntimeError(
            f"{function.__name__}Backward: jvp returned {len(results)} tangents for {len(outputs)} outputs of forward"
        )
    plain = {id(t) for t in ctx.non_differentiable or ()}
    dirty = {id(t) for t in ctx.dirty_tensors or ()}
    for number, (output, tangent) in enumerate(zip(outputs, results, strict=True)):
        if tangent is None:
            continue
        if not isinstance(output, Tensor) or id(output) in plain or output._array.dtype.kind not in FLOATING:
            raise RuntimeError(
                f"The jvp of {function.__name__} returned a tangent for output {number}, which is not differentiable. You "
                "should return None at that position instead."
            )
        if id(output) in dirty:
            if not any(tangent is each and each._version != version for each, version in zip(tangents, versions, strict=True)):
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is "
                    "modifying an input inplace, then the jvp function must modify the corresponding gradient inplace."
                )
        elif output._base is not None:
            _check_view(output, tangent, args, tangents)
        forward_ad.attach(output, tangent)


def _filled(argument: Any, tangent: Tensor | None, materialize: bool) -> Tensor | None:
    """The tangent of an argument: zeros for a tensor without one, None for anything that has no derivative."""
    if tangent is not None or not materialize or not isinstance(argument, Tensor):
        return tangent
    if argument._array.dtype.kind not in FLOATING:
        return None
    zeros: Tensor = aten.zeros_like(aten.detach(argument))
    return zeros


def _check_view(output: Tensor, tangent: Tensor, args: Sequence[Any], tangents: Sequence[Any]) -> None:
    """RuntimeError if the tangent of a view is no view, or one of another tangent than that of the view's base."""
    if tangent._base is None:
        raise RuntimeError(f"{_VIEW}.")
    for argument, given in zip(args, tangents, strict=True):
        if not isinstance(argument, Tensor) or given is None:
            continue
        if output._base is argument and tangent._base is not given and tangent._base is not given._base:
            raise RuntimeError(f"{_VIEW} of the given forward mode gradients for this input.")
        if argument._base is not None and output._base is argument._base:
            base = given if given._base is None else given._base
            if tangent._base is not base:
                raise RuntimeError(f"{_VIEW} of the same base as the given forward mode gradients for this input.")
