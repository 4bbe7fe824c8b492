"""Resizing images: nearest, linear and cubic interpolation, in one to three dims, with or without antialiasing.

Each is a linear map that works on one dim at a time. Along a dim it is given by taps: for every output element some
input elements (`at`, never decreasing) and their weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..._core.layout import has_channels_last
from ..._dispatch.facts import SPATIAL, Layout
from ..._dispatch.registry import composite, op
from .._support.common import no_kernel
from .._support.flops import per_element
from .._support.half import in_float32
from .pooling.pool import getattr_later

Taps = tuple[tuple[np.ndarray, np.ndarray | None], ...]  # (at, weight); weight None for 1

_F32 = np.float32
_BYTE = np.dtype(np.uint8)


_DOCS = {
    "upsample_nearest1d": """Resizes signals by taking the nearest element.

    >>> torch.ops.aten.upsample_nearest1d(torch.tensor([[[0.0, 1.0]]]), [4])
    tensor([[[0., 0., 1., 1.]]])
    """,
    "upsample_nearest2d": """Resizes images by taking the nearest element.

    >>> torch.ops.aten.upsample_nearest2d(torch.arange(4.0).view(1, 1, 2, 2), [2, 4])
    tensor([[[[0., 0., 1., 1.],
              [2., 2., 3., 3.]]]])
    """,
    "upsample_nearest3d": """Resizes volumes by taking the nearest element.

    >>> torch.ops.aten.upsample_nearest3d(torch.ones(1, 1, 1, 1, 1), [1, 1, 2])
    tensor([[[[[1., 1.]]]]])
    """,
}


def _step(size: int, out: int, align_corners: bool, scale: float | None) -> float:
    """How far apart in the input two neighbors of the output are."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / scale if scale is not None and scale > 0 else size / out


def _sources(size: int, out: int, align_corners: bool, scale: float | None) -> np.ndarray:
    """Where in the input each output element lies."""
    step = _step(size, out, align_corners, scale)
    places = np.arange(out, dtype=np.float64)
    return places * step if align_corners else (places + 0.5) * step - 0.5


def _nearest(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    # float32 as in torch: whether a product falls just below or just above an integer decides which one is taken.
    places = np.arange(out, dtype=_F32) * _F32(_step(size, out, False, scale))
    return ((np.minimum(np.floor(places).astype(np.int64), size - 1), None),)


def _nearest_in_plane(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    """In two dims an equal or doubled size repeats every element once or twice, independent of the scale factor."""
    if out in (size, 2 * size):
        return ((np.arange(out) // (out // size), None),)
    return _nearest(size, out, align_corners, scale)


def _nearest_exact(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    places = (np.arange(out, dtype=_F32) + _F32(0.5)) * _F32(_step(size, out, False, scale))
    return ((np.minimum(np.floor(places).astype(np.int64), size - 1), None),)


def _linear(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    if size == out:
        return ((np.arange(size), None),)
    places = np.maximum(_sources(size, out, align_corners, scale), 0)
    low = np.minimum(np.floor(places).astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    weight = np.clip(places - low, 0, 1)
    return (low, 1 - weight), (high, weight)


def cubic_weights(t: np.ndarray, a: float = -0.75) -> list[np.ndarray]:
    """The weights of four neighbors of a place that lies t behind the second."""

    def near(x: np.ndarray) -> np.ndarray:
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x: np.ndarray) -> np.ndarray:
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return [far(t + 1), near(t), near(1 - t), far(2 - t)]


def _cubic(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    places = _sources(size, out, align_corners, scale)
    base = np.floor(places).astype(np.int64)
    return tuple((np.clip(base + k - 1, 0, size - 1), weight) for k, weight in enumerate(cubic_weights(places - base)))


def _antialiased(reach: float, kernel: Callable[[np.ndarray], np.ndarray]) -> Callable[..., Taps]:
    """Taps that average over all input elements that an output element covers."""

    def taps(size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
        if size == out:
            return ((np.arange(size), None),)
        step = _step(size, out, align_corners, scale)
        stretch = max(step, 1.0)
        support = reach * stretch
        center = (np.arange(out) + 0.5) * step
        first = np.maximum((center - support + 0.5).astype(np.int64), 0)
        count = np.minimum((center + support + 0.5).astype(np.int64), size) - first
        offsets = np.arange(max(int(count.max()), 1))
        weights = kernel((first[:, None] + offsets - center[:, None] + 0.5) / stretch)
        weights = np.where(offsets < count[:, None], weights, 0)
        total = weights.sum(1, keepdims=True)
        weights /= np.where(total == 0, 1, total)
        return tuple((np.minimum(first + k, size - 1), weights[:, k].copy()) for k in offsets.tolist())

    return taps


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _keys(x: np.ndarray) -> np.ndarray:
    """The cubic kernel with a = -0.5."""
    a, x = -0.5, np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    outer = ((x - 5) * x + 8) * x * a - 4 * a
    return np.where(x < 1, inner, np.where(x < 2, outer, 0))


def _lanczos(x: np.ndarray) -> np.ndarray:
    """The sine cardinal in a window of its own, over three elements to each side."""
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


_MODES: dict[str, Callable[..., Taps]] = {
    "nearest": _nearest,
    "nearest_in_plane": _nearest_in_plane,
    "nearest_exact": _nearest_exact,
    "linear": _linear,
    "cubic": _cubic,
    "linear_aa": _antialiased(1.0, _triangle),
    "cubic_aa": _antialiased(2.0, _keys),
    "lanczos_aa": _antialiased(3.0, _lanczos),
}


@lru_cache(maxsize=256)
def _taps(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> Taps:
    return _MODES[mode](size, out, align_corners, scale)


@lru_cache(maxsize=256)
def _repeats(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> int:
    """How often each element is taken, if all are equally often, in order and without weights, else 0."""
    (at, weight), *more = _taps(mode, size, out, align_corners, scale)
    times, rest = divmod(out, size)
    is_regular = not (rest or more) and weight is None and np.array_equal(at, np.arange(size).repeat(times))
    return times if is_regular else 0


def _repeated(array: np.ndarray, axis: int, times: int) -> np.ndarray:
    """The array with each element along a dim so many times."""
    if axis < array.ndim - 1:
        return array.repeat(times, axis)
    # NumPy repeats single elements one by one, and writes with a step in half the time.
    made = np.empty((*array.shape, times), array.dtype)
    for turn in range(times):
        made[..., turn] = array
    return made.reshape(*array.shape[:-1], -1)


def _gathered(grad: np.ndarray, axis: int, times: int) -> np.ndarray:
    """The transpose of `_repeated`: sums of so many neighbors along a dim."""
    lead = (slice(None),) * axis
    total = grad[(*lead, slice(0, None, times))]
    for turn in range(1, times):
        total = np.add(total, grad[(*lead, slice(turn, None, times))], total if turn > 1 else None)
    return total


def _along(weight: np.ndarray, axis: int, array: np.ndarray) -> np.ndarray:
    return weight.astype(array.dtype).reshape(-1, *(1,) * (array.ndim - 1 - axis))


def _resized(array: np.ndarray, axis: int, taps: Taps) -> np.ndarray:
    total = None
    for at, weight in taps:
        part = array.take(at, axis)
        if weight is not None:
            part *= _along(weight, axis, part)
        total = part if total is None else np.add(total, part, total)
    assert total is not None
    return total


@lru_cache(maxsize=256)
def _transposed(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> tuple[Taps, np.ndarray]:
    """The taps of the transpose, from which an input's gradient comes, and the inputs that have none.

    All inputs get as many taps as the one that has most: the last one of the others counts several times, with a share of its
    weight each. A weight of 0 would make nan of an infinite gradient.
    """
    taps = _taps(mode, size, out, align_corners, scale)
    inputs = np.concatenate([at for at, _ in taps])
    weights = np.concatenate([np.ones(out) if weight is None else weight for _, weight in taps])
    order = np.argsort(inputs, kind="stable")
    counts = np.bincount(inputs, minlength=size)
    last = np.cumsum(counts) - 1
    found = []
    most = int(counts.max())
    for number in range(most):
        at = order[np.clip(last - counts + 1 + number, 0, np.maximum(last, 0))]
        found.append((at % out, weights[at] / np.where(number < counts - 1, 1, most - counts + 1)))
    return tuple(found), np.flatnonzero(counts == 0)


def _spread(grad: np.ndarray, axis: int, transposed: tuple[Taps, np.ndarray]) -> np.ndarray:
    """The transpose of `_resized`: every output element's gradient is added to its inputs."""
    taps, untouched = transposed
    grad_input = _resized(grad, axis, taps)
    if untouched.size:
        grad_input[(*(slice(None),) * axis, untouched)] = 0
    return grad_input


# ---------------------------------------------------------------- images of bytes

_PICKED = ("nearest", "nearest_in_plane", "nearest_exact")  # modes that copy elements: any dtype could do
_LARGEST_WEIGHT = 1 << 15
_MOST_BITS = 22


@lru_cache(maxsize=256)
def _byte_taps(mode: str, size: int, out: int, align_corners: bool, scale: float | None) -> tuple[Taps, int]:
    """Taps with whole numbers for weights, and how many bits of those are a fraction: as many as 16 bits can hold."""
    taps = _taps(mode, size, out, align_corners, scale)
    if taps[0][1] is None:
        return taps, 0
    at = [a for a, _ in taps]
    weights = [np.array(w) for _, w in taps]
    for k in range(len(taps) - 1, 0, -1):  # What was moved to the edge becomes one tap, and is rounded once.
        same = at[k] == at[k - 1]
        weights[k - 1] += np.where(same, weights[k], 0)
        weights[k] = np.where(same, 0, weights[k])
    largest = max(float(w.max()) for w in weights)
    bits = 0
    while bits < _MOST_BITS and int(0.5 + largest * (1 << bits + 1)) < _LARGEST_WEIGHT:
        bits += 1
    whole = [np.trunc(w * (1 << bits) + np.where(w < 0, -0.5, 0.5)).astype(np.int32) for w in weights]
    return tuple(zip(at, whole, strict=True)), bits


def _resized_bytes(array: np.ndarray, axis: int, plan: tuple[Taps, int]) -> np.ndarray:
    """Resized along a dim, and back in bytes: what lies between two dims is rounded, too."""
    taps, bits = plan
    if not bits:
        return array.take(taps[0][0], axis)
    total = _resized(array.astype(np.int32), axis, taps)
    total += 1 << bits - 1
    total >>= bits
    return np.clip(total, 0, 255, out=total).astype(_BYTE)


# ---------------------------------------------------------------- the ops


def _check_dtype(mode: str, kind: np.dtype, dims: int) -> None:
    """Floats can be resized, and images of bytes."""
    if kind == _BYTE and (mode in _PICKED or dims == 2):
        return
    kernel = "compute_index_ranges_weights" if mode.endswith("_aa") else f"compute_indices_weights_{mode.partition('_')[0]}"
    raise no_kernel(kernel, kind)


def _check(dims: int, shape: tuple[int, ...], output_size: Any) -> None:
    if len(output_size) != dims:
        raise RuntimeError(f"It is expected output_size equals to {dims}, but got size {len(output_size)}")
    if len(shape) != dims + 2:
        raise RuntimeError(f"It is expected input_size equals to {dims + 2}, but got size {len(shape)}")
    if min(shape[2:]) <= 0 or min(output_size) <= 0:
        letters = "DHW"[-dims:]
        input_sizes, output_sizes = (
            ", ".join(f"{n}: {v}" for n, v in zip(letters, sizes, strict=True)) for sizes in (shape[2:], output_size)
        )
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({input_sizes}) "
            f"{'and ' if dims == 1 else ''}output ({output_sizes})"
        )
    if math.prod(shape[1:]) == 0:
        raise RuntimeError(f"Non-empty {dims + 2}D data tensor expected but got a tensor with sizes {list(shape)}")


def _upsample(mode, input, output_size, align_corners, scales):
    _check(len(scales), input.shape, output_size)
    kind = input.dtype
    if kind.kind not in "fV":
        _check_dtype(mode, kind, len(scales))
    # Channels that lie next to each other stay so: the spatial dims are then those before the last.
    channels_last = has_channels_last(input)
    if channels_last:
        input = np.moveaxis(input, 1, -1)
    first = 1 if channels_last else 2
    settings = enumerate(zip(output_size, scales, strict=True), first)
    resized = input
    if kind == _BYTE and mode not in _PICKED:
        for axis, (out, scale) in reversed(list(settings)):
            resized = _resized_bytes(resized, axis, _byte_taps(mode, resized.shape[axis], out, align_corners, scale))
    else:
        for axis, (out, scale) in settings:
            setting = mode, resized.shape[axis], out, align_corners, scale
            times = _repeats(*setting)
            if times != 1:
                resized = _repeated(resized, axis, times) if times else _resized(resized, axis, _taps(*setting))
    if resized is input:
        resized = input.copy()
    return np.moveaxis(resized, -1, 1) if channels_last else resized


def _upsample_grad(mode, grad_output, output_size, input_size, align_corners, scales):
    _check(len(scales), tuple(input_size), output_size)
    if grad_output.shape != (*input_size[:2], *output_size):
        raise RuntimeError(
            f"Expected grad_output to have the same shape as output; output.size = "
            f"{[*input_size[:2], *output_size]}, but got grad_output.size = {list(grad_output.shape)}"
        )
    grad = grad_output
    for axis, (out, scale) in enumerate(zip(output_size, scales, strict=True), 2):
        size = input_size[axis]
        setting = mode, size, out, align_corners, scale
        times = _repeats(*setting)
        if times != 1:
            grad = _gathered(grad, axis, times) if times else _spread(grad, axis, _transposed(*setting))
    return grad_output.copy() if grad is grad_output else grad


def _declare(name: str, dims: int, mode: str, aligns: bool, **facts: Any) -> None:
    """One mode in so many dims: the op, its backward, and the form that takes sizes or factors as a list."""
    scale_names = ["scales"] if dims == 1 else [f"scales_{c}" for c in "dhw"[-dims:]]
    align = ", bool align_corners" if aligns else ""
    scales = "".join(f", float? {n}=None" for n in scale_names)
    call = getattr_later(name)
    back = getattr_later(f"{name}_backward")

    def settings(rest):
        return (rest[0], rest[1:]) if aligns else (False, rest)

    def shape(self, output_size, *rest):
        return (*self._array.shape[:2], *output_size), self._array.dtype

    align_values = [False, True] if aligns else [None]

    def samples(make):
        sizes = [(3, 5, 4)[:dims], (7, 2, 3)[:dims]]
        return [(make(1, 2, *(4, 3, 5)[:dims]), size, *(() if a is None else (a,))) for size in sizes for a in align_values]

    @op(
        f"{name}(Tensor self, int[{dims}] output_size{align}{scales}) -> Tensor",
        layout=Layout.IMAGES,
        shape=shape,
        samples=samples,
        **facts,
    )
    @in_float32
    def forward(self, output_size, *rest):
        align_corners, scales = settings(rest)
        return _upsample(mode, self, tuple(output_size), align_corners, scales)

    @op(
        f"{name}_backward(Tensor grad_output, int[{dims}] output_size, int[{dims + 2}] input_size{align}{scales}) -> Tensor",
        layout=Layout.ROW_MAJOR if mode == "cubic" else Layout.IMAGES,
        shape=lambda grad_output, output_size, input_size, *_: (tuple(input_size), grad_output._array.dtype),
        samples=lambda make: [],
    )
    @in_float32
    def backward(grad_output, output_size, input_size, *rest):
        align_corners, scales = settings(rest)
        return _upsample_grad(mode, grad_output, tuple(output_size), tuple(input_size), align_corners, scales)

    names = (["align_corners"] if aligns else []) + scale_names
    forward.vjp(self=_formula(["output_size", "self_shape", *names], back))
    backward.vjp(grad_output=_formula(["output_size", *names], call))

    @composite(
        f"{name}.vec(Tensor input, int[]? output_size{align}, float[]? scale_factors) -> Tensor",
        samples=lambda make: [],
        **facts,
    )
    def listed(input, output_size, *rest):
        factors = rest[-1]
        size = input._array.shape[2:]
        if (output_size is None) == (factors is None):
            raise RuntimeError("Must specify exactly one of output_size and scale_factors")
        if output_size is None:
            output_size = tuple(_whole(n * f) for n, f in zip(size, factors, strict=True))
        return call(input, tuple(output_size), *rest[:-1], *(factors or (None,) * dims))


def _whole(size: float) -> int:
    """A size without its fraction; RuntimeError where it is not one that could be written as an integer."""
    if not abs(size) < 1 << 63:  # nan is not, either
        raise RuntimeError("value cannot be converted to type int64_t without overflow")
    return int(size)


def _formula(names: list[str], call: Callable[..., Any]) -> Callable[..., Any]:
    """lambda g, <names>: call(g, <names>), with a signature that tells autograd what to save."""
    listed = ", ".join(names)
    return eval(f"lambda g, {listed}: call(g, {listed})", {"call": call})


for _dims in (1, 2, 3):
    _declare(
        f"upsample_nearest{_dims}d",
        _dims,
        "nearest_in_plane" if _dims == 2 else "nearest",
        False,
        batching=SPATIAL[_dims],
        doc=_DOCS[f"upsample_nearest{_dims}d"],
    )
    _declare(f"_upsample_nearest_exact{_dims}d", _dims, "nearest_exact", False)
_declare(
    "upsample_linear1d",
    1,
    "linear",
    True,
    batching=SPATIAL[1],
    flops=per_element(5),
    doc="""Resizes signals by linear interpolation.

    >>> torch.ops.aten.upsample_linear1d(torch.tensor([[[0.0, 1.0]]]), [3], True)
    tensor([[[0.0000, 0.5000, 1.0000]]])
    """,
)
_declare(
    "upsample_bilinear2d",
    2,
    "linear",
    True,
    batching=SPATIAL[2],
    doc="""Resizes images by linear interpolation in both dims.

    >>> torch.ops.aten.upsample_bilinear2d(torch.arange(4.0).view(1, 1, 2, 2), [1, 1], False)
    tensor([[[[1.5000]]]])
    """,
)
_declare(
    "upsample_trilinear3d",
    3,
    "linear",
    True,
    batching=SPATIAL[3],
    doc="""Resizes volumes by linear interpolation in three dims.

    >>> torch.ops.aten.upsample_trilinear3d(torch.ones(1, 1, 2, 2, 2), [1, 1, 1], False)
    tensor([[[[[1.]]]]])
    """,
)
_declare(
    "upsample_bicubic2d",
    2,
    "cubic",
    True,
    batching=SPATIAL[2],
    doc="""Resizes images by cubic interpolation.

    >>> torch.ops.aten.upsample_bicubic2d(torch.ones(1, 1, 2, 2), [1, 1], False)
    tensor([[[[1.]]]])
    """,
)
_declare("_upsample_bilinear2d_aa", 2, "linear_aa", True)
_declare("_upsample_bicubic2d_aa", 2, "cubic_aa", True)
_declare("_upsample_lanczos2d_aa", 2, "lanczos_aa", True)
