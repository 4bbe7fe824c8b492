"""Kineto's categories, and the kind of row that each becomes."""

from __future__ import annotations

import re

from ...._dispatch import observer

# The name of a module's call ends in the module's number.
MODULE_NAME = re.compile(r"nn\.Module: .*_[0-9]+", re.DOTALL)

MEMORY_NAME = "[memory]"
# Category -> kind of row. Spans of other categories become ops.
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
