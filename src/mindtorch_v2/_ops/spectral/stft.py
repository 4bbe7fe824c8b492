"""Spectra over time: window functions, the short-time Fourier transform and its inverse."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..._core.tensor import Tensor
from ..._dispatch.errors import need_tensor
from ..._dispatch.facts import Autocast, Surface
from ..._dispatch.registry import aten, composite, op
from .._support import special_math as special_math
from .._support.common import home_of, np_dtype
from .._support.factory import OPTIONS, check_options
from .fft import NONE, ROOT

# ---------------------------------------------------------------- windows


_DOCS = {
    "hann_window": """A Hann window of the given length.

    >>> torch.hann_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """,
    "hamming_window": """A Hamming window of the given length.

    >>> torch.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """,
    "blackman_window": """A Blackman window of the given length.

    >>> torch.blackman_window(5)[1:]
    tensor([0.2008, 0.8492, 0.8492, 0.2008])
    """,
    "bartlett_window": """A triangular window of the given length.

    >>> torch.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """,
    "kaiser_window": """A Kaiser window of the given length; `beta` sets its shape.

    >>> torch.kaiser_window(4)
    tensor([5.2773e-05, 2.1567e-01, 1.0000e+00, 2.1567e-01])
    """,
}


def _window_values(length: int, periodic: bool, dtype: Any, shape: Any) -> np.ndarray:
    """The values of a symmetric window; a periodic one is a window longer by one, without its last value."""
    wanted = np_dtype(dtype)
    if wanted.kind not in "fV":
        raise RuntimeError(f"window functions expect floating point dtypes, got: {wanted}")
    if length < 0:
        raise RuntimeError(f"window_length must be non-negative, got {length}")
    if length <= 1:
        return np.ones(length, wanted)
    count = length + 1 if periodic else length
    return np.asarray(shape(np.arange(count), count - 1))[:length].astype(wanted)


def _cosines(*weights: float) -> Any:
    """The sum of weights[k] cos(2πkn / N)."""
    return lambda n, last: sum(w * np.cos(2 * math.pi * k * n / last) for k, w in enumerate(weights))


def _kaiser(beta: float) -> Any:
    bottom = float(special_math.i0(np.asarray(float(beta))))
    return lambda n, last: special_math.i0(beta * np.sqrt(np.maximum(1 - (2 * n / last - 1) ** 2, 0))) / bottom


def _window(name: str, shapes: dict[str, tuple[str, Any]], default: Any) -> None:
    """A window in the form without arguments, with `periodic`, and with each set of further arguments."""

    def rule(window_length: int, *rest: Any) -> Any:
        return (window_length,), np_dtype(rest[-4])

    def declare(overload: str, arguments: str, kernel: Any, sample: tuple[Any, ...]) -> None:
        op(
            f"{name}{overload}(int window_length, {arguments}{OPTIONS}) -> Tensor",
            kernel,
            nondiff=True,
            shape=rule,
            samples=lambda make: [sample],
            doc=_DOCS[name],
            out=False,
        )

    def kernel(window_length: int, *rest: Any) -> np.ndarray:
        *chosen, dtype, layout, _, pin_memory = rest
        check_options(layout, pin_memory)
        return _window_values(window_length, chosen[0] if chosen else True, dtype, default(*chosen[1:]))

    declare("", "", kernel, (8,))
    declare(".periodic", "bool periodic, ", kernel, (8, False))
    for overload, (arguments, sample) in shapes.items():
        declare(f".{overload}", f"bool periodic, {arguments}, ", kernel, (8, True, *sample))


_window("hann_window", {}, lambda: _cosines(0.5, -0.5))
_window(
    "hamming_window",
    {"periodic_alpha": ("float alpha", (0.54,)), "periodic_alpha_beta": ("float alpha, float beta", (0.54, 0.46))},
    lambda alpha=0.54, beta=0.46: _cosines(alpha, -beta),
)
_window("blackman_window", {}, lambda: _cosines(0.42, -0.5, 0.08))
_window("bartlett_window", {}, lambda: lambda n, last: 1 - np.abs(2 * n / last - 1))
_window("kaiser_window", {"beta": ("float beta", (6.0,))}, lambda beta=12.0: _kaiser(beta))

# ---------------------------------------------------------------- the transform of pieces


def _framing(n_fft: int, hop_length: int | None, win_length: int | None, window: Tensor | None, name: str) -> Any:
    hop = n_fft // 4 if hop_length is None else hop_length
    width = n_fft if win_length is None else win_length
    if hop <= 0:
        raise RuntimeError(f"{name}: expected 0 < hop_length, but got hop_length={hop}")
    if not 0 < width <= n_fft:
        raise RuntimeError(f"{name}: expected 0 < win_length <= n_fft, but got win_length={width}")
    if window is not None and window._array.shape != (width,):
        raise RuntimeError(
            f"{name}: expected a 1D window tensor of size equal to win_length={width}, but got window "
            f"with size {list(window._array.shape)}"
        )
    if window is not None and width < n_fft:
        left = (n_fft - width) // 2
        window = aten.constant_pad_nd(window, (left, n_fft - width - left))
    return hop, window


@composite(
    "stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) "
    "-> Tensor",
    samples=lambda make: [(make(16), 4, 2), (make(2, 16), 4, 2, 4, make(4), True)],
    autocast=Autocast.FLOAT32,
    handwritten=Surface.BOTH,
)
def stft(self, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window):
    """The short-time Fourier transform: spectra of windows that slide over the signal.

    >>> torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    if align_to_window:
        raise NotImplementedError("stft(align_to_window=True)")
    hop, window = _framing(n_fft, hop_length, win_length, window, "stft")
    array = self._array
    if array.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {array.ndim}D")
    if n_fft <= 0 or n_fft > array.shape[-1]:
        raise RuntimeError(f"stft: expected 0 < n_fft <= {array.shape[-1]}, but got n_fft={n_fft}")
    signal = aten.unsqueeze(self, 0) if array.ndim == 1 else self
    pieces = aten.unfold(signal, 1, n_fft, hop)
    if window is not None:
        pieces = aten.mul(pieces, window)
    scale = ROOT if normalized else NONE
    if pieces._array.dtype.kind == "c":
        if onesided:
            raise RuntimeError("Cannot have onesided output if window or input is complex")
        spectra = aten._fft_c2c(pieces, (2,), scale, True)
    else:
        spectra = aten._fft_r2c(pieces, (2,), scale, onesided is None or onesided)
    spectra = aten.transpose(spectra, 1, 2)
    spectra = aten.squeeze(spectra, 0) if array.ndim == 1 else spectra
    return aten.view_as_real(spectra) if return_complex is False else spectra


@composite(
    "istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, "
    "bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) "
    "-> Tensor",
    samples=lambda make: [(aten.stft(make(16), 4, 2), 4, 2, None, None, False)],
)
def istft(self, n_fft, hop_length, win_length, window, center, normalized, onesided, length, return_complex):
    """The signal of a short-time Fourier transform, by overlapping and adding.

    >>> torch.istft(torch.stft(torch.ones(8), 4, window=torch.ones(4), return_complex=True), 4, window=torch.ones(4))
    tensor([1., 1., 1., 1., 1., 1., 1., 1.])
    """
    if self._array.dtype.kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    hop, window = _framing(n_fft, hop_length, win_length, window, "istft")
    spectrum = aten.unsqueeze(self, 0) if self._array.ndim == 2 else self
    half = spectrum._array.shape[1] == n_fft // 2 + 1 if onesided is None else onesided
    spectrum = aten.transpose(spectrum, 1, 2)
    # What stft scaled by 1 / sqrt(n) comes back by the same factor, what it did not by 1 / n.
    scale = ROOT if normalized else 2
    if return_complex:
        if half:
            raise RuntimeError("cannot have onesided output if window or input is complex")
        pieces = aten._fft_c2c(spectrum, (2,), scale, False)
    else:
        part = spectrum if half else aten.narrow(spectrum, -1, 0, n_fft // 2 + 1)
        pieces = aten._fft_c2r(part, (2,), scale, n_fft)
    batch, frames = pieces._array.shape[:2]
    reach = n_fft + hop * (frames - 1)
    if window is None:
        window = aten.ones((n_fft,), dtype=self.dtype.to_real(), device=home_of(self))
    # Pieces overlap: they are added up, and divided by the sum of the windows' squares that lie over each point.
    total = aten.unfold_backward(aten.mul(pieces, window), (batch, reach), 1, n_fft, hop)
    squares = aten.expand(aten.unsqueeze(aten.pow(window, 2), 0), (frames, n_fft))
    weight = aten.unfold_backward(squares, (reach,), 0, n_fft, hop)
    start = n_fft // 2 if center else 0
    stop = start + length if length is not None else reach - n_fft // 2 if center else reach
    total, weight = aten.slice(total, 1, start, stop), aten.slice(weight, 0, start, stop)
    if (np.abs(weight._array) < 1e-11).any():
        raise RuntimeError("istft: window overlap add min: 1")
    signal = aten.div(total, weight)
    short = 0 if length is None else length - signal._array.shape[1]
    if short > 0:
        signal = aten.constant_pad_nd(signal, (0, short))
    return aten.squeeze(signal, 0) if self._array.ndim == 2 else signal


def stft_function(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """torch.stft: with center=True, the signal is padded first, so that each piece is centered on its time."""
    need_tensor("stft", input)
    if window is not None:
        need_tensor("stft", window, "window", 5)
    operands = [t for t in (input, window) if t is not None]
    if return_complex is None and all(t._array.dtype.kind != "c" for t in operands):
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if center:
        ndim = input._array.ndim
        wide = aten.view(input, (1,) * (3 - ndim) + input._array.shape)
        wide = aten.pad(wide, (n_fft // 2, n_fft // 2), pad_mode)
        input = aten.view(wide, wide._array.shape[3 - ndim :])
    return aten.stft(input, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


METHODS = {"stft": stft_function}
FUNCTIONS = {"stft": stft_function}
