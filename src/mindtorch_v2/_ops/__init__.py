"""The ops, one package per family. Importing a package declares its ops; the order does not matter."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

from .._core import numpy_buffer
from .._dispatch import dispatcher, out_arguments  # ops become callable as they are declared
from .._dispatch.overload_api import HigherOrderOperator, OpOverload, OpOverloadPacket, ops  # torch._ops has them
from . import (
    creation,
    indexing,
    linalg,
    loss,
    nn,
    optimizer,
    pointwise,
    predicates,
    random,
    reduction,
    shape,
    sparse,
    special,
    spectral,
)
from ._support import float_errors, malloc  # memory that one step frees is kept for the next

_PACKAGES = (
    creation,
    indexing,
    linalg,
    loss,
    nn,
    nn.convolution,
    nn.pooling,
    optimizer,
    pointwise,
    random,
    reduction,
    shape,
    sparse,
    special,
    spectral,
)


def families() -> Iterator[ModuleType]:
    """Every module that declares ops."""
    yield predicates
    for package in _PACKAGES:
        yield from (module for module in vars(package).values() if isinstance(module, ModuleType))


float_errors.install()
numpy_buffer.install()
