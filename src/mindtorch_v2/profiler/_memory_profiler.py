"""torch.profiler._memory_profiler: what memory was used for."""

from __future__ import annotations

from .store.memory_profile import Action, Category, MemoryProfile, TensorKey

__all__ = ["Action", "Category", "MemoryProfile", "TensorKey"]
