"""Copies and conversions between dtypes, devices and memory formats."""

from __future__ import annotations

import warnings

import numpy as np

from ..._core import parallel
from ..._core.copy_on_write import lazy_clone as _lazy_clone
from ..._core.cpython import REFCOUNT_WITH_OWNER, getrefcount
from ..._core.device import device as Device
from ..._core.keys import AUTOGRAD, BACKENDS, CONJUGATED, LAZY, META, NEGATED
from ..._core.layout import dense_cast, dense_copy, on_the_way, steps_like, suggested_format
from ..._core.memory_format import channels_last, contiguous_format, preserve_format
from ..._core.single_pass import TURNED, copy_into
from ..._core.storage import DETACHED, SHARED, Storage, owner_of
from ..._core.strides import row_major as row_major_steps
from ..._core.tensor import make_alias, make_meta, make_tensor, storage_of
from ..._dispatch import backends
from ..._dispatch.errors import broadcast_mismatch, depends_on_values
from ..._dispatch.facts import Batching, Layout, Overlap, Surface
from ..._dispatch.lazy_values import held_values, resolved
from ..._dispatch.registry import aten, composite, op
from .._support.common import like_first, np_dtype
from .._support.factory import check_options, laid_out, like
from .._support.numbers import number_of

_CPU = Device("cpu")
# From this many elements on a transposed matrix is copied in tiles, whose rows fill one line of the cache, in bytes:
# from `_LARGE` where the steps between its columns are multiples of `_CLASHING` bytes, from `_HUGE` always.
_LARGE, _HUGE = 1 << 16, 1 << 23
_CLASHING = 512
_LINE = 64
_TILE_ROWS = 256
_FEW_TIMES = 4


def row_major(array):
    """A copy with the last dim innermost.

    Where the last dim repeats each element a few times, one copy goes through all elements at a time: loops of a few are slow.
    A large transposed matrix goes tile by tile: element by element along a row of the copy, every step would fetch
    another line of the original, and in matrices of some widths these lines push each other out of the cache.
    """
    if array.size >= _LARGE and array.strides[-1] == 0 and 1 < array.shape[-1] <= _FEW_TIMES:
        copied = np.empty(array.shape, array.dtype)
        for k in range(array.shape[-1]):
            copied[..., k] = array[..., 0]
        return copied
    if (
        array.size < _LARGE
        or array.ndim < 2
        or array.strides[-2] != array.itemsize
        or (array.strides[-1] % _CLASHING and array.size < _HUGE)
        or array.itemsize > _LINE
    ):
        copied = np.empty(array.shape, array.dtype)
        copy_into(copied, array)
        return copied
    copied = np.empty(array.shape, array.dtype)
    width = _LINE // array.itemsize

    def copy_rows(rows):
        for left in range(0, array.shape[-1], width):
            columns = slice(left, left + width)
            copied[..., rows, columns] = array[..., rows, columns]

    share = parallel.blocks if array.size >= TURNED else parallel.each_block
    share(array.shape[-2], _TILE_ROWS, copy_rows)
    return copied


def in_format(array, memory_format):
    """A copy in a memory format; None keeps the order of dims."""
    if memory_format is None or memory_format is preserve_format:
        return dense_copy(array)
    if memory_format is contiguous_format:
        return row_major(array)
    copied = laid_out(array.shape, array.dtype, memory_format)
    copy_into(copied, array)
    return copied


@op(
    "clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
    layout=Layout.NOTED,
    shape=like_first,
    batching=Batching.POINTWISE,
    out=False,
)
def clone(self, memory_format):
    """A copy with memory of its own, through which gradients flow.

    >>> torch.clone(torch.tensor([1, 2]))
    tensor([1, 2])
    """
    if memory_format is None:
        return dense_copy(self)
    return in_format(self, memory_format)


@clone.kernel_for("lazy")
def _clone_of_lazy(self, memory_format):
    copied = aten.clone(held_values(self), memory_format=memory_format)
    if self._keys & CONJUGATED:
        aten.conj_physical_(copied)
    return aten.neg_(copied) if self._keys & NEGATED else copied


clone.vjp(self=lambda g: g)


@composite(
    "contiguous(Tensor(a) self, *, MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
    surface=Surface.METHOD,
    handwritten=Surface.METHOD,
)
def contiguous(self, memory_format):
    """The tensor itself if its elements lie in order of its dims, else a copy that does.

    >>> torch.tensor([[1, 2], [3, 4]]).t().contiguous().stride()
    (2, 1)
    """
    if memory_format is preserve_format:
        raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
    return aten.clone(self, memory_format=memory_format or contiguous_format)


@op(
    "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
    node="torch::autograd::CopyBackwards",
    checks_overlap=Overlap.PART,
    number_source=True,
    stops_at_integers=True,
    batching=Batching.POINTWISE,
)
def copy_(self, src, non_blocking):
    try:
        if src.dtype.kind in "cW" and self.dtype.kind not in "cW":  # W: complex32
            # An imaginary number is true.
            src = true_places(src) if self.dtype.kind == "b" else _real_part(src)
        if src.ndim > self.ndim:
            raise ValueError  # NumPy drops dims of size one
        copy_into(self, on_the_way(src, self.dtype), "unsafe")
    except ValueError:
        if broadcast_mismatch([self.shape, src.shape]) is None:
            if not self.flags.writeable:
                raise
            raise RuntimeError(
                f"output with shape {list(self.shape)} doesn't match the broadcast shape "
                f"{list(np.broadcast_shapes(self.shape, src.shape))}"
            ) from None
        raise RuntimeError(broadcast_mismatch([self.shape, src.shape])) from None


@copy_.kernel_for("meta")
def _copy_meta(self, src, non_blocking):
    if not self._keys & META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    mismatch = broadcast_mismatch([self._array.shape, src._array.shape])
    if mismatch is not None:
        raise RuntimeError(mismatch)
    return self


copy_.vjp(self=lambda g: aten.zeros_like(g), src=lambda g: g)


@composite("_lazy_clone(Tensor self) -> Tensor", samples=lambda make: [(make(3, 4),)])
def lazy_clone(self):
    """A copy that shares the tensor's memory until one of the two is written to.

    >>> x = torch.tensor([1, 2])
    >>> y = x._lazy_clone()
    >>> y += 1
    >>> x
    tensor([1, 2])
    """
    if self._keys & (BACKENDS | LAZY):
        return aten.clone(self)
    return _lazy_clone(self)


lazy_clone.vjp(self=lambda g: g)


@op(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    shape=like_first,
    batching=Batching.POINTWISE,
    surface=Surface.NONE,
)
def copy(self, src, non_blocking):
    """A tensor like the input with the values of `src`.

    >>> torch.ops.aten.copy(torch.zeros(2), torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    made = like(self, self.dtype)
    copy_.kernel(made, src, non_blocking)
    return made


copy.vjp(self=lambda g: aten.zeros_like(g), src=lambda g: g)


# ---------------------------------------------------------------- filling


@op(
    "fill_.Scalar(Tensor(a!) self, Scalar value) -> Tensor(a!)",
    node="FillBackward2",
    samples=lambda make: [(make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
)
def fill_(self, value):
    if not self.flags.writeable:
        self = _places(self)
    try:
        # NumPy checks integers only; any dtype of floating numbers holds these. It rounds to float16 (e) otherwise than torch.
        if (0 <= value < 60000 or (-60000 < value < 0 and self.dtype.kind != "u")) and self.dtype.char != "e":
            self.fill(value)
            return
    except (OverflowError, TypeError, ValueError):
        pass
    _fill_checked(self, value)


def _places(array):
    """The places that an expanded array stands for, each once: filling may write where others must not."""
    owner = owner_of(array)
    if not owner.flags.writeable:
        return array
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    shape = tuple(1 if step == 0 else n for n, step in zip(array.shape, array.strides, strict=True))
    return np.ndarray(shape if array.size else array.shape, array.dtype, owner, offset, array.strides)


def _fill_checked(array, value):
    """Fill with a number under torch's rules of what fits a dtype."""
    if array.dtype.kind == "V" and array.dtype.itemsize == 1 and not isinstance(value, complex):
        array.fill(array.dtype.type(float(value)))  # too large a number becomes infinity
    else:
        array.fill(number_of(value, array.dtype))


fill_.vjp(self=lambda g: aten.zeros_like(g))


@op(
    "fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)",
    node="FillBackward3",
    samples=lambda make: [(make(3, 4), make())],
    batching=Batching.POINTWISE,
)
def fill_tensor(self, value):
    if value.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions.")
    if value.dtype.kind in "cW" and self.dtype.kind not in "cWb":
        value = _real_part(value)
    np.copyto(self, on_the_way(value, self.dtype), "unsafe")


fill_tensor.vjp(self=lambda g: aten.zeros_like(g), value=lambda g: g.sum())


def _filled_copy(self, value):
    made = like(self, self.dtype)
    fill_.kernel(made, value)
    return made


op(
    "fill.Scalar(Tensor self, Scalar value) -> Tensor",
    _filled_copy,
    shape=like_first,
    samples=lambda make: [(make(3, 4), 0.5)],
    batching=Batching.POINTWISE,
    doc="""A tensor like the input with one value everywhere.

    >>> torch.fill(torch.zeros(2), 3)
    tensor([3., 3.])
    """,
    out=False,
).vjp(self=lambda g: aten.zeros_like(g))


@op(
    "fill.Tensor(Tensor self, Tensor value) -> Tensor",
    shape=like_first,
    node="FillBackward1",
    samples=lambda make: [(make(3, 4), make())],
    batching=Batching.POINTWISE,
    out=False,
)
def fill_with_tensor(self, value):
    made = like(self, self.dtype)
    fill_tensor.kernel(made, value)
    return made


fill_with_tensor.vjp(self=lambda g: aten.zeros_like(g), value=lambda g: g.sum())


@op("zero_(Tensor(a!) self) -> Tensor(a!)", batching=Batching.POINTWISE)
def zero_(self):
    (self if self.flags.writeable else _places(self)).fill(0)


zero_.vjp(self=lambda g: aten.zeros_like(g))


# ---------------------------------------------------------------- conversion


def _real_part(array):
    warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)
    return array.real if array.dtype.kind == "c" else array.astype(np.complex64).real


def true_places(array):
    """Where complex numbers are not 0."""
    return (array if array.dtype.kind == "c" else array.astype(np.complex64)) != 0


def converted(array, target):
    """A new array of another dtype; what does not fit is no error, as in C."""
    kind = array.dtype.kind
    if kind == "W" and target.kind == "b":  # complex32
        return true_places(array)
    if kind in "cW" and target.kind not in "cWb":  # W: complex32
        array = _real_part(array)
        kind = "f"
    if kind in "fV" and (target.kind in "iu" or target.itemsize < array.itemsize):
        with np.errstate(all="ignore"):
            return dense_cast(array, target)
    return dense_cast(array, target)


@composite(
    "_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None, bool non_blocking=False, MemoryFormat? memory_format=None) -> Tensor",
    samples=lambda make: [(make(3, 4),)],
    batching=Batching.POINTWISE,
    pin_memory_stays_open=True,
)
def to_copy(self, dtype, layout, device, pin_memory, non_blocking, memory_format):
    check_options(layout, pin_memory)
    array = self._array
    target = np_dtype(dtype, array.dtype)
    if (device is not None and device is not _CPU) or self._keys > AUTOGRAD:
        return _to_device(self, dtype, target, device, non_blocking, memory_format)
    if target is array.dtype:
        return _noted(in_format(array, memory_format))
    result = converted(array, target)
    if memory_format is not None and memory_format is not preserve_format:
        result = in_format(result, memory_format)
    return _noted(result)


def _noted(array):
    """A tensor around fresh memory, with its storage if that is not row-major: see `Layout.NOTED`."""
    tensor = make_tensor(array)
    if not array.flags.c_contiguous:
        storage_of(tensor)
    return tensor


def _real_grad(g, self_dtype):
    """A gradient that may be complex although the input was not: its imaginary part belongs to no input."""
    return (aten.real(g) if g.is_complex() and not self_dtype.is_complex else g).to(self_dtype)


to_copy.vjp(self=_real_grad)


def _to_device(tensor, dtype, target, device, non_blocking, memory_format):
    """To or from a device that is not the CPU: a backend registers how with `kernel_for`."""
    wanted = tensor.device if device is None else backends.resolved(Device(device))
    backends.load(wanted.type)
    for place in (wanted.type, tensor.device.type):
        kernel = to_copy.kernels.get(place)
        if kernel is not None:
            return kernel(tensor, dtype, wanted, non_blocking, memory_format)
    if wanted.type == "meta":
        return make_meta(tensor._array.shape, target, steps_like(tensor._array, target.itemsize, memory_format))
    if tensor._keys & META:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    if wanted.type == "cpu":
        tensor = resolved(tensor)
        return make_tensor(in_format(converted(tensor._array, target), memory_format))
    raise AssertionError(f"Torch not compiled with {wanted.type.upper()} enabled")


def _to(self, dtype, device, layout, pin_memory, non_blocking, copy, memory_format):
    """What every form of `to` does: the tensor itself if it is so already, else a copy."""
    array = self._array
    if (
        not copy
        and (dtype is None or np_dtype(dtype) is array.dtype)
        and (device is None or backends.resolved(Device(device)) is self.device)
        and (memory_format is None or memory_format is suggested_format(array) or memory_format is preserve_format)
    ):
        return self
    return aten._to_copy(
        self,
        dtype=dtype,
        layout=layout,
        device=device,
        pin_memory=pin_memory,
        non_blocking=non_blocking,
        memory_format=memory_format,
    )


def in_memory_format(array, memory_format):
    """Whether an array lies in memory as a format demands."""
    if memory_format is contiguous_format or memory_format is preserve_format:
        return array.flags.c_contiguous
    if array.ndim != (4 if memory_format is channels_last else 5):
        return False
    if not array.size:  # NumPy has such an array in every order
        steps, step = array.strides if any(array.strides) else row_major_steps(array.shape, array.itemsize), array.itemsize
        for dim in (1, *range(array.ndim - 1, 1, -1), 0):
            if array.shape[dim] != 1 and steps[dim] != step:
                return False
            step *= array.shape[dim]
        return True
    return array.transpose(0, *range(2, array.ndim), 1).flags.c_contiguous


_REST = "bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)"


@composite(
    f"to.device(Tensor(a) self, Device device, ScalarType dtype, {_REST}",
    samples=lambda make: [],
    surface=Surface.METHOD,
    handwritten=Surface.METHOD,
    pin_memory_stays_open=True,
)
def to_device(self, device, dtype, non_blocking, copy, memory_format):
    """The tensor with another dtype, on another device, or in another memory format; itself if nothing changes.

    >>> torch.tensor([1, 2]).to(torch.float32)
    tensor([1., 2.])
    """
    return _to(self, dtype, device, None, None, non_blocking, copy, memory_format)


@composite(
    f"to.dtype(Tensor(a) self, ScalarType dtype, {_REST}",
    samples=lambda make: [],
    surface=Surface.METHOD,
    handwritten=Surface.METHOD,
    pin_memory_stays_open=True,
)
def to_dtype(self, dtype, non_blocking, copy, memory_format):
    return _to(self, dtype, None, None, None, non_blocking, copy, memory_format)


@composite(
    f"to.other(Tensor(a) self, Tensor other, {_REST}",
    samples=lambda make: [(make(3, 4), make(3, 4))],
    surface=Surface.METHOD,
    handwritten=Surface.METHOD,
    pin_memory_stays_open=True,
)
def to_other(self, other, non_blocking, copy, memory_format):
    return _to(self, other.dtype, other.device, None, None, non_blocking, copy, memory_format)


@composite(
    "to.dtype_layout(Tensor(a) self, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    f"bool? pin_memory=None, {_REST}",
    samples=lambda make: [(make(3, 4),)],
    surface=Surface.METHOD,
    handwritten=Surface.METHOD,
    pin_memory_stays_open=True,
)
def to_dtype_layout(self, dtype, layout, device, pin_memory, non_blocking, copy, memory_format):
    return _to(self, dtype, device, layout, pin_memory, non_blocking, copy, memory_format)


@composite("type_as(Tensor self, Tensor other) -> Tensor", surface=Surface.METHOD)
def type_as(self, other):
    """The tensor with the dtype and device of another one.

    >>> torch.tensor([1, 2]).type_as(torch.tensor([1.0]))
    tensor([1., 2.])
    """
    return to_dtype_layout(self, dtype=other.dtype, device=other.device)


# ---------------------------------------------------------------- out of history, out of tensors


@composite("detach(Tensor(a) self) -> Tensor(a)", nondiff=True, dispatched=True)
def detach(self):
    """A view that has no history: gradients stop here.

    >>> torch.detach(torch.ones(2, requires_grad=True)).requires_grad
    False
    """
    return make_alias(self._array, self)


@composite("detach_(Tensor(a!) self) -> Tensor(a!)", nondiff=True)
def detach_(self):
    if self._base is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
            "detach_() cannot be called on these gradients. To fix this error, please refer to the "
            "Optimizer.zero_grad() function in torch/optim/optimizer.py as the solution."
        )
    if self._keys & AUTOGRAD:
        node = self._node
        self._keys &= ~AUTOGRAD
        del self._node
        if not node.is_accumulator:
            _note_detached(self, node)
    return self


def _note_detached(self, node):
    """Let nodes that saved a tensor before it lost its history see that, by a version that none of them knows.

    Only where no other tensor counts versions with it: its storage is its own, or shared with the node that it came from.
    """
    storage = storage_of(self)
    of_node = sum(value is storage for value in getattr(node, "saved", None) or ())
    if getrefcount(storage) > REFCOUNT_WITH_OWNER + 1 + of_node:
        return
    if of_node:
        own = Storage(storage.owner, external=storage.external, device=storage.place)
        own.version = storage.version
        storage.external = storage.external or SHARED
        self._storage = storage = own
    storage.version += DETACHED


@composite("lift_fresh(Tensor(a) self) -> Tensor(a)")
def lift_fresh(self):
    """The tensor itself: what a fresh tensor goes through on its way into a program.

    >>> torch.ops.aten.lift_fresh(torch.tensor([1]))
    tensor([1])
    """
    return self


@op("_local_scalar_dense(Tensor self) -> Scalar", nondiff=True)
def local_scalar_dense(self):
    return self.item()


@local_scalar_dense.kernel_for("meta")
def _local_scalar_of_meta(self):
    raise depends_on_values(RuntimeError("Tensor.item() cannot be called on meta tensors"))


@composite("item(Tensor self) -> Scalar", handwritten=Surface.METHOD)
def item(self):
    """The only element as a Python number.

    >>> torch.tensor([3]).item()
    3
    """
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    return aten._local_scalar_dense(self)


@composite("is_nonzero(Tensor self) -> bool")
def is_nonzero(self):
    """Whether the only element of a tensor is not zero.

    >>> torch.is_nonzero(torch.tensor([3]))
    True
    """
    if self._array.size != 1:
        raise RuntimeError(
            "Boolean value of Tensor with more than one value is ambiguous"
            if self._array.size
            else "Boolean value of Tensor with no values is ambiguous"
        )
    return bool(aten.item(self))
