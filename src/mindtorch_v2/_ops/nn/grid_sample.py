"""Reading images at arbitrary places: grid_sampler in two and three dims, and the grids of affine maps."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from ..._core import parallel
from ..._core.tensor import make_tensor
from ..._dispatch.facts import Autocast
from ..._dispatch.registry import aten, composite, op
from .._support.common import no_kernel, unexpected_dtype
from .._support.double_backward import asked_for, backward_of_backward
from .._support.half import in_float32
from .resample import cubic_weights

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
_BLOCK = 1 << 16  # elements that stay in the cache while they are weighted and added

# ---------------------------------------------------------------- from [-1, 1] to elements


def _unnormalized(x: np.ndarray, size: int, dims: int, align_corners: bool) -> tuple[np.ndarray, float]:
    """Places counted in elements, and how fast they move with x.

    Half precision rounds after every step, as torch does, which takes these steps: others in a plane than in space.
    """
    kind = x.dtype.type
    if align_corners:
        return (x + 1) * kind((size - 1) / 2), (size - 1) / 2
    if dims == 2:
        return (x + 1) * kind(size / 2) - kind(0.5), size / 2
    return ((x + 1) * kind(size) - 1) / kind(2), size / 2


def _clipped(x: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Places moved to the nearest inside, and 1 where they move freely."""
    inside = (x > 0) & (x < size - 1)
    kind = x.dtype.type
    return np.where(x > 0, np.minimum(x, kind(size - 1)), kind(0)), inside.astype(x.dtype)


def _reflected(x: np.ndarray, twice_low: int, twice_high: int) -> tuple[np.ndarray, np.ndarray]:
    """Places folded back at both ends, and which way they move. The ends are given doubled, as they may be halves."""
    if twice_low == twice_high:
        return np.zeros_like(x), np.zeros_like(x)
    low, span = x.dtype.type(twice_low / 2), x.dtype.type((twice_high - twice_low) / 2)
    away = x - low
    turned = np.where(away < 0, -1, 1).astype(x.dtype)
    away = np.abs(away)
    rest = np.fmod(away, span)
    flips = np.floor(away / span).astype(np.int64)
    even = flips % 2 == 0
    return np.where(even, rest, span - rest) + low, np.where(even, turned, -turned)


def _padded(x: np.ndarray, size: int, dims: int, padding_mode: int, align_corners: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places after the padding rule, and how fast they move with x.

    In space a place that is no number is one outside; in a plane it stays what it is, and so does what is read there.
    """
    if padding_mode == BORDER:
        return _clipped(x, size)
    if padding_mode == REFLECTION:
        x, moves = _reflected(x, 0, 2 * (size - 1)) if align_corners else _reflected(x, -1, 2 * size - 1)
        x, free = _clipped(x, size)
        return x, moves * free
    return x if dims == 2 else np.where(np.isfinite(x), x, x.dtype.type(-100)), np.ones_like(x)


def _places(grid: np.ndarray, sizes: tuple[int, ...], mode: int, padding_mode: int, align_corners: bool) -> list[Any]:
    """Per dim (outermost first): places in elements and their slopes by the grid, flat over the output.

    Cubic interpolation applies the padding rule to each element around a place, not to the place.
    """
    places = []
    points = math.prod(grid.shape[1:-1])
    for axis, size in enumerate(sizes):
        # A grid holds x first: the innermost dim.
        x, speed = _unnormalized(grid[..., len(sizes) - 1 - axis].reshape(len(grid), points), size, len(sizes), align_corners)
        x, moves = (x, np.ones_like(x)) if mode == BICUBIC else _padded(x, size, len(sizes), padding_mode, align_corners)
        places.append((x, moves * grid.dtype.type(speed)))
    return places


# ---------------------------------------------------------------- reading and writing elements


def _whole(x: np.ndarray) -> np.ndarray:
    """Places that were rounded, as integers: one outside where they are no number."""
    return np.where(np.isfinite(x), x, x.dtype.type(-100)).astype(np.int64)


def _inside(index: tuple[np.ndarray, ...], sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Flat positions in an image and which of them exist; those that do not are given as 0."""
    valid = np.logical_and.reduce([(i >= 0) & (i < n) for i, n in zip(index, sizes, strict=True)])
    flat = np.zeros_like(index[0])
    for i, n in zip(index, sizes, strict=True):
        flat = flat * n + i
    return np.where(valid, flat, 0), valid


def _elements(index: tuple[np.ndarray, ...], sizes: tuple[int, ...]) -> np.ndarray:
    """Flat positions in an image that ends with an element more, which stands for those that do not exist."""
    flat, valid = _inside(index, sizes)
    return np.where(valid, flat, math.prod(sizes))


def _with_one_more(images: np.ndarray, sizes: tuple[int, ...]) -> np.ndarray:
    """Images flattened, (N, C, area + 1), with a zero at the end of each."""
    area = math.prod(sizes)
    longer = np.zeros((*images.shape[:2], area + 1), images.dtype)
    longer[..., :area] = images.reshape(*images.shape[:2], area)
    return longer


def _weighted_sums(images: np.ndarray, taps: list[Any]) -> np.ndarray:
    """(N, C, points): elements of flattened images at the taps' places (N, points), each times its weight (or None)."""
    batch, channels, _ = images.shape
    points = taps[0][0].shape[1]
    output = np.empty((batch, channels, points), images.dtype)
    step = max(_BLOCK // max(channels, 1), 1)

    def work(part: slice) -> None:
        for n, start in itertools.product(range(part.start, part.stop), range(0, points, step)):
            span = slice(start, start + step)
            total = None
            for flat, weight in taps:
                picked = images[n].take(flat[n, span], 1)
                if weight is not None:
                    picked = np.multiply(picked, weight[n, span], picked)
                total = picked if total is None else np.add(total, picked, total)
            output[n, :, span] = total

    parallel.blocks(batch, 1, work)
    return output


def _corners(places: list[Any]) -> Any:
    """For each corner of the cell a place lies in: its index, its weight, and each dim's part of the weight."""
    base = [np.floor(x) for x, _ in places]
    high = [x - b for (x, _), b in zip(places, base, strict=True)]
    low = [1 - h for h in high]
    first = [_whole(b) for b in base]
    for corner in itertools.product((0, 1), repeat=len(places)):
        parts = [h if c else lo for c, h, lo in zip(corner, high, low, strict=True)]
        weight = parts[-1]
        for part in parts[-2::-1]:
            weight = weight * part
        yield tuple(f + c for f, c in zip(first, corner, strict=True)), weight, parts, corner


def check_sizes(image: tuple[int, ...], grid: tuple[int, ...]) -> None:
    """RuntimeError for a grid that does not fit its images."""
    if image[0] != grid[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(image)} and grid with sizes {list(grid)}"
        )
    if grid[-1] != len(image) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(image) - 2} in last dimension, but got grid with sizes "
            f"{list(grid)}"
        )


def _product_but(parts: list[np.ndarray], left_out: int) -> np.ndarray:
    product = np.ones_like(parts[0])
    for axis, part in enumerate(parts):
        if axis != left_out:
            product = product * part
    return product


def _check(input: np.ndarray, grid: np.ndarray, dims: int, mode: int, padding_mode: int) -> None:
    check_sizes(input.shape, grid.shape)
    if input.dtype != grid.dtype:
        raise unexpected_dtype(input, grid)
    if input.dtype.kind not in "fV":
        kernel = "grid_sampler_2d_cpu_kernel_impl" if dims == 2 else "grid_sampler3d_cpu"
        raise no_kernel(kernel, input)
    if mode not in (BILINEAR, NEAREST, BICUBIC) or (mode == BICUBIC and dims == 3):
        raise RuntimeError(
            "grid_sampler(): bicubic interpolation only supports 4D input"
            if mode == BICUBIC
            else f"grid_sampler(): unknown interpolation mode {mode}"
        )
    if padding_mode not in (ZEROS, BORDER, REFLECTION):
        raise RuntimeError(f"grid_sampler(): unknown padding mode {padding_mode}")


def _sample(input, grid, mode, padding_mode, align_corners):
    sizes = input.shape[2:]
    _check(input, grid, len(sizes), mode, padding_mode)
    images = _with_one_more(input, sizes)
    shape = (*input.shape[:2], *grid.shape[1:-1])
    places = _places(grid, sizes, mode, padding_mode, align_corners)
    if mode == BICUBIC:
        return _sample_cubic(images, places, sizes, padding_mode, align_corners).reshape(shape)
    if mode == NEAREST:
        taps = [(_elements(tuple(_whole(np.rint(x)) for x, _ in places), sizes), None)]
    else:
        taps = [(_elements(index, sizes), weight) for index, weight, _, _ in _corners(places)]
    return _weighted_sums(images, taps).reshape(shape)


def _cubic_taps(places, sizes, padding_mode, align_corners):
    """The 16 elements around each place, row by row: (index, weight by y, weight by x, and the slopes of both)."""
    bases = [np.floor(x) for x, _ in places]
    behind = [x - base for (x, _), base in zip(places, bases, strict=True)]
    sharpness = behind[0].dtype.type(-0.75)
    weights = [cubic_weights(t, sharpness) for t in behind]
    slopes = [[part * speed for part in _cubic_slopes(t, sharpness)] for t, (_, speed) in zip(behind, places, strict=True)]

    def element(base, offset, size):
        at = base + offset
        if padding_mode != ZEROS:
            at, _ = _padded(at, size, 2, padding_mode, align_corners)
        return _whole(at)

    rows, cols = ([element(base, k - 1, size) for k in range(4)] for base, size in zip(bases, sizes, strict=True))
    for j, i in itertools.product(range(4), range(4)):
        yield (rows[j], cols[i]), weights[0][j], weights[1][i], slopes[0][j], slopes[1][i]


def _cubic_slopes(t, a):
    def near(x):
        return (3 * (a + 2) * x - 2 * (a + 3)) * x

    def far(x):
        return (3 * a * x - 10 * a) * x + 8 * a

    return [far(t + 1), near(t), -near(1 - t), -far(2 - t)]


def _sample_cubic(images, places, sizes, padding_mode, align_corners):
    """Rows of four elements first, then the rows."""
    output, row = None, []
    for index, by_y, by_x, _, _ in _cubic_taps(places, sizes, padding_mode, align_corners):
        row.append((_elements(index, sizes), by_x))
        if len(row) == 4:
            part = _weighted_sums(images, row)
            part *= by_y[:, None]
            output = part if output is None else np.add(output, part, output)
            row = []
    return output


@in_float32
def _sample_grad(grad_output, input, places, mode, padding_mode, align_corners, output_mask):
    """The gradients for image and grid, the latter as (N, points, dims); places are as precise as the grid was."""
    kind = input.dtype
    places = [(x.astype(kind, copy=False), speed.astype(kind, copy=False)) for x, speed in places]
    sizes = input.shape[2:]
    images = _with_one_more(input, sizes)
    grads = grad_output.reshape(*input.shape[:2], math.prod(grad_output.shape[2:]))
    grad_images = np.zeros(images.shape if output_mask[0] else (len(input), 0, 1), input.dtype)
    channels = np.arange(input.shape[1])[:, None] * images.shape[2]
    slopes = [np.zeros_like(x) for x, _ in places]

    def meet(index, weight, slope_parts):
        """One element's share: its gradient, and by how much the output changes as the place moves in each dim."""
        flat = _elements(index, sizes)
        moves = output_mask[1] and slope_parts is not None
        through = np.empty_like(slopes[0])

        def work(part):
            for n in range(part.start, part.stop):
                if output_mask[0]:
                    np.add.at(grad_images[n].reshape(-1), (channels + flat[n]).reshape(-1), (grads[n] * weight[n]).reshape(-1))
                if moves:
                    np.add.reduce(grads[n] * images[n].take(flat[n], 1), 0, out=through[n])

        parallel.blocks(len(flat), 1, work)
        if moves:
            for slope, part in zip(slopes, slope_parts, strict=True):
                slope += through * part

    if mode == BICUBIC:
        for index, by_y, by_x, slope_y, slope_x in _cubic_taps(places, sizes, padding_mode, align_corners):
            meet(index, by_y * by_x, [slope_y * by_x, by_y * slope_x])
    elif mode == NEAREST:
        meet(tuple(_whole(np.rint(x)) for x, _ in places), np.ones_like(places[0][0]), None)
    else:
        for index, weight, parts, corner in _corners(places):
            meet(
                index,
                weight,
                [(1 if corner[axis] else -1) * _product_but(parts, axis) * speed for axis, (_, speed) in enumerate(places)],
            )
    empty = np.zeros(0, kind)
    return (
        grad_images[..., :-1].reshape(input.shape) if output_mask[0] else empty,
        np.stack(slopes[::-1], -1) if output_mask[1] else empty,
    )


# ---------------------------------------------------------------- the same in ops, for second derivatives


def _sample_in_ops(input, grid, mode, padding_mode, align_corners):
    """`_sample` composed of ops, for second derivatives.

    Within a cell every place is linear in the grid, so cells and slopes are constants.
    """
    sizes = input._array.shape[2:]
    numbers = grid._array
    images = input.reshape(*input.shape[:2], math.prod(sizes))
    places = []
    for axis, size in enumerate(sizes):
        column = len(sizes) - 1 - axis
        coordinates = numbers[..., column].reshape(len(numbers), -1)
        at, speed = _unnormalized(coordinates, size, len(sizes), align_corners)
        at, moves = _padded(at, size, len(sizes), padding_mode if mode != BICUBIC else ZEROS, align_corners)
        slope = moves * numbers.dtype.type(speed)
        base = np.rint(at) if mode == NEAREST else np.floor(at)
        behind = grid.select(-1, column).reshape(len(numbers), -1) * make_tensor(slope) + make_tensor(
            at - base - coordinates * slope
        )
        places.append((base, behind))
    output = None
    for offsets in itertools.product(_OFFSETS[mode], repeat=len(sizes)):
        index, weight = [], None
        for (base, behind), offset, size in zip(places, offsets, sizes, strict=True):
            at = base + offset
            if mode == BICUBIC and padding_mode != ZEROS:
                at, _ = _padded(at, size, 2, padding_mode, align_corners)
            index.append(_whole(at))
            part = _weight_in_ops(mode, behind, offset)
            weight = part if weight is None or part is None else weight * part
        flat, valid = _inside(tuple(index), sizes)
        picked = aten.gather(images, 2, make_tensor(np.repeat(flat[:, None], images.shape[1], 1)))
        picked = picked * make_tensor(valid[:, None].astype(numbers.dtype))
        part = picked if weight is None else picked * weight.unsqueeze(1)
        output = part if output is None else output + part
    return output.reshape(*input.shape[:2], *grid.shape[1:-1])


_OFFSETS = {NEAREST: (0,), BILINEAR: (0, 1), BICUBIC: (-1, 0, 1, 2)}


def _weight_in_ops(mode, behind, offset):
    if mode == NEAREST:
        return None
    if mode == BILINEAR:
        return behind if offset else 1 - behind
    return cubic_weights(behind)[offset + 1]


def _declare(dims: int, *, doc: str | None = None) -> None:
    name = f"grid_sampler_{dims}d"
    arguments = "Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners"

    def samples(make):
        grid = make(1, *(2, 3, 2)[:dims], dims) * 1.6 - 0.8
        modes = (BILINEAR, BICUBIC) if dims == 2 else (BILINEAR,)
        image = make(1, 2, *(4, 3, 5)[:dims])
        return [(image, grid, mode, padding, False) for mode in modes for padding in (ZEROS, BORDER)]

    @op(
        f"{name}({arguments}) -> Tensor",
        samples=samples,
        node=f"GridSampler{dims}DBackward0",
        shape=lambda input, grid, *_: ((*input._array.shape[:2], *grid._array.shape[1:-1]), input._array.dtype),
        autocast=Autocast.FLOAT32,
        doc=doc,
        out=False,
    )
    def forward(input, grid, interpolation_mode, padding_mode, align_corners):
        return _sample(input, grid, interpolation_mode, padding_mode, align_corners)

    @forward.vjp
    def _(g, input, grid, interpolation_mode, padding_mode, align_corners, needs):
        grads = getattr(aten, f"{name}_backward")(g, input, grid, interpolation_mode, padding_mode, align_corners, list(needs))
        return asked_for(grads, needs)

    @op(
        f"{name}_backward(Tensor grad_output, {arguments}, bool[2] output_mask) -> (Tensor, Tensor)",
        samples=lambda make: [],
        takes_all_grads=True,
        shape=lambda grad_output, input, grid, mode, padding, align, output_mask: [
            (t._array.shape if wanted else (0,), t._array.dtype) for t, wanted in zip((input, grid), output_mask, strict=True)
        ],
    )
    def backward(grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask):
        _check(input, grid, dims, interpolation_mode, padding_mode)
        places = _places(grid, input.shape[2:], interpolation_mode, padding_mode, align_corners)
        to_input, to_grid = _sample_grad(
            grad_output, input, places, interpolation_mode, padding_mode, align_corners, output_mask
        )
        return to_input, to_grid.reshape(grid.shape) if output_mask[1] else to_grid

    @backward.vjp
    def _(grads, grad_output, input, grid, interpolation_mode, padding_mode, align_corners):
        (to_input, to_grid), to_grad = backward_of_backward(
            lambda image, at: _sample_in_ops(image, at, interpolation_mode, padding_mode, align_corners),
            (input, grid),
            grad_output,
            grads,
        )
        return to_grad, to_input, to_grid


_declare(
    2,
    doc="""Reads images of two dims at the places that a grid names.

    >>> torch.grid_sampler_2d(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """,
)
_declare(
    3,
    doc="""Reads images of three dims at the places that a grid names.

    >>> torch.grid_sampler_3d(torch.ones(1, 1, 2, 2, 2), torch.zeros(1, 1, 1, 1, 3), 0, 0, False)
    tensor([[[[[1.]]]]])
    """,
)


@composite(
    "grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
    samples=lambda make: [(make(1, 2, 4, 3), make(1, 2, 3, 2), BILINEAR, ZEROS, False)],
    autocast=Autocast.FLOAT32,
)
def grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners):
    """Reads images at the places that a grid names.

    >>> torch.grid_sampler(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    a, g = input._array.shape, grid._array.shape
    check_sizes(a, g)
    if 0 in a[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
            f"{list(a)} with dimension {a.index(0, 2)} being empty"
        )
    dims = 4 if len(a) == 4 else 5
    if len(a) != dims or len(g) != dims:
        raise RuntimeError(
            f"grid_sampler(): expected {dims}D input and grid with same number of dimensions, but got input with sizes "
            f"{list(a)} and grid with sizes {list(g)}"
        )
    sample = aten.grid_sampler_2d if dims == 4 else aten.grid_sampler_3d
    return sample(input, grid, interpolation_mode, padding_mode, align_corners)


@composite(
    "_grid_sampler_2d_cpu_fallback(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) "
    "-> Tensor",
    samples=lambda make: [(make(1, 2, 4, 3), make(1, 2, 3, 2), BILINEAR, ZEROS, False)],
)
def grid_sampler_2d_cpu_fallback(input, grid, interpolation_mode, padding_mode, align_corners):
    """As `grid_sampler_2d`, by the name of torch's kernel that is not vectorized.

    >>> torch._grid_sampler_2d_cpu_fallback(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2), 0, 0, False)
    tensor([[[[1.]]]])
    """
    return aten.grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)


# ---------------------------------------------------------------- grids of affine maps


def _base_grid(size: Any, align_corners: bool, dtype: np.dtype) -> np.ndarray:
    """(points, dims + 1): each element's normalized place, innermost dim first, and a 1."""
    axes = []
    for n in size[2:]:
        line = np.linspace(-1, 1, n, dtype=dtype) if n > 1 else np.zeros(1, dtype)
        axes.append(line if align_corners else line * dtype.type((n - 1) / n))
    mesh = np.meshgrid(*axes, indexing="ij")
    return np.stack([*[m.reshape(-1) for m in reversed(mesh)], np.ones(mesh[0].size, dtype)], -1)


def _check_affine(theta: np.ndarray, size: Any) -> None:
    if len(size) not in (4, 5):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    dims = len(size) - 2
    if theta.shape != (size[0], dims, dims + 1):
        raise RuntimeError(
            f"Expected a batch of {dims}D affine matrices of shape Nx{dims}x{dims + 1} for size "
            f"{list(size)}. Got {list(theta.shape)}."
        )


@op(
    "affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
    shape=lambda theta, size, align_corners: ((size[0], *size[2:], len(size) - 2), theta._array.dtype),
    samples=lambda make: [(make(2, 2, 3), (2, 1, 3, 4), True), (make(1, 3, 4), (1, 2, 2, 3, 2), False)],
    out=False,
)
@in_float32
def affine_grid_generator(theta, size, align_corners):
    """The grid at which `grid_sample` reads an image turned, scaled and moved by `theta`.

    >>> torch.affine_grid_generator(torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]]), (1, 1, 1, 2), False)
    tensor([[[[-0.5000,  0.0000],
              [ 0.5000,  0.0000]]]])
    """
    _check_affine(theta, size)
    grid = np.matmul(_base_grid(size, align_corners, theta.dtype), theta.swapaxes(1, 2))
    return grid.reshape(size[0], *size[2:], len(size) - 2)


affine_grid_generator.vjp(theta=lambda g, size, align_corners: aten.affine_grid_generator_backward(g, size, align_corners))


@op(
    "affine_grid_generator_backward(Tensor grad, int[] size, bool align_corners) -> Tensor",
    samples=lambda make: [],
    shape=lambda grad, size, align_corners: ((size[0], len(size) - 2, len(size) - 1), grad._array.dtype),
)
@in_float32
def affine_grid_generator_backward(grad, size, align_corners):
    flat = grad.reshape(size[0], -1, len(size) - 2)
    return np.matmul(flat.swapaxes(1, 2), _base_grid(size, align_corners, grad.dtype))


affine_grid_generator_backward.vjp(grad=lambda g, size, align_corners: aten.affine_grid_generator(g, size, align_corners))
