"""Random tensors with PyTorch's numbers."""

from . import integers, rejection, sampling, uniform_normal
