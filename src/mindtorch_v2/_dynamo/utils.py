"""torch._dynamo.utils: questions that libraries ask while they run; nothing is being compiled."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

__all__ = ["compile_times", "counters", "is_compile_supported"]

# What the compiler has counted, by subject: nothing.
counters: defaultdict[str, Counter[str]] = defaultdict(Counter)


def is_compile_supported(device_type: Any) -> bool:
    """Whether code for a device can be compiled: no."""
    return False


def compile_times(repr: str = "str", aggregate: bool = False) -> Any:
    """How long compiling took: there is nothing to report."""
    return "TorchDynamo compilation metrics:\n" if repr == "str" else ([], [])
