"""Fourier transforms and spectra over time."""

from . import fft, stft
