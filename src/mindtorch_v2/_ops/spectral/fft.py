"""Discrete Fourier transforms: three kernels, and the forms torch.fft makes of them."""

from __future__ import annotations

import math

import numpy as np

from ..._core import dtype as dt
from ..._dispatch.facts import Autocast, Batching
from ..._dispatch.registry import aten, composite, op
from .._support.common import existing_dim, normal_dim, np_dtype, scalar_name

# Real numbers whose transform of one dim is made from the half of it that stands for all.
_MANY = 1 << 12

# How a transform is scaled: not at all, by 1 / sqrt(n), or by 1 / n.
NONE, ROOT, WHOLE = range(3)

# NumPy's transforms of one dim; those of several have an n behind. By name, as np.fft is loaded when it is first used.
_FORWARD, _BACKWARD, _OF_REAL, _TO_REAL = "fft", "ifft", "rfft", "irfft"


_DOCS = {
    "fft_fft2": """The discrete Fourier transform along two dims.

    >>> torch.fft.fft2(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_fftn": """The discrete Fourier transform along several dims.

    >>> torch.fft.fftn(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_ifft2": """The inverse discrete Fourier transform along two dims.

    >>> torch.fft.ifft2(torch.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_ifftn": """The inverse discrete Fourier transform along several dims.

    >>> torch.fft.ifftn(torch.ones(2, 2))
    tensor([[1.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_rfft2": """The discrete Fourier transform of real numbers along two dims.

    >>> torch.fft.rfft2(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_rfftn": """The discrete Fourier transform of real numbers along several dims.

    >>> torch.fft.rfftn(torch.ones(2, 2))
    tensor([[4.+0.j, 0.+0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_irfft2": """The inverse of `rfft2`.

    >>> torch.fft.irfft2(torch.ones(2, 2) + 0j)
    tensor([[1., 0.],
            [0., 0.]])
    """,
    "fft_irfftn": """The inverse of `rfftn`.

    >>> torch.fft.irfftn(torch.ones(2, 2) + 0j)
    tensor([[1., 0.],
            [0., 0.]])
    """,
    "fft_hfft2": """The transform of a Hermitian signal along two dims.

    >>> torch.fft.hfft2(torch.ones(2, 2) + 0j)
    tensor([[4., 0.],
            [0., 0.]])
    """,
    "fft_hfftn": """The transform of a Hermitian signal along several dims.

    >>> torch.fft.hfftn(torch.ones(2, 2) + 0j)
    tensor([[4., 0.],
            [0., 0.]])
    """,
    "fft_ihfft2": """The inverse of `hfft2`.

    >>> torch.fft.ihfft2(torch.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.+0.j, 0.+0.j]])
    """,
    "fft_ihfftn": """The inverse of `hfftn`.

    >>> torch.fft.ihfftn(torch.ones(2, 2))
    tensor([[1.-0.j, 0.-0.j],
            [0.+0.j, 0.+0.j]])
    """,
}


def _scaled(array, dims, normalization, sizes):
    if normalization == NONE:
        return array
    count = math.prod(sizes[d] for d in dims)
    return np.divide(array, np.array(math.sqrt(count) if normalization == ROOT else count, array.real.dtype))


def _innermost(array, dims, keep_last):
    """(the array with the transformed dims last, the way back), or (the array, None) where it is laid out so already.

    Results are laid out so, as torch does it: dims come in the order of their strides, but for the last one transformed
    where that has a part of its own.
    """
    ndim = array.ndim
    contiguous = array.flags.c_contiguous
    dims = [d % ndim for d in dims]
    if contiguous and dims == list(range(ndim - len(dims), ndim)):
        return array, None
    strides = array.strides
    last = dims[-1:] if keep_last else []

    def step(d):
        return -strides[d]

    order = [
        *sorted((d for d in range(ndim) if d not in dims), key=step),
        *sorted(dims[:-1] if keep_last else dims, key=step),
        *last,
    ]
    if contiguous and order == list(range(ndim)):
        return array, None
    return array.transpose(order), np.argsort(order)


def _transform(name, array, dims, dtype, last=None, **options):
    """A transform of NumPy's over dims that become the innermost of the result; `last` is its size in the last one, where
    that is not the array's."""
    turned, back = _innermost(array, dims, last is not None)
    if back is not None:
        # Left to itself, NumPy would keep the order of dims that the array had.
        options["out"] = np.empty(turned.shape if last is None else (*turned.shape[:-1], last), dtype)
        dims = range(-len(dims), 0)
    if len(dims) == 1:
        spectrum = getattr(np.fft, name)(turned, axis=dims[0], **options)
    else:
        spectrum = getattr(np.fft, f"{name}n")(turned, axes=dims, **options)
    return spectrum if back is None else spectrum.transpose(back)


def _complex(dtype):
    return dt.from_numpy(dtype).to_complex().np


def _one_and_two(make):
    return [
        (aten.complex(make(3, 4), make(3, 4)), (1,), NONE, True),
        (aten.complex(make(3, 4), make(3, 4)), (0, 1), ROOT, False),
    ]


@op(
    "_fft_c2c(Tensor self, int[] dim, int normalization, bool forward) -> Tensor",
    node="FftC2CBackward0",
    shape=lambda self, dim, normalization, forward: (self._array.shape, self._array.dtype),
    samples=_one_and_two,
    batching=Batching.ALONG_DIM,
)
def fft_c2c(self, dim, normalization, forward):
    if self.dtype.kind != "c":
        raise RuntimeError(f"Only supports complex dtypes, but found: {scalar_name(self)}")
    if not dim:
        return self.copy()
    kind = self.dtype
    spectrum = _transform(_FORWARD, self, dim, kind) if forward else _transform(_BACKWARD, self, dim, kind, norm="forward")
    return _scaled(spectrum, dim, normalization, self.shape).astype(kind, copy=False)


fft_c2c.vjp(self=lambda g, dim, normalization, forward: aten._fft_c2c(g, dim, normalization, not forward))


def _half(shape, dim):
    return tuple(n // 2 + 1 if d == dim[-1] % len(shape) else n for d, n in enumerate(shape))


@op(
    "_fft_r2c(Tensor self, int[] dim, int normalization, bool onesided) -> Tensor",
    node="FftR2CBackward0",
    shape=lambda self, dim, normalization, onesided: (
        _half(self._array.shape, dim) if onesided else self._array.shape,
        _complex(self._array.dtype),
    ),
    samples=lambda make: [(make(3, 4), (1,), NONE, True), (make(3, 5), (0, 1), WHOLE, True), (make(3, 4), (1,), ROOT, False)],
    batching=Batching.ALONG_DIM,
)
def fft_r2c(self, dim, normalization, onesided):
    kind = _complex(self.dtype)
    size = self.shape[dim[-1]]
    half = size // 2 + 1
    if onesided:
        spectrum = _transform(_OF_REAL, self, dim, kind, half)
    elif len(dim) == 1 and self.size >= _MANY:  # half of it is the mirror image of the other half
        last = dim[0] % self.ndim
        lead = (slice(None),) * last
        found = _transform(_OF_REAL, self, dim, kind, half)
        spectrum = np.empty_like(found, shape=self.shape)
        spectrum[(*lead, slice(0, half))] = found
        np.conjugate(found[(*lead, slice(size - half, 0, -1))], out=spectrum[(*lead, slice(half, size))])
    else:
        spectrum = _transform(_FORWARD, self, dim, kind, size)
    return _scaled(spectrum, dim, normalization, self.shape).astype(kind, copy=False)


def _r2c_grad(g, self_shape, dim, normalization, onesided):
    if not onesided:
        return aten.real(aten._fft_c2c(g, dim, normalization, False))
    # What the real transform left out is no output of it, and has no gradient.
    last = normal_dim(dim[-1], len(self_shape))
    shape = list(g._array.shape)
    shape[last] = self_shape[last]
    whole = aten.new_zeros(g, shape)
    part = aten.slice(whole, last, 0, g._array.shape[last])
    aten.copy_(part, g)
    return aten.real(aten._fft_c2c(whole, dim, normalization, False))


fft_r2c.vjp(self=_r2c_grad)


def _real_shape(self, dim, normalization, last_dim_size):
    shape = self._array.shape
    last = normal_dim(dim[-1], len(shape))
    return (
        tuple(last_dim_size if d == last else n for d, n in enumerate(shape)),
        dt.from_numpy(self._array.dtype).to_real().np,
    )


@op(
    "_fft_c2r(Tensor self, int[] dim, int normalization, int last_dim_size) -> Tensor",
    node="FftC2RBackward0",
    shape=_real_shape,
    samples=lambda make: [
        (aten._fft_r2c(make(3, 4), (1,), NONE, True), (1,), NONE, 4),
        (aten._fft_r2c(make(3, 5), (0, 1), NONE, True), (0, 1), ROOT, 5),
    ],
    batching=Batching.ALONG_DIM,
)
def fft_c2r(self, dim, normalization, last_dim_size):
    if len(dim) > 1:
        self = _transform(_BACKWARD, self, dim[:-1], self.dtype, norm="forward")
    signal = _transform(_TO_REAL, self, dim[-1:], self.real.dtype, last_dim_size, n=last_dim_size, norm="forward")
    return _scaled(signal, dim, normalization, signal.shape).astype(signal.dtype, copy=False)


def _c2r_grad(g, dim, normalization):
    grad = aten._fft_r2c(g, dim, normalization, True)
    last = normal_dim(dim[-1], g._array.ndim)
    doubled = g._array.shape[last] - grad._array.shape[last]
    if doubled > 0:  # each of these stands for itself and for its mirror image
        aten.mul_(aten.narrow(grad, last, 1, doubled), 2)
    return grad


fft_c2r.vjp(self=_c2r_grad)

# ---------------------------------------------------------------- what torch.fft makes of them


def _normalization(norm, forward):
    if norm in (None, "backward"):
        return NONE if forward else WHOLE
    if norm == "forward":
        return WHOLE if forward else NONE
    if norm == "ortho":
        return ROOT
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _as_float(self, complex_too=False):
    """Integers become floats, and floats complex where the transform needs it."""
    dtype = self.dtype
    if not dtype.is_floating_point and not dtype.is_complex:
        dtype = dt.get_default_dtype()
    elif dtype.itemsize == 2:
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_name}")
    if complex_too:
        dtype = dtype.to_complex()
    return self if dtype is self.dtype else aten.to(self, dtype=dtype)


def _resized(self, dims, sizes):
    """Cut or padded with zeros at the end of each dim."""
    ndim = self._array.ndim
    padding = [0] * (2 * ndim)
    for d, n in zip(dims, sizes, strict=True):
        have = self._array.shape[d]
        if n == -1 or n == have:
            continue
        if n < have:
            self = aten.slice(self, d, 0, n)
        else:
            padding[2 * (ndim - 1 - d) + 1] = n - have
    return aten.constant_pad_nd(self, padding) if any(padding) else self


def _check_size(n):
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")


def _one_dim(name, forward, onesided=False, real=False, conjugate=False, *, doc=None):
    """A transform along one dim: complex, of real input (onesided), to real output (real, Hermitian if conjugated)."""

    def body(self, n, dim, norm):
        if onesided and self._array.dtype.kind == "c":
            raise RuntimeError(f"{name} expects a real input tensor, but got {self.dtype.scalar_name}")
        dim = existing_dim(dim, self._array.ndim)
        scale = _normalization(norm, forward)
        if real:
            self = _as_float(self, complex_too=True)
            if conjugate:
                self = aten._conj(self)
            size = 2 * (self._array.shape[dim] - 1) if n is None else n
            _check_size(size)
            return aten._fft_c2r(_resized(self, (dim,), (size // 2 + 1,)), (dim,), scale, size)
        self = _as_float(self)
        _check_size(self._array.shape[dim] if n is None else n)
        if n is not None:
            self = _resized(self, (dim,), (n,))
        if self._array.dtype.kind == "c":
            return aten._fft_c2c(self, (dim,), scale, forward)
        spectrum = aten._fft_r2c(self, (dim,), scale, onesided)
        # The transform the other way round of real numbers is the conjugate.
        return spectrum if forward else aten._conj(spectrum)

    samples = (
        (lambda make: [(aten.complex(make(3, 4), make(3, 4)),)])
        if real
        else (lambda make: [(make(3, 4),), (make(3, 4), 6, 0, "ortho"), (make(3, 4), 3)])
    )
    composite(
        f"fft_{name}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor",
        body,
        samples=samples,
        autocast=Autocast.FLOAT32,
        out=True,
        doc=doc,
    )


_one_dim(
    "fft",
    True,
    doc="""The discrete Fourier transform along a dim.

    >>> torch.fft.fft(torch.tensor([1.0, 2.0]))
    tensor([ 3.+0.j, -1.+0.j])
    """,
)
_one_dim(
    "ifft",
    False,
    doc="""The inverse discrete Fourier transform along a dim.

    >>> torch.fft.ifft(torch.fft.fft(torch.tensor([1.0, 2.0]))).real
    tensor([1., 2.])
    """,
)
_one_dim(
    "rfft",
    True,
    onesided=True,
    doc="""The discrete Fourier transform of real numbers: half of the frequencies tell all.

    >>> torch.fft.rfft(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """,
)
_one_dim(
    "irfft",
    False,
    real=True,
    doc="""The inverse of `rfft`: the result is real.

    >>> torch.fft.irfft(torch.fft.rfft(torch.tensor([1.0, 2.0])))
    tensor([1., 2.])
    """,
)
_one_dim(
    "hfft",
    True,
    real=True,
    conjugate=True,
    doc="""The transform of a signal that is Hermitian in time: the result is real.

    >>> torch.fft.hfft(torch.tensor([1.0 + 0j, 0.0]))
    tensor([1., 1.])
    """,
)
_one_dim(
    "ihfft",
    False,
    onesided=True,
    doc="""The inverse of `hfft`.

    >>> torch.fft.ihfft(torch.tensor([1.0, 1.0]))
    tensor([1.-0.j, 0.-0.j])
    """,
)


def _dims_and_sizes(self, s, dim):
    ndim = self._array.ndim
    if dim is None:
        if s is not None and len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = list(range(ndim - len(s), ndim)) if s is not None else list(range(ndim))
    else:
        dims = [existing_dim(d, ndim) for d in dim]
    if len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is not None and len(s) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    sizes = (
        [self._array.shape[d] for d in dims]
        if s is None
        else [self._array.shape[d] if n == -1 else n for d, n in zip(dims, s, strict=True)]
    )
    for n in sizes:
        _check_size(n)
    return dims, sizes


def _check_some(dims, name):
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


def _complex_dims(forward):
    def body(self, s, dim, norm):
        self = _as_float(self, complex_too=True)
        dims, sizes = _dims_and_sizes(self, s, dim)
        return aten._fft_c2c(_resized(self, dims, sizes), dims, _normalization(norm, forward), forward)

    return body


def _real_dims(forward):
    """Of real input; backwards the conjugate, as of Hermitian output."""

    def body(self, s, dim, norm):
        if forward and self._array.dtype.kind == "c":
            raise RuntimeError(f"rfftn expects a real-valued input tensor, but got {self.dtype.scalar_name}")
        self = _as_float(self)
        dims, sizes = _dims_and_sizes(self, s, dim)
        _check_some(dims, "rfftn" if forward else "ihfftn")
        if self._array.dtype.kind == "c":
            raise RuntimeError(f"Only supports floating-point dtypes, but found: {self.dtype.scalar_name}")
        self = _resized(self, dims, sizes)
        scale = _normalization(norm, forward)
        if forward:
            return aten._fft_r2c(self, dims, scale, True)
        spectrum = aten._conj(aten._fft_r2c(self, dims[-1:], scale, True))
        return spectrum if len(dims) == 1 else aten._fft_c2c(spectrum, dims[:-1], scale, False)

    return body


def _to_real_dims(forward):
    def body(self, s, dim, norm):
        self = _as_float(self, complex_too=True)
        dims, sizes = _dims_and_sizes(self, s, dim)
        _check_some(dims, "hfftn" if forward else "irfftn")
        last = 2 * (self._array.shape[dims[-1]] - 1) if s is None or s[-1] == -1 else sizes[-1]
        _check_size(last)
        self = _resized(self, dims, [*sizes[:-1], last // 2 + 1])
        scale = _normalization(norm, forward)
        if not forward:
            return aten._fft_c2r(self, dims, scale, last)
        if len(dims) > 1:
            self = aten._fft_c2c(self, dims[:-1], scale, True)
        return aten._fft_c2r(aten._conj(self), dims[-1:], scale, last)

    return body


def _complex_sample(make):
    return [(aten.complex(make(3, 4), make(3, 4)),)]


def _real_sample(make):
    return [(make(3, 4),), (make(3, 4), (4, 3))]


for _name, _body, _samples in (
    ("fft", _complex_dims(True), _real_sample),
    ("ifft", _complex_dims(False), _real_sample),
    ("rfft", _real_dims(True), _real_sample),
    ("irfft", _to_real_dims(False), _complex_sample),
    ("hfft", _to_real_dims(True), _complex_sample),
    ("ihfft", _real_dims(False), _real_sample),
):
    for _schema in (
        f"fft_{_name}2(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor",
        f"fft_{_name}n(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor",
    ):
        composite(
            _schema,
            _body,
            samples=_samples,
            autocast=None if _name in ("hfft", "ihfft") else Autocast.FLOAT32,
            out=True,
            doc=_DOCS[_schema.partition("(")[0]],
        )

# ---------------------------------------------------------------- frequencies and their order

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"


def _frequencies(name, counted):
    """Whole numbers of cycles over the length of the signal."""

    def kernel(n, d, dtype, *_):
        kind = np_dtype(dtype)
        if kind.kind in "iub":
            raise RuntimeError(f"{name} requires a floating point or complex dtype")
        with np.errstate(all="ignore"):
            return (counted(n) * np.divide(1.0, n * float(d))).astype(kind)

    return kernel


op(
    f"fft_fftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor",
    _frequencies("fftfreq", lambda n: np.concatenate([np.arange((n + 1) // 2), np.arange(-(n // 2), 0)])),
    nondiff=True,
    shape=lambda n, d, dtype, *_: ((n,), np_dtype(dtype)),
    samples=lambda make: [(8,), (5, 0.5)],
    doc="""The frequencies that the results of `fft` belong to.

    >>> torch.fft.fftfreq(4)
    tensor([ 0.0000,  0.2500, -0.5000, -0.2500])
    """,
)
op(
    f"fft_rfftfreq(int n, float d=1.0, {_OPTIONS}) -> Tensor",
    _frequencies("rfftfreq", lambda n: np.arange(n // 2 + 1)),
    nondiff=True,
    shape=lambda n, d, dtype, *_: ((n // 2 + 1,), np_dtype(dtype)),
    samples=lambda make: [(8,), (5, 0.5)],
    doc="""The frequencies that the results of `rfft` belong to.

    >>> torch.fft.rfftfreq(4)
    tensor([0.0000, 0.2500, 0.5000])
    """,
)


def _shifted(self, dim, back):
    ndim = self._array.ndim
    dims = list(range(ndim)) if dim is None else [normal_dim(d, ndim) for d in dim]
    sizes = [self._array.shape[d] for d in dims]
    return aten.roll(self, [(n + 1) // 2 if back else n // 2 for n in sizes], dims)


composite(
    "fft_fftshift(Tensor self, int[1]? dim=None) -> Tensor",
    lambda self, dim: _shifted(self, dim, False),
    doc="""Moves the zero frequency to the middle.

    >>> torch.fft.fftshift(torch.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """,
)
composite(
    "fft_ifftshift(Tensor self, int[1]? dim=None) -> Tensor",
    lambda self, dim: _shifted(self, dim, True),
    doc="""Moves the zero frequency back to the front: the inverse of `fftshift`.

    >>> torch.fft.ifftshift(torch.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """,
)
