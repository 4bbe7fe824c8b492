"""torch.utils.data.datapipes.map: steps of datasets whose samples have keys."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ...._lazy_imports import lazy_exports as _lazy_exports
from .datapipe import MapDataPipe, functional_datapipe

__all__ = ["Concater", "Mapper", "SequenceWrapper", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The items of a sequence or mapping, of a copy of it with `deepcopy`."""

    def __init__(self, sequence: Any, deepcopy: bool = True) -> None:
        self.sequence = copy.deepcopy(sequence) if deepcopy else sequence

    def __getitem__(self, index: Any) -> Any:
        return self.sequence[index]

    def __len__(self) -> int:
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """A function of each sample."""

    def __init__(self, datapipe: MapDataPipe, fn: Callable[[Any], Any]) -> None:
        self.datapipe = datapipe
        self.fn = fn

    def __getitem__(self, index: Any) -> Any:
        return self.fn(self.datapipe[index])

    def __len__(self) -> int:
        return len(self.datapipe)  # type: ignore[arg-type]


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """One dataset after another."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: int) -> Any:
        at = index
        for datapipe in self.datapipes:
            if at < len(datapipe):  # type: ignore[arg-type]
                return datapipe[at]
            at -= len(datapipe)  # type: ignore[arg-type]
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self) -> int:
        return sum(len(datapipe) for datapipe in self.datapipes)  # type: ignore[arg-type, misc]


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the samples that several datasets have under one key."""

    def __init__(self, *datapipes: MapDataPipe) -> None:
        if not datapipes:
            raise ValueError("Expected at least one DataPipe, but got nothing")
        self.datapipes = datapipes

    def __getitem__(self, index: Any) -> tuple[Any, ...]:
        return tuple(datapipe[index] for datapipe in self.datapipes)

    def __len__(self) -> int:
        return min(len(datapipe) for datapipe in self.datapipes)  # type: ignore[arg-type, type-var]


Concater = ConcaterMapDataPipe
Mapper = MapperMapDataPipe
SequenceWrapper = SequenceWrapperMapDataPipe
Zipper = ZipperMapDataPipe

__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
