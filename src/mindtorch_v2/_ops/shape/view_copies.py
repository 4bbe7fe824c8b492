"""The `*_copy` family: what a view shows, in memory of its own (permute_copy, split_copy, view_copy ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._autograd.derivative import node_name
from ..._core.memory_format import contiguous_format
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching
from ..._dispatch.registry import OpSpec, aten, composite
from ..creation.copy import clone, detach
from .view import (
    alias,
    expand,
    permute,
    reshape_alias,
    squeeze,
    squeeze_dim,
    squeeze_dims,
    t,
    transpose,
    unsqueeze,
    view,
    view_dtype,
)
from .view_complex import view_as_complex, view_as_real
from .view_parts import as_strided, check_history_of_part, diagonal, select, slice_, unfold
from .view_split import split, split_with_sizes, unbind

_clone = clone.call

_ONE = (
    alias,
    as_strided,
    detach,
    diagonal,
    expand,
    permute,
    reshape_alias,
    select,
    slice_,
    squeeze,
    squeeze_dim,
    squeeze_dims,
    t,
    transpose,
    unfold,
    unsqueeze,
    view,
    view_as_complex,
    view_as_real,
    view_dtype,
)
_SEVERAL = (split, split_with_sizes, unbind)


def _copied(part: Tensor) -> Tensor:
    made: Tensor = _clone(part, memory_format=contiguous_format)
    return made


def _one(spec: OpSpec) -> Callable[..., Tensor]:
    if spec is expand:
        return lambda self, size, implicit: _copied(spec(self, size, implicit=implicit))
    return lambda *args: _copied(spec(*args))


def _several(spec: OpSpec) -> Callable[..., tuple[Tensor, ...]]:
    return lambda *args: tuple([_copied(part) for part in spec(*args)])


def _declare(spec: OpSpec, body: Callable[..., Any]) -> OpSpec:
    """`<view>_copy` beside a view: its arguments, its samples, its derivative, and a node named after the view's."""
    head, _, rest = spec.schema.text.partition("(")
    name, dot, overload = head.partition(".")
    formulas = getattr(spec, "_derivative_source", None)
    made: OpSpec = composite(
        f"{name}_copy{dot}{overload}({rest.replace('Tensor(a)', 'Tensor')}",
        body,
        node=node_name(spec) + "_copy",
        samples=spec.samples,
        nondiff=formulas is None,
        takes_all_grads=spec.takes_all_grads,
        batching=Batching.STRIDED if spec.batching is Batching.STRIDED else None,
        out=True,
    )
    if callable(formulas):
        made.vjp(formulas)
    elif formulas is not None:
        made.vjp(**formulas)
    return made


for _spec in _ONE:
    _declare(_spec, _one(_spec))
for _spec in _SEVERAL:
    _declare(_spec, _several(_spec))


# ---------------------------------------------------------------- what a schema cannot say


def _storing(name: str) -> Callable[..., Any]:
    """The function of a copy in parts, which writes them into the tensors of a list given as `out=`."""

    def call(self: Tensor, *args: Any, out: Sequence[Tensor] | None = None, **kwargs: Any) -> Any:
        parts = getattr(aten, name)(self, *args, **kwargs)
        if out is None:
            return parts
        if len(out) != len(parts):
            raise RuntimeError(f"{name}_out() expected an out= argument of size {len(parts)}, got size {len(out)}")
        for target, part in zip(out, parts, strict=True):
            if target._array.shape != part._array.shape:
                aten.resize_(target, part._array.shape)
            aten.copy_(target, part)
        return None

    call.__name__ = name
    return call


def as_strided_copy(
    self: Tensor, size: Any, stride: Any, storage_offset: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """A copy of what a view with any size and strides of the memory would show."""
    check_history_of_part(self, storage_offset, "as_strided_copy")
    made: Tensor = aten.as_strided_copy(self, size, stride, storage_offset, out=out)
    return made


FUNCTIONS = {
    "as_strided_copy": as_strided_copy,
    **{name: _storing(name) for name in ("split_copy", "split_with_sizes_copy", "unbind_copy")},
}
