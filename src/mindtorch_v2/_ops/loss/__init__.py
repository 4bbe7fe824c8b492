"""Losses."""

from . import ctc, entropy, margin, nll, regression
