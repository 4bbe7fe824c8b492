"""torch.nn: modules, parameters, losses, and how they are initialized."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy_imports import lazy_exports as _lazy_exports
from . import common_types, functional, grad, init, modules, parallel, parameter
from ._factory_kwargs import factory_kwargs
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

if TYPE_CHECKING:
    from . import attention, quantized, utils

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

if not TYPE_CHECKING:  # so that type checkers tell of names that are not there
    # Modules that are imported when they are first asked for, and names that refuse their use.
    __getattr__, __dir__ = _lazy_exports(__name__, ("attention", "quantized", "utils"))
