"""Kineto's categories and what they are as rows of a store."""

from __future__ import annotations

import re

from ..._dispatch import observer

# A module's call: its class and its number, which traces show as a number.
MODULE_NAME = re.compile(r"nn\.Module: .*_[0-9]+", re.DOTALL)

MEMORY_NAME = "[memory]"
# What Kineto calls a kind of event -> what a row of a store is. Other categories are plain spans.
HOST_KINDS = {
    "cpu_op": observer.OP,
    "user_annotation": observer.SCOPE,
    "python_function": observer.PYTHON,
    "cuda_runtime": observer.RUNTIME,
    "cuda_driver": observer.RUNTIME,
    "privateuse1_runtime": observer.RUNTIME,
    "privateuse1_driver": observer.RUNTIME,
    "xpu_runtime": observer.RUNTIME,
    "xpu_driver": observer.RUNTIME,
    "mtia_runtime": observer.RUNTIME,
}
DEVICE_KINDS = {
    "kernel": observer.KERNEL,
    "gpu_memcpy": observer.COPY,
    "gpu_memset": observer.FILL,
    "gpu_user_annotation": observer.SCOPE,
}
