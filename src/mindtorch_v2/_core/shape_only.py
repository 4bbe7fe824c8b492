"""Arrays with a shape, strides and a dtype whose elements must not be read: sparse tensors, samples inside vmap, device meta.

Such an array must have strides of its own, so NumPy takes it for one with elements at those addresses. Two things keep them
from being read. Its class refuses. And where a class is lost, as in `np.asarray`, the addresses are those of a mapping that
is as long as the array, holds zeros, takes up no memory and cannot be written to: `addresses`.
"""

from __future__ import annotations

import mmap
from typing import Any, NoReturn, TypeVar

import numpy as np

from .strides import reach_of


class CannotBatch(RuntimeError):
    """An operation that vmap can do only sample by sample."""


class ShapeOnlyArray(np.ndarray):
    """The `_array` of a sparse tensor, or of one sample of a batched one. Reading or computing with elements raises."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise CannotBatch(
            "this function reads the elements of a tensor directly, which cannot be done for one that is sparse "
            "or batched by vmap"
        )

    __array_ufunc__ = __array_function__ = __getitem__ = __setitem__ = __bool__ = __float__ = __int__ = _refuse
    item = tolist = copy = reshape = transpose = tobytes = fill = ravel = swapaxes = squeeze = _refuse

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:  # type: ignore[override]
        """The same shape in another dtype: an op's entry promotes its operands before it looks at their keys."""
        return np.broadcast_to(np.zeros((), dtype), self.shape).view(ShapeOnlyArray)


class MetaArray(np.ndarray):
    """The `_array` of a tensor on the meta device. Other views of it can be taken; whatever reads or writes elements raises."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")

    __array_ufunc__ = __iter__ = __contains__ = __setitem__ = __copy__ = __deepcopy__ = __reduce_ex__ = _refuse

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """NumPy's functions that look at shapes, or take views by the methods below; all others are refused."""
        return super().__array_function__(function, types, args, kwargs) if function in _OF_SHAPES else self._refuse()

    def __repr__(self) -> str:
        return f"MetaArray(shape={self.shape}, strides={self.strides}, dtype={self.dtype})"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def _refuse_number(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors")

    __bool__ = __float__ = __int__ = __complex__ = __index__ = item = _refuse_number

    def __getitem__(self, index: Any) -> MetaArray:
        """A view; what would be one element, or a copy of several, is refused."""
        parts = index if isinstance(index, tuple) else (index,)
        for part in parts:
            if not (part is None or part is Ellipsis or isinstance(part, int | slice)) or isinstance(part, bool):
                self._refuse()
        view = np.ndarray.__getitem__(self, index)
        return view if isinstance(view, MetaArray) else self._refuse()

    def reshape(self, *shape: Any, **options: Any) -> MetaArray:  # type: ignore[override]
        """A view of another shape. ValueError where the elements do not fit; where they would have to be moved, a refusal."""
        try:
            return np.ndarray.reshape(self, *shape, **{**options, "copy": False})
        except ValueError as error:
            if "copy" in options or "copy" not in str(error):
                raise
        return self._refuse()


# Functions and methods that look at no element.
_OF_SHAPES = frozenset({np.expand_dims, np.moveaxis, np.ndim, np.shape, np.size, np.squeeze, np.swapaxes, np.transpose})
_WITHOUT_ELEMENTS = frozenset({"diagonal", "item", "reshape", "setflags", "squeeze", "swapaxes", "transpose", "view"})
# All others refuse, also those that a later NumPy adds.
for _name in dir(np.ndarray):
    if not _name.startswith("_") and callable(getattr(np.ndarray, _name)) and _name not in _WITHOUT_ELEMENTS:
        setattr(MetaArray, _name, MetaArray._refuse)


# ---------------------------------------------------------------- addresses without memory

A = TypeVar("A", bound=np.ndarray)
# Of mappings: shorter ones are not worth being replaced.
_LEAST_BYTES = 1 << 30


class _Mapping:
    """The longest mapping of zeros so far. An array keeps that which it was made with."""

    longest = memoryview(b"")


def addresses(nbytes: int) -> np.ndarray:
    """That many bytes that are zero, take up no memory and cannot be written to."""
    known = _Mapping.longest
    if known.nbytes < nbytes or not known.nbytes:
        known = _Mapping.longest = memoryview(_map_zeros(max(_LEAST_BYTES, 1 << (nbytes - 1).bit_length())))
    return np.frombuffer(known, np.uint8, nbytes)


def _map_zeros(nbytes: int) -> mmap.mmap:
    """Pages that can only be read; the operating system gives them no memory of their own."""
    try:
        if hasattr(mmap, "MAP_PRIVATE"):
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
            return mmap.mmap(-1, nbytes, flags=flags, prot=mmap.PROT_READ)
        return mmap.mmap(-1, nbytes, access=mmap.ACCESS_READ)
    except (OSError, OverflowError):
        raise RuntimeError(
            f"a tensor without memory is given addresses, and the operating system has none for {nbytes} bytes"
        ) from None


def without_memory(kind: type[A], shape: tuple[int, ...], np_dtype: np.dtype, strides: tuple[int, ...]) -> A:
    """An array of a class that refuses to be read, with any shape and byte strides."""
    reach = reach_of(shape, strides, 0, np_dtype.itemsize)
    return np.ndarray.__new__(kind, shape, np_dtype, addresses(reach), 0, strides)


_scalars: dict[Any, Any] = {}


def without_first_dim(array: np.ndarray) -> Any:
    """Shape, strides and dtype of an array's entries along dim 0."""
    shape = array.shape
    if len(shape) == 1:
        scalar = _scalars.get(array.dtype)
        if scalar is None:
            scalar = _scalars[array.dtype] = np.empty((), array.dtype).view(ShapeOnlyArray)
        return scalar
    if shape[0]:
        return np.ndarray.__getitem__(array, 0).view(ShapeOnlyArray)
    return without_memory(ShapeOnlyArray, shape[1:], array.dtype, array.strides[1:])
