"""torch.nn: modules, parameters, losses, and how they are initialized."""

from __future__ import annotations

from . import attention, common_types, functional, grad, init, modules, parallel, parameter, quantized, utils
from ._factory_kwargs import factory_kwargs
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "factory_kwargs",
    "functional",
    "grad",
    "init",
    "modules",
    "parallel",
    "parameter",
    "quantized",
    "utils",
]
__all__ += modules.__all__
