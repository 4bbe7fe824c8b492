"""torch.utils.data.datapipes.iter.combinatorics: the order of samples."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ..... import _surface as torch
from ....._lazy_imports import lazy_exports as _lazy_exports
from ..datapipe import IterDataPipe, functional_datapipe, stream_length

__all__ = ["ShufflerIterDataPipe"]


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(IterDataPipe):
    """The samples in random order, drawn from a buffer that is filled as they come."""

    def __init__(self, datapipe: IterDataPipe, *, buffer_size: int = 10000, unbatch_level: int = 0) -> None:
        if buffer_size <= 0:
            raise ValueError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size = buffer_size
        self._seed: int | None = None
        self._enabled = True

    def set_shuffle(self, shuffle: bool = True) -> ShufflerIterDataPipe:
        """Whether the order is random; the samples come as they are without."""
        self._enabled = shuffle
        return self

    def set_seed(self, seed: int) -> ShufflerIterDataPipe:
        """Have the next iteration use this seed."""
        self._seed = seed
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self._enabled:
            yield from self.datapipe
            return
        # The seed is drawn from torch's generator, so that manual_seed() decides on the order.
        seed = int(torch.empty((), dtype=torch.int64).random_().item()) if self._seed is None else self._seed
        chance = random.Random(seed)
        self._seed = None
        buffer: list[Any] = []
        for sample in self.datapipe:
            if len(buffer) < self.buffer_size:
                buffer.append(sample)
            else:
                at = chance.randrange(len(buffer))
                drawn, buffer[at] = buffer[at], sample
                yield drawn
        while buffer:
            yield buffer.pop(chance.randrange(len(buffer)))

    def __len__(self) -> int:
        return stream_length(self, self.datapipe)


__getattr__, __dir__ = _lazy_exports(__name__)  # names that refuse their use
