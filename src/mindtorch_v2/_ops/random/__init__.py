"""Random tensors with PyTorch's numbers."""

from . import integers, rejection, sampling, sobol, uniform_normal
