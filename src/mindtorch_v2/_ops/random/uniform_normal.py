"""Random tensors: factories, in-place fills and samples of distributions, all with torch's numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core import dtype as dt
from ..._core import rng
from ..._core.box_muller import fused
from ..._core.rng import Generator, default_generator
from ..._core.tensor import Tensor
from ..._dispatch.errors import torch_error
from ..._dispatch.facts import Batching, Layout, Promotion, Surface
from ..._dispatch.registry import aten, op
from .._support.common import like_first, no_kernel, np_dtype
from .._support.factory import LIKE, OPTIONS, as_made, check_options, checked_size, like, memory_order, sized
from .._support.out_rules import fills_out

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
WITH_GENERATOR = OPTIONS.replace("*, ", "*, Generator? generator, ", 1)
LIKE_WITH_GENERATOR = LIKE.replace("*, ", "*, Generator? generator, ", 1)


def source_of(generator):
    """The generator to draw from: the one given, or the default one."""
    if generator is None:
        return default_generator
    if not isinstance(generator, Generator):
        raise torch_error(TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}"))
    return generator


def store(array, values):
    """Put values into an array in the order in which its elements lie in memory."""
    if array.flags.c_contiguous:
        array[...] = values.reshape(array.shape)
        return
    target = array.transpose(memory_order(array))
    target[...] = values.reshape(target.shape)


def float_only(kind, what):
    if kind.kind not in "fV":
        raise no_kernel(what, kind)


def scaled(values, scale, shift):
    """values * scale + shift, rounded once like a fused multiply-add."""
    if values.dtype == _F32:
        return fused(values, np.float64(np.float32(scale)), np.float32(shift))
    product = values * scale
    # The product's rounding error, exactly (Dekker), and then the sum's (Knuth): their sum corrects the result.
    split = 134217729.0
    high = values * split
    high -= high - values
    top = scale * split
    top -= top - scale
    low, bottom = values - high, scale - top
    error = ((high * top - product) + high * bottom + low * top) + low * bottom
    total = product + shift
    back = total - product
    return total + (((product - (total - back)) + (shift - back)) + error)


# ---------------------------------------------------------------- uniform


def _uniform(count, kind, source, low, high):
    """`count` numbers in [low, high) of a real floating point dtype."""
    if kind == _F64:
        numbers = source.uniforms64(count)
        return numbers if low == 0 and high == 1 else scaled(numbers, float(high) - float(low), float(low))
    numbers = source.uniforms(count)
    if low != 0 or high != 1:
        numbers = scaled(numbers, np.float32(high) - np.float32(low), low)
    if kind == _F32:
        return numbers
    numbers = numbers.astype(kind)
    numbers[numbers == np.asarray(high, kind)] = low  # rounding may have reached the bound, which is not part of the range
    return numbers


def _rand(size, kind, source):
    """Uniform numbers of any floating point or complex dtype."""
    size = checked_size(size)
    if kind.kind in "cW":  # W: complex32
        parts = np.dtype(f"f{kind.itemsize // 2}")
        return _uniform(2 * math.prod(size), parts, source, 0, 1).view(kind).reshape(size)
    float_only(kind, "check_uniform_bounds")
    return _uniform(math.prod(size), kind, source, 0, 1).reshape(size)


def _recorded_draws(fill):
    """The ops that torch makes random tensors with: memory, and an op that fills it."""

    def form(size, dtype, layout, device, pin_memory, generator):
        made = aten.empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
        return as_made(fill(made, generator))

    return form


# The usual form has torch's arguments and the generator after them, so that `torch.rand` needs no choice of overload.
_USUAL = OPTIONS + ", Generator? generator=None"


@op(
    f"rand(int[] size, {_USUAL}) -> Tensor",
    nondiff=True,
    shape=sized,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
    recorded_form=_recorded_draws(lambda made, source: aten.uniform_(made, generator=source)),
)
def rand(size, dtype, layout, device, pin_memory, generator):
    """Random numbers evenly spread over [0, 1).

    >>> torch.rand(2)
    tensor([0.4963, 0.7682])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    kind = dt.get_default_dtype().np if dtype is None else np_dtype(dtype)
    source = default_generator if generator is None else source_of(generator)
    count = math.prod(size)
    if kind is not _F32 or count <= 0:
        return _rand(size, kind, source)
    numbers = source.uniforms(count)
    try:
        return numbers.reshape(size)
    except ValueError:
        checked_size(size)
        raise


@op(
    f"rand.generator(int[] size, {WITH_GENERATOR}) -> Tensor",
    nondiff=True,
    shape=lambda size, generator, dtype, *_: sized(size, dtype),
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
    recorded_form=lambda size, generator, *options: rand.recorded_form(size, *options, generator),
)
def rand_generator(size, generator, dtype, layout, device, pin_memory):
    return rand.kernel(size, dtype, layout, device, pin_memory, generator)


def _like_op(name, fill, fill_op, *, doc=None):
    """`rand_like` and `randn_like`: memory like the tensor's, then filled."""

    def recorded(self, generator, dtype, layout, device, pin_memory, memory_format):
        made = aten.empty_like(
            self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        return as_made(fill_op(made, generator=generator))

    def plain(self, dtype, layout, device, pin_memory, memory_format):
        check_options(layout, pin_memory, device)
        array = like(self, np_dtype(dtype, self.dtype), memory_format)
        fill(array, None)
        return array

    def with_generator(self, generator, dtype, layout, device, pin_memory, memory_format):
        check_options(layout, pin_memory, device)
        array = like(self, np_dtype(dtype, self.dtype), memory_format)
        fill(array, generator)
        return array

    op(
        f"{name}(Tensor self, {LIKE}) -> Tensor",
        plain,
        nondiff=True,
        shape=lambda self, dtype, *_: (self._array.shape, np_dtype(dtype, self._array.dtype)),
        samples=lambda make: [],
        batching=Batching.RANDOM,
        host_made=True,
        recorded_form=lambda self, *options: recorded(self, None, *options),
        doc=doc,
    )
    op(
        f"{name}.generator(Tensor self, {LIKE_WITH_GENERATOR}) -> Tensor",
        with_generator,
        nondiff=True,
        shape=lambda self, generator, dtype, *_: (self._array.shape, np_dtype(dtype, self._array.dtype)),
        samples=lambda make: [],
        batching=Batching.RANDOM,
        host_made=True,
        recorded_form=recorded,
    )


_LIMITS: dict[dt.dtype, dt.finfo] = {}


def _check_uniform(kind, low, high):
    """RuntimeError for bounds, or a distance of them, that a dtype does not hold."""
    limits = _LIMITS.get(kind)
    if limits is None:
        limits = _LIMITS[kind] = dt.finfo(kind)
    for name, bound in (("from", low), ("to", high)):
        if not limits.min <= bound <= limits.max:
            raise RuntimeError(f"{name} is out of bounds for {kind.cpp_name}")
    if low <= high and high - low > limits.max:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{kind.scalar_name}>::max(), but found to={high:g} and "
            f"from={low:g} which result in to-from to exceed the limit"
        )


@op(
    "uniform_(Tensor(a!) self, float from=0., float to=1., *, Generator? generator=None) -> Tensor(a!)",
    batching=Batching.RANDOM,
    host_made=True,
)
def uniform_(self, from_, to, generator):
    if self.dtype.kind in "cW":
        store(
            self, _uniform(2 * self.size, np.dtype(f"f{self.itemsize // 2}"), source_of(generator), from_, to).view(self.dtype)
        )
        return
    float_only(self.dtype, "check_uniform_bounds")
    _check_uniform(dt.from_numpy(self.dtype), from_, to)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    store(self, _uniform(self.size, self.dtype, source_of(generator), from_, to))


uniform_.vjp(self=lambda g: aten.zeros_like(g))
_like_op(
    "rand_like",
    lambda array, generator: uniform_.kernel(array, 0.0, 1.0, generator),
    uniform_,
    doc="""Random numbers evenly spread over [0, 1), in a tensor like another one.

    >>> torch.rand_like(torch.zeros(2))
    tensor([0.4963, 0.7682])
    """,
)


# ---------------------------------------------------------------- normal


def _normal(count, kind, source, mean, std, contiguous=True):
    """`count` normals of a real floating point dtype. As in torch, 16 or more come from groups of 16, fewer one by one."""
    if count < 16 or not contiguous:
        numbers = source.normal_pairs(count)
        if std != 1 or mean != 0:
            numbers = scaled(numbers, float(std), float(mean))
        return numbers.astype(kind, copy=False)
    if kind == _F32:
        numbers = source.normals(count)
    elif kind == _F64:
        numbers = _normals64(count, source)
    else:
        numbers = _half_normals(count, source)
    if std != 1 or mean != 0:
        numbers = scaled(numbers, std, mean)
    return numbers.astype(kind, copy=False)


def _paired(uniforms):
    """Box-Muller on groups of 16, by the library's log, sin and cos."""
    groups = uniforms.reshape(-1, 2, 8)
    radius = np.sqrt(-2 * np.log(1 - groups[:, 0]))
    angle = groups[:, 1] * uniforms.dtype.type(2 * np.pi)
    return np.stack((radius * np.cos(angle), radius * np.sin(angle)), 1).reshape(-1)


def _normals64(count, source):
    whole = count // 16 * 16
    numbers = source.uniforms64(count)
    numbers[:whole] = _paired(numbers[:whole])
    if whole != count:
        numbers[count - 16 :] = _paired(source.uniforms64(16))
    return numbers


def _half_normals(count, source):
    """Normals that will be rounded to 16 bits, in float32; the last group is drawn once only."""
    whole = count // 16 * 16
    numbers = np.empty(count, np.float32)
    numbers[:whole] = _paired(source.uniforms(whole))
    if whole != count:
        numbers[count - 16 :] = _paired(source.uniforms(16))
    return numbers


def _randn(size, kind, source):
    """Normals of any floating point or complex dtype."""
    size = checked_size(size)
    count = math.prod(size)
    if kind.kind in "cW":
        parts = np.dtype(f"f{kind.itemsize // 2}")
        return _normal(2 * count, parts, source, 0.0, math.sqrt(0.5)).view(kind).reshape(size)
    float_only(kind, "normal_kernel_cpu")
    return _normal(count, kind, source, 0.0, 1.0).reshape(size)


@op(
    f"randn(int[] size, {_USUAL}) -> Tensor",
    nondiff=True,
    shape=sized,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
    recorded_form=_recorded_draws(lambda made, source: aten.normal_(made, generator=source)),
)
def randn(size, dtype, layout, device, pin_memory, generator):
    """Normal random numbers with mean 0 and variance 1.

    >>> torch.randn(2)
    tensor([ 1.5410, -0.2934])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    kind = dt.get_default_dtype().np if dtype is None else np_dtype(dtype)
    source = default_generator if generator is None else source_of(generator)
    count = math.prod(size)
    if kind is not _F32 or count < 16:
        return _randn(size, kind, source)
    numbers = source.normals(count)
    try:
        return numbers.reshape(size)
    except ValueError:
        checked_size(size)
        raise


@op(
    f"randn.generator(int[] size, {WITH_GENERATOR}) -> Tensor",
    nondiff=True,
    shape=lambda size, generator, dtype, *_: sized(size, dtype),
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
    out_rule=fills_out,
    handwritten=Surface.FUNCTION,
    generator_after_size=True,
    recorded_form=lambda size, generator, *options: randn.recorded_form(size, *options, generator),
)
def randn_generator(size, generator, dtype, layout, device, pin_memory):
    return randn.kernel(size, dtype, layout, device, pin_memory, generator)


def _check_std(std):
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@op(
    "normal_(Tensor(a!) self, float mean=0., float std=1., *, Generator? generator=None) -> Tensor(a!)",
    batching=Batching.RANDOM,
    host_made=True,
)
def normal_(self, mean, std, generator):
    if isinstance(mean, complex):
        raise torch_error(TypeError("normal_(): argument 'mean' (position 1) must be float, not complex"))
    _check_std(std)
    if self.dtype.kind in "cW":  # W: complex32
        parts = np.dtype(f"f{self.itemsize // 2}")
        numbers = _normal(2 * self.size, parts, source_of(generator), mean, std * math.sqrt(0.5), self.flags.c_contiguous)
        store(self, numbers.view(self.dtype))
        return
    float_only(self.dtype, "normal_kernel_cpu")
    store(self, _normal(self.size, self.dtype, source_of(generator), mean, std, self.flags.c_contiguous))


normal_.vjp(self=lambda g: aten.zeros_like(g))
_like_op(
    "randn_like",
    lambda array, generator: normal_.kernel(array, 0.0, 1.0, generator),
    normal_,
    doc="""Normal random numbers in a tensor like another one.

    >>> torch.randn_like(torch.zeros(2))
    tensor([ 1.5410, -0.2934])
    """,
)


def _checked_deviations(std):
    if std.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex")
    if std.size and std.min() < 0:
        raise RuntimeError("normal expects all elements of std >= 0.0")
    return std


def _standard(shape, kind, generator):
    float_only(kind, "normal_kernel_cpu")
    return _normal(math.prod(shape), kind, source_of(generator), 0.0, 1.0).reshape(shape)


@op(
    "normal.Tensor_float(Tensor mean, float std=1., *, Generator? generator=None) -> Tensor",
    node="NormalBackward1",
    shape=like_first,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def normal_tensor_float(mean, std, generator):
    """Normal random numbers with the given means and standard deviations.

    >>> torch.normal(torch.tensor([5.0]), torch.tensor([0.0]))
    tensor([5.])
    """
    _check_std(std)
    float_only(mean.dtype, "normal_kernel_cpu")
    return _normal(mean.size, mean.dtype, source_of(generator), 0.0, std).reshape(mean.shape) + mean


normal_tensor_float.vjp(mean=lambda g: aten.zeros_like(g))


@op(
    "normal.float_Tensor(float mean, Tensor std, *, Generator? generator=None) -> Tensor",
    node="NormalBackward2",
    samples=lambda make: [],
    shape=lambda mean, std, generator: (std._array.shape, std._array.dtype),
    batching=Batching.RANDOM,
    host_made=True,
)
def normal_float_tensor(mean, std, generator):
    _checked_deviations(std)
    return _standard(std.shape, std.dtype, generator) * std + std.dtype.type(mean)


normal_float_tensor.vjp(std=lambda g: aten.zeros_like(g))


@op(
    "normal.Tensor_Tensor(Tensor mean, Tensor std, *, Generator? generator=None) -> Tensor",
    layout=Layout.ROW_MAJOR,
    node="NormalBackward3",
    promote=Promotion.SAME,
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def normal_tensor_tensor(mean, std, generator):
    _checked_deviations(std)
    shape = np.broadcast_shapes(mean.shape, std.shape)
    return _standard(shape, mean.dtype, generator) * std + mean


normal_tensor_tensor.vjp(mean=lambda g, mean_shape: g.new_zeros(mean_shape), std=lambda g, std_shape: g.new_zeros(std_shape))


@op(
    "normal.float_float(float mean, float std, int[] size, *, Generator? generator=None, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
    nondiff=True,
    shape=lambda mean, std, size, generator, dtype, *_: sized(size, dtype),
    samples=lambda make: [],
    batching=Batching.RANDOM,
    host_made=True,
)
def normal_float_float(mean, std, size, generator, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    _check_std(std)
    array = np.empty(checked_size(size), np_dtype(dtype))
    normal_.kernel(array, mean, std, generator)
    return array


# ---------------------------------------------------------------- as functions


def manual_seed(seed: Any) -> Generator:
    """Start the default generator over from `seed`; returns it."""
    return default_generator.manual_seed(rng.as_seed(int(seed)))


def get_rng_state() -> Tensor:
    """The default generator's state, as bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Put the default generator into a state that get_rng_state() gave."""
    default_generator.set_state(new_state)


FUNCTIONS = {
    "Generator": Generator,
    "default_generator": default_generator,
    "get_rng_state": get_rng_state,
    "initial_seed": default_generator.initial_seed,
    "manual_seed": manual_seed,
    "rand": rand.call,
    "randn": randn.call,
    "seed": default_generator.seed,
    "set_rng_state": set_rng_state,
}
