"""torch.nn: modules, parameters, losses, and how they are initialised."""

from __future__ import annotations

from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
