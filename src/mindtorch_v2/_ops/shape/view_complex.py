"""Complex tensors as pairs of real numbers and back; conjugate transposes."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._core.keys import AUTOGRAD, CONJUGATED
from ..._core.strides import memory_of, restride
from ..._core.tensor import make_view
from ..._dispatch.facts import Autocast, Batching, Surface
from ..._dispatch.registry import aten, composite, op
from .._support.common import scalar_name
from .._support.warn import warn_once

_PARTS = {np.dtype(np.complex64): np.dtype(np.float32), np.dtype(np.complex128): np.dtype(np.float64)}
_WHOLE = {real: whole for whole, real in _PARTS.items()}


@op("view_as_real(Tensor(a) self) -> Tensor(a)", samples=lambda make: [], batching=Batching.POINTWISE)
def view_as_real(self):
    """Complex numbers as pairs of real numbers in a last dim, without a copy.

    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    part = _PARTS.get(self.dtype) or (np.dtype(np.float16) if self.dtype.kind == "W" else None)
    if part is None:
        raise RuntimeError("view_as_real is only supported for complex tensors")
    if self.flags.c_contiguous:
        return self.view(part).reshape(*self.shape, 2) if self.ndim else self.reshape(1).view(part)
    return restride(self, (*self.shape, 2), (*self.strides, part.itemsize), part)


@view_as_real.kernel_for("lazy")
def _view_as_real_of_lazy(self):
    if self._keys & CONJUGATED:
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can "
            "view it as real, use self.resolve_conj(); however, be warned that the resulting tensor will NOT alias the "
            "original."
        )
    view = make_view(view_as_real.kernel(self._array), self)
    view._keys = self._keys & ~AUTOGRAD
    return view


view_as_real.vjp(self=lambda g: aten.view_as_complex(g if g._array.flags.c_contiguous else aten.contiguous(g)))


@op(
    "view_as_complex(Tensor(a) self) -> Tensor(a)",
    samples=lambda make: [],
    autocast=Autocast.FLOAT32,
    batching=Batching.POINTWISE,
)
def view_as_complex(self):
    """Pairs of real numbers in the last dim as complex numbers, without a copy.

    >>> torch.view_as_complex(torch.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """
    whole = _WHOLE.get(self.dtype) or (dt.complex32.np if self.dtype == np.float16 else None)
    if whole is None:
        raise RuntimeError(
            "view_as_complex is only supported for half, float and double tensors, but got a tensor of "
            f"scalar type: {scalar_name(self)}"
        )
    if not self.ndim:
        raise RuntimeError("Input tensor must have one or more dimensions")
    if self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    if not self.size:  # NumPy's strides of nothing are no guide
        return np.empty(self.shape[:-1], whole)
    if self.strides[-1] != self.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if any(s % whole.itemsize for s in self.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")
    if self.base is not None and memory_of(self)[1] % whole.itemsize:
        raise RuntimeError("Tensor must have a storage_offset divisible by 2")
    return self.view(whole)[..., 0] if self.ndim > 1 else self.view(whole).reshape(())


view_as_complex.vjp(self=lambda g: aten.view_as_real(aten.resolve_conj(g)))


@composite("real(Tensor(a) self) -> Tensor(a)", handwritten=Surface.METHOD)
def real(self):
    """The real parts of complex numbers, as a view.

    >>> torch.real(torch.tensor([1 + 2j]))
    tensor([1.])
    """
    if self._array.dtype.kind not in "cW":
        return self
    held = aten._conj(self) if self._keys & CONJUGATED else self
    return aten.select(aten.view_as_real(held), -1, 0)


@composite("imag(Tensor(a) self) -> Tensor(a)", samples=lambda make: [], handwritten=Surface.METHOD)
def imag(self):
    """The imaginary parts of complex numbers, as a view.

    >>> torch.imag(torch.tensor([1 + 2j]))
    tensor([2.])
    """
    if self._array.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if self._keys & CONJUGATED:
        return aten._neg_view(aten.select(aten.view_as_real(aten._conj(self)), -1, 1))
    return aten.select(aten.view_as_real(self), -1, 1)


# ---------------------------------------------------------------- conjugate transposes


def _conjugated(self):
    return aten._conj(self) if self._array.dtype.kind in "cW" else self


@composite("matrix_H(Tensor(a) self) -> Tensor(a)")
def matrix_H(self):
    """The conjugate transpose of a matrix, which `Tensor.H` is.

    >>> torch.tensor([[1 + 1j, 2]]).H.resolve_conj()
    tensor([[1.-1.j],
            [2.-0.j]])
    """
    ndim = self._array.ndim
    if ndim not in (0, 2):
        hint = " For batches of matrices, consider using tensor.mH" if ndim > 2 else ""
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {ndim}-D tensor.{hint}")
    if not ndim:
        warn_once("Tensor.H is deprecated on 0-D tensors. Consider using x.conj().")
    return _conjugated(aten.transpose(self, 0, 1) if ndim else self)


def _adjoint(name):
    def body(self):
        ndim = self._array.ndim
        if ndim < 2:
            raise RuntimeError(f"{name} is only supported on matrices or batches of matrices. Got {ndim}-D tensor.")
        return _conjugated(aten.transpose(self, -2, -1))

    return body


composite(
    "mH(Tensor(a) self) -> Tensor(a)",
    _adjoint("tensor.mH"),
    doc="""The conjugate transpose of the last two dims, as a property.

    >>> torch.tensor([[1 + 1j, 2]]).mH.resolve_conj()
    tensor([[1.-1.j],
            [2.-0.j]])
    """,
    handwritten=Surface.METHOD,
)
composite(
    "adjoint(Tensor(a) self) -> Tensor(a)",
    _adjoint("tensor.adjoint()"),
    doc="""The conjugate transpose of the last two dims.

    >>> torch.adjoint(torch.tensor([[1 + 1j, 2]])).resolve_conj()
    tensor([[1.-1.j],
            [2.-0.j]])
    """,
)


PROPERTIES = {
    "H": property(lambda self: aten.matrix_H(self)),
    "mH": property(lambda self: aten.mH(self)),
    "real": property(lambda self: aten.real(self), lambda self, value: aten.copy_(aten.real(self), value)),
    "imag": property(lambda self: aten.imag(self), lambda self, value: aten.copy_(aten.imag(self), value)),
}
