"""torch.profiler._memory_profiler: MemoryProfile and its enums under torch's module name."""

from __future__ import annotations

from .store.memory_profile import Action, Category, MemoryProfile, TensorKey

__all__ = ["Action", "Category", "MemoryProfile", "TensorKey"]
