"""Loss functions: regression, margins, cross entropy and CTC, each with its backward op."""

from . import ctc, entropy, margin, nll, regression
