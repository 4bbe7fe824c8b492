"""Factories: tensors from sizes and numbers."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.determinism import filled, listeners
from ..._core.device import device as Device
from ..._core.layout import steps_like, steps_of_format
from ..._core.memory_format import preserve_format
from ..._core.strides import reach_of, strided
from ..._core.tensor import make_meta, make_tensor
from ..._dispatch.facts import Batching, Layout, Surface
from ..._dispatch.lazy_values import resolved
from ..._dispatch.registry import aten, op
from .._support.common import np_dtype
from .._support.factory import LIKE, OPTIONS, as_made, check_options, checked_size, laid_out, like, sized
from .._support.out_rules import fills_out
from .copy import fill_

_fill = fill_.kernel

# What makes memory whose elements are not set. Other functions take these names while such memory is to be filled, so that
# the usual ones need not ask.
_empty, _like, _laid_out = np.empty, like, laid_out


def _fill_uninitialized(on):
    global _empty, _like, _laid_out
    made = (np.empty, like, laid_out)
    _empty, _like, _laid_out = [_filling(each) for each in made] if on else made


def _filling(make):
    return lambda *args: filled(make(*args))


listeners.append(_fill_uninitialized)


def _filled(shape, kind, value):
    array = np.empty(shape, kind)
    _fill(array, value)
    return array


# ---------------------------------------------------------------- the ops that torch's factories are made of


def _recorded_zeros(size, dtype, layout, device, pin_memory):
    _zeros_size(size)
    made = aten.empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return as_made(aten.zero_(made))


def _recorded_ones(size, dtype, layout, device, pin_memory):
    made = aten.empty(size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
    return as_made(aten.fill_(made, 1))


def _recorded_full(size, fill_value, dtype, layout, device, pin_memory):
    value = _full_value(size, fill_value)
    kind = dt.from_numpy(_fill_dtype(value, dtype))
    made = aten.empty(size, dtype=kind, layout=layout, device=device, pin_memory=pin_memory)
    return as_made(aten.fill_(made, value))


def _recorded_empty_like(self, dtype, layout, device, pin_memory, memory_format):
    kind = np_dtype(dtype, self._array.dtype)
    if memory_format is None or memory_format is preserve_format:
        array = self._array
        # Memory that is not touched costs next to nothing, and has torch's strides.
        model = array if array.flags.c_contiguous and array.size else like(array, array.dtype)
        strides = [step // array.itemsize for step in model.strides]
        return aten.empty_strided(
            self.shape, strides, dtype=dt.from_numpy(kind), layout=layout, device=device, pin_memory=pin_memory
        )
    return aten.empty(
        self.shape,
        dtype=dt.from_numpy(kind),
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        memory_format=memory_format,
    )


def _recorded_like(fill):
    def form(self, dtype, layout, device, pin_memory, memory_format):
        made = aten.empty_like(
            self, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory, memory_format=memory_format
        )
        return as_made(fill(made))

    return form


def _recorded_full_like(self, fill_value, *options):
    return _recorded_like(lambda made: aten.fill_(made, fill_value))(self, *options)


def _recorded_new_empty(self, size, dtype, layout, device, pin_memory):
    kind = self.dtype if dtype is None else dtype
    return aten.empty(size, dtype=kind, layout=layout, device=device, pin_memory=pin_memory)


def _recorded_new(fill):
    def form(self, size, dtype, layout, device, pin_memory):
        _zeros_size(size)
        made = aten.new_empty(self, size, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)
        return as_made(fill(made))

    return form


def _recorded_new_full(self, size, fill_value, *options):
    return _recorded_new(lambda made: aten.fill_(made, fill_value))(self, size, *options)


def _recorded_new_empty_strided(self, size, stride, dtype, layout, device, pin_memory):
    kind = self.dtype if dtype is None else dtype
    return aten.empty_strided(size, stride, dtype=kind, layout=layout, device=device, pin_memory=pin_memory)


# ---------------------------------------------------------------- of a size


@op(
    f"empty.memory_format(int[] size, {OPTIONS}, MemoryFormat? memory_format=None) -> Tensor",
    nondiff=True,
    layout=Layout.NOTED,
    shape=sized,
    samples=lambda make: [],
    out_overload="out",
    out_rule=fills_out,
)
def empty(size, dtype, layout, device, pin_memory, memory_format):
    """A tensor whose elements have not been set.

    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    if memory_format is not None:
        return _laid_out(checked_size(size), np_dtype(dtype), memory_format)
    try:
        return _empty(size, np_dtype(dtype))
    except ValueError:
        checked_size(size)
        raise


@op(
    f"zeros(int[] size, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=sized,
    samples=lambda make: [((3, 4),)],
    out_rule=fills_out,
    recorded_form=_recorded_zeros,
)
def zeros(size, dtype, layout, device, pin_memory):
    """A tensor full of zeros.

    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    try:
        return np.zeros(size, np_dtype(dtype))
    except ValueError:
        _zeros_size(size)
        raise


def _zeros_size(size):
    for n in size:
        if n < 0:
            raise RuntimeError("zeros: Dimension size must be non-negative.")
    return size


@op(
    f"ones(int[] size, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=sized,
    samples=lambda make: [((3, 4),)],
    out_rule=fills_out,
    recorded_form=_recorded_ones,
)
def ones(size, dtype, layout, device, pin_memory):
    """A tensor full of ones.

    >>> torch.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    try:
        array = np.empty(size, np_dtype(dtype))
    except ValueError:
        checked_size(size)
        raise
    array.fill(1)
    return array


def _fill_dtype(value, dtype):
    if dtype is None and isinstance(value, complex):
        return np.dtype(np.complex128 if dt.get_default_dtype() is dt.float64 else np.complex64)
    return np_dtype(dt.number_dtype(value) if dtype is None else dtype)


def _full_value(size, fill_value):
    """What to fill a tensor of this size with: a tensor's single element is taken out."""
    if hasattr(size, "_array"):
        raise TypeError("full(): argument 'size' (position 1) must be tuple of ints, not Tensor")
    return resolved(fill_value)._array.item() if hasattr(fill_value, "_array") else fill_value


@op(
    f"full(int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda size, fill_value, dtype, *_: (checked_size(size), _fill_dtype(fill_value, dtype)),
    samples=lambda make: [((3, 4), 2.5)],
    out_rule=fills_out,
    recorded_form=_recorded_full,
)
def full(size, fill_value, dtype, layout, device, pin_memory):
    """A tensor with one value everywhere.

    >>> torch.full((2, 2), 7)
    tensor([[7, 7],
            [7, 7]])
    """
    if layout is not None or pin_memory:
        check_options(layout, pin_memory)
    fill_value = _full_value(size, fill_value)
    return _filled(checked_size(size), _fill_dtype(fill_value, dtype), fill_value)


@op(
    f"empty_strided(int[] size, int[] stride, {OPTIONS}) -> Tensor",
    nondiff=True,
    layout=Layout.NOTED,
    samples=lambda make: [],
)
def empty_strided(size, stride, dtype, layout, device, pin_memory):
    """A tensor with the given strides, whose elements have not been set.

    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    check_options(layout, pin_memory)
    return _strided(checked_size(size), stride, np_dtype(dtype))


def _strided(size, stride, kind):
    if len(stride) != len(size):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    steps = [s * kind.itemsize for s in stride]
    return strided(_empty(reach_of(size, steps, 0, kind.itemsize) // kind.itemsize, kind), kind, size, steps)


@empty_strided.kernel_for("meta")
def _empty_strided_meta(size, stride, dtype, layout, device, pin_memory):
    kind = np_dtype(dtype)
    return make_meta(checked_size(size), kind, tuple(s * kind.itemsize for s in stride))


@op(
    f"empty_permuted(int[] size, int[] physical_layout, {OPTIONS}) -> Tensor",
    nondiff=True,
    layout=Layout.NOTED,
    samples=lambda make: [],
    shape=lambda size, physical_layout, dtype, *_: sized(size, dtype),
)
def empty_permuted(size, physical_layout, dtype, layout, device, pin_memory):
    """A tensor whose dims lie in memory in the given order.

    >>> torch.empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    check_options(layout, pin_memory)
    size = checked_size(size)
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    for place, dim in enumerate(physical_layout):
        if not 0 <= dim < len(size):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(size) - 1}, but got {dim} at index "
                f"{place}).  NB: negative dims not currently supported; file an issue if you want it."
            )
    if len(set(physical_layout)) != len(size):
        raise RuntimeError("Duplicate dim not allowed")
    array = _empty([size[d] for d in physical_layout], np_dtype(dtype))
    return array.transpose(np.argsort(physical_layout))


@op(
    f"scalar_tensor(Scalar s, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda s, dtype, *_: ((), np_dtype(dtype)),
    samples=lambda make: [(2.5,)],
    host_made=True,
    out=False,
)
def scalar_tensor(s, dtype, layout, device, pin_memory):
    """A tensor without dims that holds one number.

    >>> torch.scalar_tensor(3.5)
    tensor(3.5000)
    """
    check_options(layout, pin_memory)
    return _filled((), np_dtype(dtype), s)


@op(
    f"eye(int n, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda n, dtype, *_: ((n, n), np_dtype(dtype)),
    samples=lambda make: [(3,)],
    host_made=True,
    out_rule=fills_out,
)
def eye(n, dtype, layout, device, pin_memory):
    """The identity matrix: ones on the diagonal, zeros elsewhere.

    >>> torch.eye(2, 3)
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    return eye_m.kernel(n, n, dtype, layout, device, pin_memory)


@op(
    f"eye.m(int n, int m, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda n, m, dtype, *_: ((n, m), np_dtype(dtype)),
    samples=lambda make: [(3, 4), (4, 3)],
    host_made=True,
    out_rule=fills_out,
)
def eye_m(n, m, dtype, layout, device, pin_memory):
    check_options(layout, pin_memory)
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    matrix = np.zeros((n, m), np_dtype(dtype))
    matrix.reshape(-1)[: n * m : m + 1][: min(n, m)] = 1
    return matrix


# ---------------------------------------------------------------- like a tensor


# The kernels lay their results out themselves, as `memory_format` says.
_LAID_OUT = {"batching": Batching.POINTWISE, "layout": Layout.NOTED}


def _like_shape(self, dtype, *_):
    return self._array.shape, np_dtype(dtype, self._array.dtype)


# The kernels have laid their results out: by the tensor's strides, or by the memory format that a call asks for.
_LIKE = {"nondiff": True, "shape": _like_shape, "batching": Batching.POINTWISE, "layout": Layout.NOTED, "out": False}


@op(f"empty_like(Tensor self, {LIKE}) -> Tensor", recorded_form=_recorded_empty_like, **_LIKE)
def empty_like(self, dtype, layout, device, pin_memory, memory_format):
    """A tensor like another one, whose elements have not been set.

    >>> torch.empty_like(torch.tensor([1, 2])).dtype
    torch.int64
    """
    if layout is not None or pin_memory or device is not None:
        check_options(layout, pin_memory, device)
    return _like(self, np_dtype(dtype, self.dtype), memory_format)


@op(f"zeros_like(Tensor self, {LIKE}) -> Tensor", recorded_form=_recorded_like(lambda made: aten.zero_(made)), **_LIKE)
def zeros_like(self, dtype, layout, device, pin_memory, memory_format):
    """A tensor like another one, full of zeros.

    >>> torch.zeros_like(torch.tensor([5, 6]))
    tensor([0, 0])
    """
    if layout is not None or pin_memory or device is not None:
        check_options(layout, pin_memory, device)
    if memory_format is None and self.flags.c_contiguous and 1 not in self.shape:
        return np.zeros(self.shape, np_dtype(dtype, self.dtype))
    array = like(self, np_dtype(dtype, self.dtype), memory_format)
    array.fill(0)
    return array


@op(f"ones_like(Tensor self, {LIKE}) -> Tensor", recorded_form=_recorded_like(lambda made: aten.fill_(made, 1)), **_LIKE)
def ones_like(self, dtype, layout, device, pin_memory, memory_format):
    """A tensor like another one, full of ones.

    >>> torch.ones_like(torch.tensor([5, 6]))
    tensor([1, 1])
    """
    if layout is not None or pin_memory or device is not None:
        check_options(layout, pin_memory, device)
    array = like(self, np_dtype(dtype, self.dtype), memory_format)
    array.fill(1)
    return array


@op(
    f"full_like(Tensor self, Scalar fill_value, {LIKE}) -> Tensor",
    nondiff=True,
    shape=lambda self, fill_value, dtype, *_: _like_shape(self, dtype),
    samples=lambda make: [(make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
    layout=Layout.NOTED,
    out=False,
    recorded_form=_recorded_full_like,
)
def full_like(self, fill_value, dtype, layout, device, pin_memory, memory_format):
    """A tensor like another one, with one value everywhere.

    >>> torch.full_like(torch.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    if layout is not None or pin_memory or device is not None:
        check_options(layout, pin_memory, device)
    array = like(self, np_dtype(dtype, self.dtype), memory_format)
    _fill(array, fill_value)
    return array


# ---------------------------------------------------------------- of a tensor's type


def _new_shape(self, size, dtype, *_):
    return checked_size(size), np_dtype(dtype, self._array.dtype)


def _sizes(make):
    return [(make(3, 4), (2, 2))]


@op(
    f"new_empty(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=_new_shape,
    samples=_sizes,
    batching=Batching.SIZED,
    surface=Surface.METHOD,
    recorded_form=_recorded_new_empty,
)
def new_empty(self, size, dtype, layout, device, pin_memory):
    """A tensor of the input's dtype and device, whose elements have not been set.

    >>> torch.tensor([1, 2]).new_empty(3).dtype
    torch.int64
    """
    check_options(layout, pin_memory, device)
    return _empty(checked_size(size), np_dtype(dtype, self.dtype))


@op(
    f"new_zeros(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=_new_shape,
    samples=_sizes,
    batching=Batching.SIZED,
    surface=Surface.METHOD,
    recorded_form=_recorded_new(lambda made: aten.zero_(made)),
)
def new_zeros(self, size, dtype, layout, device, pin_memory):
    """A tensor of the input's dtype and device full of zeros.

    >>> torch.tensor([1.0]).new_zeros(2)
    tensor([0., 0.])
    """
    check_options(layout, pin_memory, device)
    return np.zeros(_zeros_size(size), np_dtype(dtype, self.dtype))


@op(
    f"new_ones(Tensor self, int[] size, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=_new_shape,
    samples=_sizes,
    batching=Batching.SIZED,
    surface=Surface.METHOD,
    recorded_form=_recorded_new(lambda made: aten.fill_(made, 1)),
)
def new_ones(self, size, dtype, layout, device, pin_memory):
    """A tensor of the input's dtype and device full of ones.

    >>> torch.tensor([1.0]).new_ones(2)
    tensor([1., 1.])
    """
    check_options(layout, pin_memory, device)
    return _filled(checked_size(size), np_dtype(dtype, self.dtype), 1)


@op(
    f"new_full(Tensor self, int[] size, Scalar fill_value, {OPTIONS}) -> Tensor",
    nondiff=True,
    shape=lambda self, size, fill_value, dtype, *_: _new_shape(self, size, dtype),
    samples=lambda make: [(make(3, 4), (2, 2), 2.5)],
    batching=Batching.SIZED,
    surface=Surface.METHOD,
    recorded_form=_recorded_new_full,
)
def new_full(self, size, fill_value, dtype, layout, device, pin_memory):
    """A tensor of the input's dtype and device with one value everywhere.

    >>> torch.tensor([1.0]).new_full((2,), 5)
    tensor([5., 5.])
    """
    check_options(layout, pin_memory, device)
    return _filled(checked_size(size), np_dtype(dtype, self.dtype), fill_value)


@op(
    f"new_empty_strided(Tensor self, int[] size, int[] stride, {OPTIONS}) -> Tensor",
    nondiff=True,
    layout=Layout.NOTED,
    shape=lambda self, size, stride, dtype, *_: _new_shape(self, size, dtype),
    samples=lambda make: [],
    recorded_form=_recorded_new_empty_strided,
)
def new_empty_strided(self, size, stride, dtype, layout, device, pin_memory):
    """A tensor of the input's dtype and device with the given strides, whose elements have not been set.

    >>> torch.tensor([1, 2]).new_empty_strided((2, 2), (1, 2)).stride()
    (1, 2)
    """
    check_options(layout, pin_memory, device)
    return _strided(checked_size(size), stride, np_dtype(dtype, self.dtype))


@empty.kernel_for("meta")
def _empty_meta(size, dtype, layout, device, pin_memory, memory_format):
    check_options(layout, pin_memory)
    shape, kind = sized(size, dtype)
    return make_meta(shape, kind, steps_of_format(shape, kind.itemsize, memory_format))


def _from_meta(spec):
    """A tensor without memory as the model: memory comes with a device that is asked for."""
    at = next(i for i, argument in enumerate(spec.schema.arguments) if argument.name == "device")
    takes_format = spec.schema.arguments[-1].name == "memory_format"

    def run(self, *rest):
        device = rest[at - 1]
        if device is None or Device(device).type == "meta":
            shape, kind = spec.shape(self, *rest)
            return make_meta(tuple(shape), kind, steps_like(self._array, kind.itemsize, rest[-1]) if takes_format else None)
        # These kernels look at shape and strides alone, for which a plain array will do.
        return make_tensor(spec.kernel(self._array.view(np.ndarray), *rest))

    spec.kernel_for("meta")(run)


for _spec in (empty_like, zeros_like, ones_like, full_like, new_empty, new_zeros, new_ones, new_full, new_empty_strided):
    _from_meta(_spec)
