"""The `*_copy` family: what a view shows, in memory of its own (permute_copy, split_copy, view_copy ...)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..._autograd.nodes.derivative import node_name
from ..._core.memory_format import contiguous_format
from ..._core.tensor import Tensor
from ..._dispatch.facts import Batching, Surface
from ..._dispatch.registry import OpSpec, aten, composite, op
from .._support.common import like_first
from ..creation.copy import clone
from .transpose import permute, t, transpose
from .view import alias, expand, reshape_alias, squeeze, squeeze_dim, squeeze_dims, unsqueeze, view, view_dtype
from .view_complex import view_as_complex, view_as_real
from .view_parts import as_strided, check_history_of_part, diagonal, select, slice_, unfold
from .view_split import split, split_with_sizes, unbind

_clone = clone.call

_ONE = (
    alias,
    as_strided,
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


_DOCS = {
    "alias_copy": """A copy of the tensor, as the view `alias` would show it.

    >>> torch.alias_copy(torch.tensor([1, 2]))
    tensor([1, 2])
    """,
    "as_strided_copy": """A copy of what `as_strided` shows.

    >>> torch.as_strided_copy(torch.tensor([1, 2, 3, 4]), (2, 2), (1, 1))
    tensor([[1, 2],
            [2, 3]])
    """,
    "detach_copy": """A copy of what `detach` shows.

    >>> torch.detach_copy(torch.tensor([1, 2]))
    tensor([1, 2])
    """,
    "diagonal_copy": """A copy of what `diagonal` shows.

    >>> torch.diagonal_copy(torch.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
    "expand_copy": """A copy of what `expand` shows.

    >>> torch.expand_copy(torch.tensor([[1], [2]]), (2, 2))
    tensor([[1, 1],
            [2, 2]])
    """,
    "permute_copy": """A copy of what `permute` shows.

    >>> torch.permute_copy(torch.zeros(2, 3), (1, 0)).shape
    torch.Size([3, 2])
    """,
    "select_copy": """A copy of what `select` shows.

    >>> torch.select_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """,
    "slice_copy": """A copy of what `slice` shows.

    >>> torch.slice_copy(torch.arange(6), 0, 1, 5, 2)
    tensor([1, 3])
    """,
    "squeeze_copy": """A copy of what `squeeze` shows.

    >>> torch.squeeze_copy(torch.zeros(1, 3, 1)).shape
    torch.Size([3])
    """,
    "t_copy": """A copy of the transpose of a matrix.

    >>> torch.t_copy(torch.tensor([[1, 2], [3, 4]]))
    tensor([[1, 3],
            [2, 4]])
    """,
    "transpose_copy": """A copy of what `transpose` shows.

    >>> torch.transpose_copy(torch.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([[1, 3],
            [2, 4]])
    """,
    "unfold_copy": """A copy of what `unfold` shows.

    >>> torch.unfold_copy(torch.arange(4), 0, 2, 2)
    tensor([[0, 1],
            [2, 3]])
    """,
    "unsqueeze_copy": """A copy of what `unsqueeze` shows.

    >>> torch.unsqueeze_copy(torch.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """,
    "view_copy": """A copy of what `view` shows.

    >>> torch.view_copy(torch.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """,
    "view_as_complex_copy": """A copy of what `view_as_complex` shows.

    >>> torch.view_as_complex_copy(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """,
    "view_as_real_copy": """A copy of what `view_as_real` shows.

    >>> torch.view_as_real_copy(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """,
    "split_copy": """Copies of what `split` shows.

    >>> torch.split_copy(torch.arange(4), 2)
    (tensor([0, 1]), tensor([2, 3]))
    """,
    "split_with_sizes_copy": """Copies of what `split_with_sizes` shows.

    >>> torch.split_with_sizes_copy(torch.arange(4), [1, 3])
    (tensor([0]), tensor([1, 2, 3]))
    """,
    "unbind_copy": """Copies of what `unbind` shows.

    >>> torch.unbind_copy(torch.tensor([[1, 2], [3, 4]]))
    (tensor([1, 2]), tensor([3, 4]))
    """,
}


def _copied(part: Tensor) -> Tensor:
    copy: Tensor = _clone(part, memory_format=contiguous_format)
    return copy


def _one(spec: OpSpec) -> Callable[..., Tensor]:
    if spec is view:
        return lambda self, size: _copied(aten.reshape(self, size))
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
    copy_spec: OpSpec = composite(
        f"{name}_copy{dot}{overload}({rest.replace('Tensor(a)', 'Tensor')}",
        body,
        node=node_name(spec) + "_copy",
        samples=spec.samples,
        nondiff=formulas is None,
        takes_all_grads=spec.takes_all_grads,
        batching=Batching.STRIDED if spec.batching is Batching.STRIDED else None,
        out=True,
        doc=_DOCS.get(f"{name}_copy"),
        handwritten=Surface.FUNCTION if spec is as_strided or spec in _SEVERAL else Surface.NONE,
    )
    if callable(formulas):
        copy_spec.vjp(formulas)
    elif formulas is not None:
        copy_spec.vjp(**formulas)
    return copy_spec


for _spec in _ONE:
    _declare(_spec, _one(_spec))
for _spec in _SEVERAL:
    _declare(_spec, _several(_spec))
# Without a derivative: unlike that of `detach`, its result requires grad, and backward refuses.
op("detach_copy(Tensor self) -> Tensor", lambda self: self.copy(), shape=like_first, doc=_DOCS["detach_copy"])


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
    copy: Tensor = aten.as_strided_copy(self, size, stride, storage_offset, out=out)
    return copy


FUNCTIONS = {
    "as_strided_copy": as_strided_copy,
    **{name: _storing(name) for name in ("split_copy", "split_with_sizes_copy", "unbind_copy")},
}
