"""Weights and inputs that are the same wherever they are made: from NumPy's generator, seeded by name."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np


def generator(name: str) -> np.random.Generator:
    """A generator that depends on the name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def fill(model: Any) -> Any:
    """Give each parameter values that follow from its name and shape; returns the model.

    Matrices are scaled by their rows' length, so that signals neither vanish nor explode; vectors are near one where they
    multiply (`weight` of a norm) and near zero elsewhere.
    """
    import torch

    with torch.no_grad():
        for name, parameter in model.named_parameters():
            shape = tuple(parameter.shape)
            values = generator(name).standard_normal(shape).astype(np.float32)
            if len(shape) >= 2:
                values /= max(np.prod(shape[1:]), 1) ** 0.5
            else:
                values = values * 0.1 + (1.0 if name.endswith(("weight", "gamma", "scale")) else 0.0)
            parameter.copy_(torch.tensor(values, dtype=parameter.dtype))
    return model


def normal(name: str, *shape: int) -> Any:
    """A float tensor of standard normal values."""
    import torch

    return torch.tensor(generator(name).standard_normal(shape).astype(np.float32))


def integers(name: str, low: int, high: int, *shape: int) -> Any:
    """An int64 tensor of values in [low, high)."""
    import torch

    return torch.tensor(generator(name).integers(low, high, shape))
