"""Products of tensors by their dims: einsum, tensordot, inner and cross products, chains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._dispatch.errors import broadcast_mismatch, need_tensor
from ..._dispatch.facts import Autocast, Layout, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, normal_dim, normal_dims, scalar_name, unexpected_dtype
from .._support.flops import per_element
from .._support.half import in_float32
from ..pointwise.arithmetic import conj

# ---------------------------------------------------------------- einsum

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_ELLIPSIS = "..."


def _labels(text: str, start: int, whose: str) -> list[Any]:
    """The subscripts of one operand (or the result), the ellipsis as one of them; the text begins at `start`."""
    labels: list[Any] = []
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == ".":
            if _ELLIPSIS in labels:
                raise RuntimeError(f"einsum(): found '.' for {whose} for which an ellipsis was already found")
            if text[at : at + 3] != _ELLIPSIS:
                raise RuntimeError(f"einsum(): found '.' for {whose} that is not part of any ellipsis")
            labels.append(_ELLIPSIS)
            at += 2
        elif letter in _LETTERS:
            labels.append(letter)
        elif letter != " ":
            raise RuntimeError(
                f"einsum(): invalid subscript given at index {start + at} in the equation string, subscripts "
                "must be in [a-zA-Z]"
            )
        at += 1
    return labels


def _parse(equation: str, tensors: Sequence[Tensor]) -> tuple[list[list[Any]], list[Any]]:
    """Subscripts of every operand and of the result; what an ellipsis covers is numbered from its right end."""
    left, arrow, right = equation.partition("->")
    operand_labels: list[list[Any]] = []
    start = 0
    for number, text in enumerate(left.split(",")):
        operand_labels.append(_labels(text, start, f"operand {number}"))
        start += len(text) + 1
    if len(operand_labels) != len(tensors):
        raise RuntimeError(
            "einsum(): "
            + (
                "more operands were provided than specified in the equation"
                if len(operand_labels) < len(tensors)
                else "fewer operands were provided than specified in the equation"
            )
        )
    widest = 0
    for number, (labels, tensor) in enumerate(zip(operand_labels, tensors, strict=True)):
        covered = tensor._array.ndim - (len(labels) - (_ELLIPSIS in labels))
        if covered < 0 or (covered and _ELLIPSIS not in labels):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the "
                f"number of dimensions ({tensor._array.ndim}) for operand {number}"
                + ("" if _ELLIPSIS in labels else " and no ellipsis was given")
            )
        widest = max(widest, covered if _ELLIPSIS in labels else 0)
        if _ELLIPSIS in labels:
            at = labels.index(_ELLIPSIS)
            labels[at : at + 1] = range(covered - 1, -1, -1)
    spread = list(range(widest - 1, -1, -1))
    if not arrow:
        letters = [label for labels in operand_labels for label in labels if isinstance(label, str)]
        return operand_labels, spread + [c for c in _LETTERS if letters.count(c) == 1]
    result: list[Any] = []
    for label in _labels(right, len(left) + len(arrow), "the output"):
        if label == _ELLIPSIS:
            result += spread
        elif label in result:
            raise RuntimeError(f"einsum(): output subscript {label} appears more than once in the output")
        elif not any(label in labels for labels in operand_labels):
            raise RuntimeError(f"einsum(): output subscript {label} does not appear in the equation for any input operand")
        else:
            result.append(label)
    return operand_labels, result


def _without_repeats(tensor: Tensor, labels: list[Any]) -> tuple[Tensor, list[Any]]:
    """The diagonal where a subscript stands twice."""
    labels = list(labels)
    for label in list(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            tensor = aten.movedim(aten.diagonal(tensor, 0, first, second), -1, first)
            del labels[second]
    return tensor, labels


def _aligned(tensor: Tensor, labels: list[Any], order: list[Any]) -> Tensor:
    """An operand with one dim per subscript of the whole equation, in one order, of size 1 where it has none."""
    tensor, labels = _without_repeats(tensor, labels)
    missing = [label for label in order if label not in labels]
    for _ in missing:
        tensor = aten.unsqueeze(tensor, -1)
    labels = labels + missing
    return aten.permute(tensor, [labels.index(label) for label in order])


def _contract(left: Tensor, right: Tensor, summed: list[int]) -> Tensor:
    """The product of two aligned operands, summed over some dims, which stay with size 1: one batched matmul.

    Dims that one operand alone has are summed out of it first; if no others are left, the rest is a plain product.
    """
    both, only_left, only_right, shared = [], [], [], []
    ndim = left._array.ndim
    alone: tuple[list[int], list[int]] = ([], [])
    for d in range(ndim):
        in_left, in_right = left._array.shape[d] != 1, right._array.shape[d] != 1
        if d in summed:
            if in_left and in_right:
                shared.append(d)
            elif in_left or in_right:
                alone[in_right].append(d)
        elif in_left and in_right:
            both.append(d)
        elif in_left:
            only_left.append(d)
        else:
            only_right.append(d)
    if alone[0]:
        left = aten.sum(left, alone[0], True)
    if alone[1]:
        right = aten.sum(right, alone[1], True)
    if not shared:
        return aten.mul(left, right)
    gone = [d for d in summed if d not in shared]
    a, b = left._array.shape, right._array.shape

    def size(shape, dims):
        return math.prod(shape[d] for d in dims)

    rows = aten.reshape(
        aten.permute(left, both + only_left + shared + only_right + gone), (size(a, both), size(a, only_left), size(a, shared))
    )
    columns = aten.reshape(
        aten.permute(right, both + shared + only_right + only_left + gone),
        (size(b, both), size(b, shared), size(b, only_right)),
    )
    made = aten.bmm(rows, columns)
    order = both + only_left + shared + only_right + gone
    sizes = [a[d] if d in both or d in only_left else b[d] if d in only_right else 1 for d in order]
    return aten.permute(aten.view(made, sizes), [order.index(d) for d in range(ndim)])


def _check_sizes(operand_labels: list[list[Any]], tensors: Sequence[Tensor]) -> None:
    sizes: dict[Any, int] = {}
    for number, (labels, tensor) in enumerate(zip(operand_labels, tensors, strict=True)):
        shape = tensor._array.shape
        for at, (label, n) in enumerate(zip(labels, shape, strict=True)):
            first = labels.index(label)
            if n != shape[first]:
                raise RuntimeError(
                    f"einsum(): subscript {label} is repeated for operand {number} but the sizes don't match, "
                    f"{n} != {shape[first]}"
                )
            known = sizes.get(label, 1)
            if at == first and n != 1 and known not in (1, n):
                raise RuntimeError(
                    f"einsum(): subscript {label} has size {n} for operand {number} which does not broadcast "
                    f"with previously seen size {known}"
                )
            sizes[label] = max(known, n) if n else n


@composite(
    "einsum(str equation, Tensor[] tensors, *, int[]? path=None) -> Tensor",
    samples=lambda make: [
        ("ij,jk->ik", [make(3, 4), make(4, 2)]),
        ("ii->i", [make(3, 3)]),
        ("bij,bjk->bik", [make(2, 3, 4), make(2, 4, 2)]),
        ("ij,jk,kl->il", [make(2, 3), make(3, 4), make(4, 2)]),
        ("i,j->ij", [make(3), make(4)]),
        ("...ij,...jk->...ik", [make(2, 3, 4), make(4, 2)]),
        ("ij,jk->k", [make(3, 4), make(4, 2)]),
    ],
    handwritten=Surface.FUNCTION,
)
def einsum(equation, tensors, path):
    """Products and sums by Einstein's notation: letters name dims, those missing on the right are summed.

    >>> torch.einsum("ij,j->i", torch.tensor([[1, 2], [3, 4]]), torch.tensor([1, 1]))
    tensor([3, 7])
    """
    if not tensors:
        raise RuntimeError("einsum(): must provide at least one operand")
    operand_labels, result = _parse(equation, tensors)
    _check_sizes(operand_labels, tensors)
    letters = [c for c in _LETTERS if any(c in labels for labels in operand_labels)]
    numbers = sorted({label for labels in operand_labels for label in labels if isinstance(label, int)}, reverse=True)
    order = result + [label for label in numbers + letters if label not in result]
    operands = [_aligned(t, labels, order) for t, labels in zip(tensors, operand_labels, strict=True)]
    summed = list(range(len(result), len(order)))
    if len(operands) == 1:
        return aten.sum(operands[0], summed) if summed else operands[0]
    steps = list(path) if path is not None else [0, 1] * (len(operands) - 1)
    while len(operands) > 1:
        i, j = sorted((steps.pop(0), steps.pop(0)))
        left, right = operands[i], operands[j]
        rest = [t for k, t in enumerate(operands) if k not in (i, j)]
        # A dim is summed out as soon as no other operand has it.
        ready = [
            d
            for d in summed
            if all(t._array.shape[d] == 1 for t in rest) and (left._array.shape[d] != 1 or right._array.shape[d] != 1)
        ]
        product = _contract(left, right, ready) if ready else aten.mul(left, right)
        # Without a path, the product takes the front place, as operands are met from left to right.
        operands = [product, *rest] if path is None else [*rest, product]
    product = operands[0]
    return aten.view(product, product._array.shape[: len(result)]) if summed else product


def einsum_function(*args: Any) -> Tensor:
    """einsum(equation, *operands), einsum(equation, operands), or operands each followed by its list of subscripts."""
    if len(args) < 2:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand, "
            "or at least one operand and its subscripts list"
        )
    if isinstance(args[0], Tensor):

        def text(subscripts):
            return "".join(_ELLIPSIS if s is Ellipsis else _LETTERS[s] for s in subscripts)

        pairs = len(args) // 2
        equation = ",".join(text(args[2 * i + 1]) for i in range(pairs))
        if len(args) % 2:
            equation += "->" + text(args[-1])
        return aten.einsum(equation, [args[2 * i] for i in range(pairs)])
    operands = args[1] if len(args) == 2 and isinstance(args[1], list | tuple) else args[1:]
    return aten.einsum(args[0], list(operands))


# ---------------------------------------------------------------- tensordot and inner products


@composite(
    "tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
    samples=lambda make: [(make(3, 4, 2), make(4, 2, 2), (1, 2), (0, 1)), (make(3), make(2), (), ())],
    out=True,
    handwritten=Surface.FUNCTION,
)
def tensordot(self, other, dims_self, dims_other):
    """Sums of products over the given dims of two tensors.

    >>> torch.tensordot(torch.ones(2, 3), torch.ones(3, 4), dims=1)
    tensor([[3., 3., 3., 3.],
            [3., 3., 3., 3.]])
    """
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if self._array.dtype != other._array.dtype:
        raise RuntimeError("both inputs should have same dtype")
    a = list(normal_dims(dims_self, self._array.ndim)) if dims_self else []
    b = list(normal_dims(dims_other, other._array.ndim)) if dims_other else []
    for k, (i, j) in enumerate(zip(a, b, strict=True)):
        n, m = self._array.shape[i], other._array.shape[j]
        if m == 1 and n != 1:
            self = aten.sum(self, (i,), True, dtype=self.dtype)
        elif n == 1 and m != 1:
            other = aten.sum(other, (j,), True, dtype=other.dtype)
        elif n != m:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {n} in dim {dims_self[k]} and "
                f"second has size {m} in dim {dims_other[k]}"
            )
    left, right = self._array.shape, other._array.shape
    kept_a = [d for d in range(len(left)) if d not in a]
    kept_b = [d for d in range(len(right)) if d not in b]
    inner = math.prod(left[d] for d in a)
    rows = aten.reshape(aten.permute(self, kept_a + a), (math.prod(left[d] for d in kept_a), inner))
    columns = aten.reshape(aten.permute(other, b + kept_b), (inner, math.prod(right[d] for d in kept_b)))
    return aten.reshape(aten.mm(rows, columns), [left[d] for d in kept_a] + [right[d] for d in kept_b])


def tensordot_function(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Contract the last `dims` dims of a with the first of b, or the dims given as two lists."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    need_tensor("tensordot", a, "a", 1)
    need_tensor("tensordot", b, "b", 2)
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a._array.ndim, b._array.ndim):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        first, second = list(range(-dims, 0)), list(range(dims))
    else:
        first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    return aten.tensordot(a, b, first, second, out=out)


@composite(
    "inner(Tensor self, Tensor other) -> Tensor", samples=lambda make: [(make(3, 4), make(2, 4)), (make(4), make(4))], out=True
)
def inner(self, other):
    """The sums of products along the last dims of two tensors.

    >>> torch.inner(torch.tensor([1, 2]), torch.tensor([3, 4]))
    tensor(11)
    """
    a, b = self._array, other._array
    if not a.ndim or not b.ndim:
        return aten.mul(self, other)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and {list(b.shape)}"
        )
    return aten.tensordot(self, other, (-1,), (-1,))


@composite(
    "linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor",
    samples=lambda make: [(make(3, 4), make(3, 4))],
    autocast=Autocast.LOWER,
    out=True,
)
def linalg_vecdot(x, y, dim):
    """The sums of products of vectors along `dim`, the first one conjugated.

    >>> torch.linalg.vecdot(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if x._array.dtype.kind in "iub":
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {scalar_name(x._array)}")
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_name(x._array)} and y of type {scalar_name(y._array)} instead"
        )
    return aten.sum(aten.mul(conj(x), y), (dim,))


# ---------------------------------------------------------------- cross products


def _threes(make):
    return [(make(4, 3), make(4, 3)), (make(3, 1), make(3, 2), {"dim": 0})]


@op(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    layout=Layout.ROW_MAJOR,
    samples=_threes,
    shape=lambda self, other, dim: (np.broadcast_shapes(self._array.shape, other._array.shape), self._array.dtype),
    flops=per_element(4),
)
def linalg_cross(self, other, dim):
    """The cross product of vectors of three elements along `dim`.

    >>> torch.linalg.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]))
    tensor([0, 0, 1])
    """
    if self.dtype != other.dtype:
        raise unexpected_dtype(self, other)
    if self.ndim != other.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    asked, dim = dim, normal_dim(dim, self.ndim)
    if self.shape[dim] != 3 or other.shape[dim] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {asked} must have length 3. Got {self.shape[dim]} and {other.shape[dim]}"
        )
    if self.shape != other.shape and (words := broadcast_mismatch([self.shape, other.shape])):
        raise RuntimeError(words)
    if self.dtype.kind == "b":
        raise no_kernel("cross", self)
    a, b = (np.moveaxis(t, dim, 0) for t in np.broadcast_arrays(self, other))
    return np.stack([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], dim)


linalg_cross.vjp(
    self=lambda g, other, dim: aten.linalg_cross(conj(other), g, dim=dim),
    other=lambda g, self, dim: aten.linalg_cross(g, conj(self), dim=dim),
)


@composite(
    "cross(Tensor self, Tensor other, int? dim=None) -> Tensor", samples=lambda make: [(make(4, 3), make(4, 3))], out=True
)
def cross(self, other, dim):
    """The cross product of vectors of three elements.

    >>> torch.cross(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), dim=0)
    tensor([0, 0, 1])
    """
    if dim is None:
        dim = next((d for d, n in enumerate(self._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return aten.linalg_cross(self, other, dim=dim)


# ---------------------------------------------------------------- chains of matrices


def _cheapest_split(sizes: list[int]) -> list[list[int]]:
    """Where to split each sub-chain so that the fewest multiplications are needed."""
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    split = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(options)
    return split


def _check_chain(chain: list[Tensor]) -> None:
    for number, (t, before) in enumerate(zip(chain[1:], chain, strict=False), 1):
        if t._array.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {number} must be 2D but got {t._array.ndim}D")
        if t.dtype is not chain[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{chain[0].dtype.cpp_name} and tensor {number} {t.dtype.cpp_name}"
            )
        a, b = before._array.shape, t._array.shape
        if a[1] != b[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {number - 1} and {number} with shapes {list(a)} and {list(b)} cannot be multiplied"
            )


@composite(
    "linalg_multi_dot(Tensor[] tensors) -> Tensor",
    samples=lambda make: [([make(2, 3), make(3, 4), make(4, 2)],), ([make(3), make(3, 4), make(4)],)],
    out=True,
)
def linalg_multi_dot(tensors):
    """The product of several matrices, in the order that takes the least work.

    >>> torch.linalg.multi_dot([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
    tensor([[6.]])
    """
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    chain = list(tensors)
    shape: list[int] = []
    for at, which in ((0, "first"), (-1, "last")):
        ndim = chain[at]._array.ndim
        if ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {ndim}D")
        if ndim == 1:
            chain[at] = aten.unsqueeze(chain[at], at)
        else:
            shape.append(chain[at]._array.shape[-at])
    _check_chain(chain)
    if len(chain) == 2:
        return aten.view(aten.mm(chain[0], chain[1]), shape)
    split = _cheapest_split([chain[0]._array.shape[0]] + [t._array.shape[1] for t in chain])

    def multiply(i, j):
        if i == j:
            return chain[i]
        k = split[i][j]
        return aten.mm(multiply(i, k), multiply(k + 1, j))

    return aten.view(multiply(0, len(chain) - 1), shape)


composite(
    "chain_matmul(Tensor[] matrices) -> Tensor",
    lambda matrices: matrices[0] if len(matrices) == 1 else aten.linalg_multi_dot(matrices),
    samples=lambda make: [([make(2, 3), make(3, 4), make(4, 2)],)],
    out=True,
    doc="""The product of several matrices, in the order that takes the least work.

    >>> torch.ops.aten.chain_matmul([torch.ones(1, 2), torch.ones(2, 3), torch.ones(3, 1)])
    tensor([[6.]])
    """,
    handwritten=Surface.FUNCTION,
)

# ---------------------------------------------------------------- bilinear forms


@op(
    "_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, int[] expand3, int[] sumdim, "
    "int unroll_dim=1) -> Tensor",
    shape=lambda i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim: (
        _trilinear_shape(i1._array, i2._array, i3._array, expand1, expand2, expand3, sumdim),
        i1._array.dtype,
    ),
    samples=lambda make: [(make(2, 3), make(4, 3, 5), make(2, 5), (1, 3), (0,), (1, 2), (2, 3))],
)
@in_float32
def trilinear(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    a, b, c = (_spread_out(t, dims) for t, dims in ((i1, expand1), (i2, expand2), (i3, expand3)))
    ndim = a.ndim
    kept = [d for d in range(ndim) if d not in sumdim]
    whole = list(range(ndim))
    return np.einsum(a, whole, b, whole, c, whole, kept, optimize=True)


def _spread_out(array, dims):
    for d in sorted(dims):
        array = np.expand_dims(array, d)
    return array


def _trilinear_shape(i1, i2, i3, expand1, expand2, expand3, sumdim):
    whole = np.broadcast_shapes(*[_spread_out(t, dims).shape for t, dims in ((i1, expand1), (i2, expand2), (i3, expand3))])
    return tuple(n for d, n in enumerate(whole) if d not in sumdim)


trilinear.vjp(
    i1=lambda g, i2, i3, expand1, expand2, expand3, sumdim: aten._trilinear(
        g, conj(i2), conj(i3), sumdim, expand2, expand3, expand1
    ),
    i2=lambda g, i1, i3, expand1, expand2, expand3, sumdim: aten._trilinear(
        conj(i1), g, conj(i3), expand1, sumdim, expand3, expand2
    ),
    i3=lambda g, i1, i2, expand1, expand2, expand3, sumdim: aten._trilinear(
        conj(i1), conj(i2), g, expand1, expand2, sumdim, expand3
    ),
)


@composite(
    "bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
    samples=lambda make: [(make(2, 3), make(2, 4), make(5, 3, 4), make(5)), (make(2, 2, 3), make(2, 2, 4), make(5, 3, 4))],
)
def bilinear(input1, input2, weight, bias):
    """A bilinear form of two inputs: `input1 @ weight @ input2 + bias`.

    >>> F.bilinear(torch.ones(1, 2), torch.ones(1, 2), torch.ones(1, 2, 2))
    tensor([[4.]])
    """
    a, b, w = input1._array.shape, input2._array.shape, weight._array.shape
    if len(a) != len(b):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(a)} and {len(b)}")
    if a[:-1] != b[:-1]:
        at = next(d for d in range(len(a)) if a[d] != b[d])
        raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {at}: got {a[at]} and {b[at]}")
    kinds = [input1.dtype, input2.dtype, weight.dtype, input1.dtype if bias is None else bias.dtype]
    if any(kind is not kinds[0] for kind in kinds):
        raise RuntimeError(
            "All tensors must have the same dtype, got input1: {}, input2: {}, weight: {}, bias: {}".format(
                *(kind.cpp_name for kind in kinds)
            )
        )
    for name, have, want in (
        ("input1", a[-1], w[1]),
        ("input2", b[-1], w[2]),
        ("bias", w[0] if bias is None else bias._array.shape[0], w[0]),
    ):
        if have != want:
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {have} but expected {want}")
    batch = math.prod(a[:-1])
    first, second = aten.reshape(input1, (batch, a[-1])), aten.reshape(input2, (batch, b[-1]))
    product = aten.reshape(aten._trilinear(first, weight, second, (1, 3), (0,), (1, 2), (2, 3)), (*a[:-1], w[0]))
    return product if bias is None else aten.add(product, bias)


FUNCTIONS = {
    "einsum": einsum_function,
    "tensordot": tensordot_function,
    "chain_matmul": lambda *matrices, out=None: aten.chain_matmul(list(matrices), out=out),
}
