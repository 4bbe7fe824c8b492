"""torch.utils: data loading, checkpointing, and small tools."""

from __future__ import annotations

import importlib as _importlib

from . import data

__all__ = ["data"]

# Imported when they are first asked for.
_LATER = ("_python_dispatch", "_pytree", "benchmark", "checkpoint", "dlpack", "hooks", "tensorboard")


def __getattr__(name: str) -> object:
    if name in _LATER:
        return _importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
