"""torch.__config__: how this was built."""

from __future__ import annotations

import platform

import numpy as np

from ._settings import get_num_interop_threads, get_num_threads
from .version import __version__


def show() -> str:
    """The versions of what computes here."""
    return f"PyTorch {__version__}, as mindtorch_v2\n  - Python {platform.python_version()}\n  - NumPy {np.__version__}\n"


def parallel_info() -> str:
    """The numbers of threads."""
    return (
        f"ATen/Parallel:\n\tat::get_num_threads() : {get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n"
    )


def _cxx_flags() -> str:
    """The flags of the compiler: none, since nothing was compiled."""
    return ""
