"""torch.jit.annotations: types of arguments that TorchScript broadcasts; annotations only, since code runs eagerly."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple  # noqa: F401, UP035 - libraries import them from here

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3"]


class _BroadcastingList:
    """`BroadcastingList2[int]`: an int or a list of that many."""

    def __getitem__(self, types: Any) -> None:
        return None


BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = _BroadcastingList()
