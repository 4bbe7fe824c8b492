"""Kineto's name of each kind of row: the category in a trace, the activity type of an event."""

from __future__ import annotations

import numpy as np

from .store import EventStore

_CUDA = 1
FIRST_USE = "first_use"  # no category of Kineto's
# By observer kind. That of RUNTIME, between the two parts, depends on the recording's device: see categories().
_ON_HOST = (
    "cpu_op",
    "cpu_op",
    "cpu_op",
    "user_annotation",
    "user_annotation",
    "python_function",
    "python_function",
    None,
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
)
_ON_DEVICE = (
    "kernel",
    "kernel",
    "kernel",
    "gpu_user_annotation",
    "gpu_user_annotation",
    "kernel",
    "kernel",
    None,
    "kernel",
    "gpu_memcpy",
    "gpu_memset",
    "kernel",
    "kernel",
)

Names = tuple[str | None, ...]


def categories(store: EventStore) -> tuple[Names, Names]:
    """The names of host rows and of device rows, each by observer kind; None: traces have no span for it."""
    runtime = "cuda_runtime" if store.has_device_rows and np.any(store.device_type == _CUDA) else "privateuse1_runtime"
    return (*_ON_HOST, runtime, FIRST_USE), _ON_DEVICE
