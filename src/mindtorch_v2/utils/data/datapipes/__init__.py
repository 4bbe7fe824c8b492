"""torch.utils.data.datapipes: datasets that are put together from small steps, each of which shows in a profile."""

from __future__ import annotations

from . import iter, map
from .datapipe import DataChunk, IterDataPipe, MapDataPipe, functional_datapipe

__all__ = ["DataChunk", "IterDataPipe", "MapDataPipe", "functional_datapipe", "iter", "map"]
