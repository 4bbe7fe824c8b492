"""Complex numbers made of two tensors of real ones."""

from __future__ import annotations

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Autocast, Batching, Layout
from ..._dispatch.registry import op
from .._support.common import scalar_name
from .._support.out_rules import complex_of_self


def _check_parts(first, second):
    if any(a.dtype.kind != "f" for a in (first, second)):
        raise RuntimeError(
            f"Expected both inputs to be Half, Float or Double tensors but got {scalar_name(first)} and {scalar_name(second)}"
        )
    if first.dtype is not second.dtype:
        raise RuntimeError(
            f"Expected object of scalar type {scalar_name(first)} but got scalar type {scalar_name(second)} for second argument"
        )


def _complex_shape(first, second):
    shape = np.broadcast_shapes(first._array.shape, second._array.shape)
    return shape, dt.from_numpy(first._array.dtype).to_complex().np


@op(
    "complex(Tensor real, Tensor imag) -> Tensor",
    layout=Layout.OPERANDS,
    shape=_complex_shape,
    batching=Batching.POINTWISE,
    out_rule=complex_of_self,
)
def complex_(real, imag):
    """Complex numbers from their real and imaginary parts.

    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j])
    """
    _check_parts(real, imag)
    array = np.empty((*np.broadcast_shapes(real.shape, imag.shape), 2), real.dtype)
    array[..., 0] = real
    array[..., 1] = imag
    return array.view(dt.from_numpy(real.dtype).to_complex().np)[..., 0]


complex_.vjp(real=lambda g: g.real, imag=lambda g: g.imag)


@op(
    "polar(Tensor abs, Tensor angle) -> Tensor",
    layout=Layout.OPERANDS,
    shape=_complex_shape,
    autocast=Autocast.FLOAT32,
    batching=Batching.POINTWISE,
    out_rule=complex_of_self,
)
def polar(abs, angle):
    """Complex numbers from their lengths and angles.

    >>> torch.polar(torch.tensor([2.0]), torch.tensor([0.0]))
    tensor([2.+0.j])
    """
    _check_parts(abs, angle)
    array = np.empty(np.broadcast_shapes(abs.shape, angle.shape), dt.from_numpy(abs.dtype).to_complex().np)
    np.multiply(abs, np.cos(angle), out=array.real)
    np.multiply(abs, np.sin(angle), out=array.imag)
    return array


@polar.vjp
def _polar_grad(g, abs, angle, result):
    turned = g.conj() * result
    return (g.conj() * result.sgn()).real, -turned.imag
