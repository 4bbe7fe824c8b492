"""grad, vjp, jvp and Jacobians as transforms of functions, all by differentiating backwards.

Inside vmap they work on the plain tensors underneath: every input is given a dim for each running vmap first, so that
samples stay independent and one backward pass serves them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._autograd.backward import grad as _autograd_grad
from .._autograd.backward import pullback
from .._autograd.grad_mode import enable_grad, is_grad_enabled
from .._autograd.graph import require_grad
from .._autograd.graph_search import reaches_others
from .._core.keys import AUTOGRAD
from .._core.tensor import Tensor
from .._dispatch.registry import aten
from ..utils import _pytree as pytree
from ._batched import Level, batched, from_plain, levels, to_plain, value_at

Argnums = int | tuple[int, ...]


def _leaves(tree: Any, where: str) -> tuple[list[Tensor], Any]:
    leaves, spec = pytree.tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{where}: Expected to only have Tensors in the inputs or outputs to differentiate, got {type(leaf)}"
            )
    return leaves, spec


class _Trace:
    """A function applied to inputs that are to be differentiated, and the way back from its outputs."""

    def __init__(self, inputs: list[Tensor]) -> None:
        self.levels: list[Level] = list(levels())
        self.recorded = is_grad_enabled()
        plain = [to_plain(t, self.levels) for t in inputs]
        # Inputs that already have history stay tied to it, so that an outer transform can differentiate further.
        self.tied = any(t._keys & AUTOGRAD for t in plain) and self.recorded
        self.inputs = [aten.view_as(t, t) if t._keys & AUTOGRAD and self.recorded else _leaf(t) for t in plain]

    def arguments(self) -> list[Tensor]:
        return [from_plain(t, self.levels) for t in self.inputs]

    def finish(self, outputs: list[Tensor]) -> list[Tensor]:
        """Take the outputs; returns them as the caller may have them: with history only where there is one outside."""
        self.outputs = [to_plain(t, self.levels) for t in outputs]
        self.tied = self.recorded and (self.tied or reaches_others(self.outputs, self.inputs))
        return outputs if self.tied else [aten.detach(t) for t in outputs]

    def pull(self, cotangents: list[Tensor], linear: bool = False) -> list[Tensor]:
        """Gradients of the inputs for gradients of the outputs; `linear` ones are there to be differentiated."""
        extra = [level for level in levels() if level.number not in {known.number for known in self.levels}]
        for level in reversed(extra):
            if any(value_at(t, level.number) is not None for t in cotangents):
                return self._pull_each(cotangents, level)
        grads = [to_plain(t, self.levels) for t in cotangents]
        create_graph = is_grad_enabled() and (self.tied or any(t._keys & AUTOGRAD for t in grads))
        used = [(o, g) for o, g in zip(self.outputs, grads, strict=True) if o._keys & AUTOGRAD]
        pulled: Any = [None] * len(self.inputs)
        if used and linear:
            pulled = pullback([o for o, _ in used], self.inputs, [g for _, g in used])
        elif used:
            pulled = _autograd_grad(
                [o for o, _ in used],
                self.inputs,
                [g for _, g in used],
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
        return [
            from_plain(aten.zeros_like(t) if g is None else g, self.levels) for t, g in zip(self.inputs, pulled, strict=True)
        ]

    def _pull_each(self, cotangents: list[Tensor], level: Level) -> list[Tensor]:
        """Gradients of outputs that a later vmap has batched: one pass for each sample."""
        values = [value_at(t, level.number) for t in cotangents]
        rows = []
        for i in range(level.size):
            row = [t if value is None else aten.select(value, 0, i) for t, value in zip(cotangents, values, strict=True)]
            rows.append(self.pull(row))
        return [batched(aten.stack(list(column)), level.number) for column in zip(*rows, strict=True)]


def _leaf(tensor: Tensor) -> Tensor:
    leaf: Tensor = aten.detach(tensor)
    if leaf.is_floating_point() or leaf.is_complex():
        require_grad(leaf)
        return leaf
    raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")


def _select(args: tuple[Any, ...], argnums: Argnums) -> tuple[Any, list[int]]:
    """The arguments to differentiate by, and their positions."""
    wanted = (argnums,) if isinstance(argnums, int) else argnums
    if not isinstance(wanted, tuple) or not wanted:
        raise RuntimeError(f"argnums must be int or a non-empty tuple of ints, got: {argnums!r}")
    places = []
    for number in wanted:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
        places.append(number % len(args))
    return (args[places[0]] if isinstance(argnums, int) else tuple(args[i] for i in places)), places


def _replaced(args: tuple[Any, ...], places: list[int], argnums: Argnums, values: Any) -> tuple[Any, ...]:
    replaced = list(args)
    for i, value in zip(places, (values,) if isinstance(argnums, int) else values, strict=True):
        replaced[i] = value
    return tuple(replaced)


def _trace(
    func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums, has_aux: bool, where: str
) -> tuple[_Trace, Any, Any, Any, Any]:
    """Run a function: the trace, its outputs, their structure, that of the inputs, and what else it returned."""
    chosen, places = _select(args, argnums)
    leaves, spec = _leaves(chosen, where)
    trace = _Trace(leaves)
    with enable_grad():
        outputs = func(*_replaced(args, places, argnums, pytree.tree_unflatten(trace.arguments(), spec)), **kwargs)
    aux = None
    if has_aux:
        if not (isinstance(outputs, tuple) and len(outputs) == 2):
            raise RuntimeError(f"{where}: output of function f should be a tuple: (output, aux) if has_aux is True")
        outputs, aux = outputs
        if not trace.tied:
            aux = pytree.tree_map(lambda leaf: aten.detach(leaf) if isinstance(leaf, Tensor) else leaf, aux)
    out_leaves, out_spec = _leaves(outputs, where)
    return trace, trace.finish(out_leaves), out_spec, spec, aux


# ---------------------------------------------------------------- gradients


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns `(gradient, value)`, or `(gradient, (value, aux))`."""

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        where = "grad_and_value(f)(*args)"
        trace, outputs, out_spec, spec, aux = _trace(func, args, kwargs, argnums, has_aux, where)
        if not out_spec.is_leaf():
            raise RuntimeError(f"Expected f(*args) to return tensor, got type {out_spec.type}")
        output = outputs[0]
        if output._array.ndim:
            raise RuntimeError(
                "Expected f(*args) to return a scalar tensor, got tensor with "
                f"{output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        gradient = pytree.tree_unflatten(trace.pull([aten.ones_like(output.detach())]), spec)  # type: ignore[attr-defined]
        return (gradient, (output, aux)) if has_aux else (gradient, output)

    return wrapped


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of `func`, which must return a scalar; with `has_aux`, `(gradient, aux)`."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapped


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """`(output, vjp_fn)`, or with `has_aux` `(output, vjp_fn, aux)`; `vjp_fn(cotangents)` gives one per primal."""
    trace, outputs, out_spec, spec, aux = _trace(func, primals, {}, tuple(range(len(primals))), has_aux, "vjp(f, *primals)")

    def vjp_fn(*cotangents: Any, **unused: Any) -> Any:
        cotangent_leaves, cotangent_spec = pytree.tree_flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if cotangent_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {cotangent_spec}, primal output: {out_spec}"
            )
        for cotangent, output in zip(cotangent_leaves, outputs, strict=True):
            if cotangent._array.shape != output._array.shape:
                raise RuntimeError(f"Expected cotangent of shape {list(output.shape)}, got {list(cotangent.shape)}")
        return pytree.tree_unflatten(trace.pull(cotangent_leaves), spec)

    result = pytree.tree_unflatten(outputs, out_spec)
    return (result, vjp_fn, aux) if has_aux else (result, vjp_fn)


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """`(output, tangent)`: the derivative of `func` at `primals` in the direction of `tangents`."""
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals to be a tuple with at least one element, got {primals!r}"
        )
    tangent_leaves, tangent_spec = _leaves(tangents, "jvp(f, primals, tangents)")
    trace, outputs, out_spec, spec, aux = _trace(
        func, primals, {}, tuple(range(len(primals))), has_aux, "jvp(f, primals, tangents)"
    )
    if tangent_spec != spec:
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For "
            f"example, if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {tangent_spec}"
        )
    tangent_out = pytree.tree_unflatten(_push(trace, outputs, tangent_leaves, strict), out_spec)
    result = pytree.tree_unflatten(outputs, out_spec)
    return (result, tangent_out, aux) if has_aux else (result, tangent_out)


def _push(trace: _Trace, outputs: list[Tensor], tangents: list[Tensor], strict: bool) -> list[Tensor]:
    """Forward derivatives: the pullback is linear in its argument, and its own pullback is the pushforward."""
    with enable_grad():
        inner = [_leaf(aten.zeros_like(to_plain(t, trace.levels))) for t in outputs]
        pulled = [to_plain(t, trace.levels) for t in trace.pull([from_plain(t, trace.levels) for t in inner], linear=True)]
    used = [(p, to_plain(t, trace.levels)) for p, t in zip(pulled, tangents, strict=True) if p._keys & AUTOGRAD]
    pushed: Any = [None] * len(inner)
    if used:
        outer = is_grad_enabled() and (trace.tied or any(t._keys & AUTOGRAD for _, t in used))
        pushed = _autograd_grad(
            [p for p, _ in used], inner, [t for _, t in used], retain_graph=True, create_graph=outer, allow_unused=True
        )
    if strict and any(g is None for g in pushed):
        raise RuntimeError(
            "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
            "allowed with strict=True."
        )
    return [from_plain(aten.zeros_like(t) if g is None else g, trace.levels) for t, g in zip(inner, pushed, strict=True)]


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """`(output, jvp_fn)`: the value at `primals`, and the derivative there as a linear function of tangents."""
    trace, outputs, out_spec, spec, _ = _trace(func, primals, {}, tuple(range(len(primals))), False, "linearize(f, *primals)")

    def jvp_fn(*tangents: Any) -> Any:
        tangent_leaves, tangent_spec = pytree.tree_flatten(tangents)
        if tangent_spec != spec:
            raise RuntimeError(f"Expected the tangents to have the structure {spec} of the primals, got {tangent_spec}")
        return pytree.tree_unflatten(_push(trace, outputs, tangent_leaves, False), out_spec)

    return pytree.tree_unflatten(outputs, out_spec), jvp_fn


# ---------------------------------------------------------------- Jacobians


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `func`: for each output and chosen input a tensor of shape (*output shape, *input shape).

    One backward pass for each element of the outputs; `chunk_size` changes nothing.
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        trace, outputs, out_spec, spec, aux = _trace(func, args, kwargs, argnums, has_aux, "jacrev(f, ...)(*args)")
        blocks = [_rows(trace, outputs, i) for i in range(len(outputs))]
        jacobian = pytree.tree_unflatten([pytree.tree_unflatten(block, spec) for block in blocks], out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return wrapped


def _rows(trace: _Trace, outputs: list[Tensor], which: int) -> list[Tensor]:
    """The Jacobian of one output with respect to all inputs."""
    shape, count = outputs[which]._array.shape, outputs[which]._array.size
    zeros = [aten.zeros_like(t.detach()) for t in outputs]  # type: ignore[attr-defined]
    if not count:
        return [aten.new_zeros(t, (*shape, *t._array.shape)) for t in trace.arguments()]
    basis = aten.eye(count, dtype=outputs[which].dtype)
    rows = []
    for i in range(count):
        cotangents = list(zeros)
        cotangents[which] = aten.reshape(aten.select(basis, 0, i), shape)
        rows.append(trace.pull(cotangents))
    joined = [aten.stack(list(column)) for column in zip(*rows, strict=True)]
    return [aten.reshape(t, (*shape, *t._array.shape[1:])) for t in joined]


def jacfwd(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    *,
    chunk_size: int | None = None,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The Jacobian of `func`, as `jacrev` gives it; there is no forward mode that would make it cheaper."""
    return jacrev(func, argnums, has_aux=has_aux, chunk_size=chunk_size)


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """The second derivatives of `func`."""
    return jacrev(jacrev(func, argnums), argnums)
