"""Padding: constant, reflected, replicated and circular borders; sequences filled up to one length."""

from __future__ import annotations

import numpy as np

from ..._core.layout import dense_copy, like_image
from ..._core.memory_format import contiguous_format
from ..._dispatch.facts import SPATIAL, Autocast, Batching, Layout
from ..._dispatch.registry import aten, composite, op
from .._support.numbers import number_of
from ..creation.copy import converted

# ---------------------------------------------------------------- constant


_DOCS = {
    "reflection_pad1d": """Puts a border around one dim that mirrors the inside.

    >>> torch.ops.aten.reflection_pad1d(torch.tensor([[1.0, 2.0, 3.0]]), [1, 1])
    tensor([[2., 1., 2., 3., 2.]])
    """,
    "replication_pad1d": """Puts a border around one dim that repeats the edge.

    >>> torch.ops.aten.replication_pad1d(torch.tensor([[1.0, 2.0, 3.0]]), [1, 1])
    tensor([[1., 1., 2., 3., 3.]])
    """,
    "reflection_pad2d": """Puts a border around two dims that mirrors the inside.

    >>> torch.ops.aten.reflection_pad2d(torch.arange(4.0).view(1, 2, 2), [1, 0, 0, 0])
    tensor([[[1., 0., 1.],
             [3., 2., 3.]]])
    """,
    "replication_pad2d": """Puts a border around two dims that repeats the edge.

    >>> torch.ops.aten.replication_pad2d(torch.arange(4.0).view(1, 2, 2), [1, 0, 0, 0])
    tensor([[[0., 0., 1.],
             [2., 2., 3.]]])
    """,
    "reflection_pad3d": """Puts a border around three dims that mirrors the inside.

    >>> torch.ops.aten.reflection_pad3d(torch.ones(1, 2, 2, 2), [1, 0, 0, 0, 0, 0]).shape
    torch.Size([1, 2, 2, 3])
    """,
    "replication_pad3d": """Puts a border around three dims that repeats the edge.

    >>> torch.ops.aten.replication_pad3d(torch.ones(1, 1, 1, 1), [1, 0, 0, 0, 0, 0])
    tensor([[[[1., 1.]]]])
    """,
}


def _padded_shape(shape, pad):
    """The shape after padding; `pad` lists (before, after) from the last dim on."""
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) > 2 * len(shape):
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {len(shape)}"
        )
    padded = list(shape)
    for i in range(len(pad) // 2):
        before, after = pad[2 * i : 2 * i + 2]
        dim = len(shape) - 1 - i
        if shape[dim] + min(before, 0) + min(after, 0) < 0:  # what is cut off is cut off before anything is put around
            raise RuntimeError("narrow(): length must be non-negative.")
        padded[dim] += before + after
    return padded


@op(
    "constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
    layout=Layout.NOTED,
    shape=lambda self, pad, value: (_padded_shape(self._array.shape, pad), self._array.dtype),
    samples=lambda make: [(make(3, 4), (1, 2)), (make(3, 4), (-1, 1, 2, 0), 0.5)],
    batching=Batching.LAST_DIMS,
    out=False,
)
def constant_pad_nd(self, pad, value):
    """Puts a border of one value around the last dims.

    >>> torch.constant_pad_nd(torch.tensor([1, 2]), (1, 1), 0)
    tensor([0, 1, 2, 0])
    """
    shape = _padded_shape(self.shape, pad)
    source, target = [slice(None)] * self.ndim, [slice(None)] * self.ndim
    for i in range(len(pad) // 2):
        before, after = pad[2 * i], pad[2 * i + 1]
        dim = self.ndim - 1 - i
        # A negative pad cuts the source; a positive one leaves room in the result.
        source[dim] = slice(max(-before, 0), self.shape[dim] - max(-after, 0))
        target[dim] = slice(max(before, 0), shape[dim] - max(after, 0))
    if max(pad, default=0) <= 0:  # nothing is put around
        return dense_copy(self[tuple(source)])
    if value == 0:
        padded = np.zeros(shape, self.dtype)
    else:
        padded = np.empty(shape, self.dtype)
        padded[...] = number_of(value, self.dtype)
    padded[tuple(target)] = self[tuple(source)]
    return like_image(padded, self)


constant_pad_nd.vjp(self=lambda g, pad: aten.constant_pad_nd(g, [-n for n in pad], 0))

# ---------------------------------------------------------------- reflected and replicated


def _reflected(n, before, after):
    """For each element of a padded dim, where it comes from: the border is a mirror."""
    places = np.abs(np.arange(-before, n + after))
    return np.where(places >= n, 2 * (n - 1) - places, places)


def _replicated(n, before, after):
    """For each element of a padded dim, where it comes from: the border repeats its last element."""
    return np.clip(np.arange(-before, n + after), 0, n - 1)


_MANY = 1 << 14  # elements that are copied once in place of once for each dim


def _pad_by(self, padding, sources):
    padded, in_place = self, self.size >= _MANY and min(padding) >= 0
    for i in range(len(padding) // 2):
        dim = self.ndim - 1 - i
        before, after = padding[2 * i], padding[2 * i + 1]
        if sources is _reflected and max(before, after) >= self.shape[dim]:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, but "
                f"got: padding ({before}, {after}) at dimension {dim} of input {list(self.shape)}"
            )
        if self.shape[dim] + before + after < 1:
            raise RuntimeError(
                f"input (size {self.shape[dim]} at dimension {dim}) is too small for padding ({before}, {after})"
            )
        if not in_place:
            padded = padded.take(sources(self.shape[dim], before, after), dim)
    return _bordered(self, padding, sources) if in_place else padded


def _bordered(self, padding, sources):
    """The array with borders around it, copied once; then the lines of each border, of whole lines from the last dim on."""
    padded = np.empty(_padded_shape(self.shape, padding), self.dtype)
    dims = [(self.ndim - 1 - i, padding[2 * i], padding[2 * i + 1]) for i in range(len(padding) // 2)]
    inside = [slice(None)] * self.ndim
    for dim, before, _ in dims:
        inside[dim] = slice(before, before + self.shape[dim])
    padded[tuple(inside)] = self
    for dim, before, after in dims:
        places = sources(self.shape[dim], before, after) + before
        lead = (slice(None),) * dim
        for border in (slice(0, before), slice(len(places) - after, len(places))):
            padded[(*lead, border)] = padded[(*lead, places[border])]
    return padded


def _unpad_by(g, shape, padding, sources):
    """The gradient of _pad_by: the inner part as it is, and each border line added where it came from."""
    for i in range(len(padding) // 2):
        dim = len(shape) - 1 - i
        n, before, after = shape[dim], padding[2 * i], padding[2 * i + 1]
        places = sources(n, before, after).tolist()
        lead = (slice(None),) * dim
        inner = np.zeros((*g.shape[:dim], n, *g.shape[dim + 1 :]), g.dtype)
        first, last = max(before, 0), max(before, 0) + n - max(-before, 0) - max(-after, 0)
        inner[(*lead, slice(max(-before, 0), n - max(-after, 0)))] = g[(*lead, slice(first, last))]
        for at in (*range(first), *range(last, len(places))):
            inner[(*lead, places[at])] += g[(*lead, at)]
        g = inner
    return np.ascontiguousarray(g)


def _check_rank(array, dims, name):
    if array.ndim not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"{name}: expected {dims + 1}D or {dims + 2}D (batch mode) tensor for input, but got: {list(array.shape)}"
        )
    if 0 in array.shape[-dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(array.shape)}"
        )


def _declare_border_pad(kind, sources, dims):
    name, count = f"{kind}_pad{dims}d", 2 * dims
    sample, spatial = (1, 2, 1, 0, 1, 1)[:count], (3, 4, 3)[:dims]

    def shape(self, padding):
        return _padded_shape(self._array.shape, padding), self._array.dtype

    @op(
        f"{name}(Tensor self, int[{count}] padding) -> Tensor",
        layout=Layout.IMAGES,
        shape=shape,
        samples=lambda make: [(make(1, 2, *spatial), sample)],
        autocast=None if name == "reflection_pad3d" else Autocast.FLOAT32,
        batching=SPATIAL[dims],
        doc=_DOCS[name],
    )
    def pad_op(self, padding):
        if len(padding) != count:
            got = f", but got: {len(padding)}" if kind == "reflection" else ""
            raise RuntimeError(f"padding size is expected to be {count}{got}")
        _check_rank(self, dims, name)
        return _pad_by(self, padding, sources)

    pad_op.vjp(self=lambda g, self, padding: getattr(aten, f"{name}_backward")(g, self, padding))

    @op(
        f"{name}_backward(Tensor grad_output, Tensor self, int[{count}] padding) -> Tensor",
        layout=Layout.INPUT_IMAGES,
        shape=lambda grad_output, self, padding: (self._array.shape, self._array.dtype),
        samples=lambda make: [],
    )
    def backward(grad_output, self, padding):
        return _unpad_by(grad_output, self.shape, padding, sources)

    backward.vjp(grad_output=lambda g, padding: getattr(aten, name)(g, padding))


for _dims in (1, 2, 3):
    _declare_border_pad("reflection", _reflected, _dims)
    _declare_border_pad("replication", _replicated, _dims)

# ---------------------------------------------------------------- circular


@composite("_pad_circular(Tensor self, int[] pad) -> Tensor", samples=lambda make: [(make(1, 2, 4), (1, 2))])
def pad_circular(self, pad):
    padded = self
    shape = self._array.shape
    for i in range(len(pad) // 2):
        dim = len(shape) - 1 - i
        n, before, after = shape[dim], pad[2 * i], pad[2 * i + 1]
        if before > n or after > n:
            raise RuntimeError("Padding value causes wrapping around more than once.")
        if n + before + after < 0:
            raise RuntimeError(f"Negative padding value is resulting in an empty dimension {dim}.")
        # Negative pads cut; what is then missing on one side is taken from the other.
        inner = aten.slice(padded, dim, max(-before, 0), n - max(-after, 0))
        left = inner._array.shape[dim]
        parts = [aten.slice(inner, dim, left - before, left)] if before > 0 else []
        parts.append(inner)
        if after > 0:
            parts.append(aten.slice(inner, dim, 0, after))
        padded = aten.cat(parts, dim) if len(parts) > 1 else inner
    # Where the last step only cut, the result is a view of what came before.
    if padded is self or padded._is_view():
        return aten.clone(padded, memory_format=contiguous_format)
    return aten.contiguous(padded)


# ---------------------------------------------------------------- pad

_BORDER_OPS = {"reflect": "reflection_pad", "replicate": "replication_pad"}
_NOT_CONSTANT = (
    "Padding size {} is not supported for {}D input tensor.\n"
    "Supported combinations for non-constant padding:\n"
    "  - 2D or 3D input: padding size = 2 (pads last dimension)\n"
    "  - 3D or 4D input: padding size = 4 (pads last 2 dimensions)\n"
    "  - 4D or 5D input: padding size = 6 (pads last 3 dimensions)"
)


@composite(
    'pad(Tensor self, int[] pad, str mode="constant", float? value=None) -> Tensor',
    samples=lambda make: [(make(3, 4), (1, 2)), (make(2, 3, 4), (1, 2), "reflect")],
)
def pad(self, pad, mode, value):
    """Puts a border around the last dims: constant, reflected, replicated or circular.

    >>> F.pad(torch.tensor([1, 2]), (1, 1))
    tensor([0, 1, 2, 0])
    >>> F.pad(torch.tensor([[1.0, 2.0, 3.0]]), (1, 1), mode="reflect")
    tensor([[2., 1., 2., 3., 2.]])
    """
    if mode == "constant":
        return aten.constant_pad_nd(self, pad, 0.0 if value is None else float(value))
    if value not in (None, 0):
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    ndim, dims = self._array.ndim, len(pad) // 2
    if mode not in (*_BORDER_OPS, "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if len(pad) not in (2, 4, 6) or ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(_NOT_CONSTANT.format(len(pad), ndim))
    if mode == "circular":
        return aten._pad_circular(self, pad)
    return getattr(aten, f"{_BORDER_OPS[mode]}{dims}d")(self, pad)


# ---------------------------------------------------------------- sequences of different lengths


def _sequence_shape(shapes, batch_first):
    """The shape of sequences stacked side by side, each filled up to the longest."""
    rest = tuple(shapes[0][1:])
    for shape in shapes:
        if tuple(shape[1:]) != rest:
            raise RuntimeError(
                f"The size of tensor a {list(shapes[0])} must match the size of tensor b {list(shape)} "
                "in all dimensions but the first"
            )
    longest = max(shape[0] for shape in shapes)
    return ((len(shapes), longest) if batch_first else (longest, len(shapes))) + rest


def _places(lengths, longest, batch_first, padding_side):
    """For each sequence, the key of the elements it fills."""
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for i, length in enumerate(lengths):
        span = slice(longest - length, longest) if padding_side == "left" else slice(0, length)
        yield (i, span) if batch_first else (span, i)


@op(
    'pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, str padding_side="right") -> Tensor',
    shape=lambda sequences, batch_first, *_: (
        _sequence_shape([s._array.shape for s in sequences], batch_first),
        sequences[0]._array.dtype,
    ),
    samples=lambda make: [([make(3, 2), make(1, 2)],), ([make(3), make(2)], True, 0.5, "left")],
)
def pad_sequence(sequences, batch_first, padding_value, padding_side):
    """Fills sequences up to one length and stacks them.

    >>> torch.nn.utils.rnn.pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    padded = np.empty(_sequence_shape([s.shape for s in sequences], batch_first), sequences[0].dtype)
    padded[...] = padding_value
    longest = padded.shape[1 if batch_first else 0]
    places = _places([len(s) for s in sequences], longest, batch_first, padding_side)
    for sequence, place in zip(sequences, places, strict=True):
        padded[place] = sequence if sequence.dtype == padded.dtype else converted(sequence, padded.dtype)
    return padded


def _sequence_grads(g, shapes, batch_first, padding_side):
    longest = g._array.shape[1 if batch_first else 0]
    grads = []
    for i, key in enumerate(_places([s[0] for s in shapes], longest, batch_first, padding_side)):
        span = key[1] if batch_first else key[0]
        grads.append(aten.slice(aten.select(g, 0 if batch_first else 1, i), 0, span.start, span.stop))
    return grads


pad_sequence.vjp(
    sequences=lambda g, sequences_shape, batch_first, padding_side: _sequence_grads(
        g, sequences_shape, batch_first, padding_side
    )
)
