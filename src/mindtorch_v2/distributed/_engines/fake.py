"""The backend `fake`: a group of any size in one process, in which every collective ends at once. For tests of size."""

from __future__ import annotations

from collections.abc import Sequence

from .alone import Alone
from .engine import Buffer, Done, Request


class FakeCommunicator(Alone):
    """Says that it has many processes, and leaves tensors as they are where another one's values would come."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__()
        self.rank, self.size = rank, size  # type: ignore[misc]

    def all_gather(self, part: Buffer, parts: Buffer) -> Request:
        """Each part is this process's."""
        parts.reshape(self.size, -1)[...] = part.reshape(-1)
        return Done()

    def gather(self, part: Buffer, parts: Buffer | None, root: int) -> Request:
        """Each part is this process's."""
        return Done() if parts is None else self.all_gather(part, parts)

    def scatter(self, parts: Buffer | None, part: Buffer, root: int) -> Request:
        """The root gets its own part."""
        if parts is not None:
            part.reshape(-1)[...] = parts.reshape(self.size, -1)[self.rank]
        return Done()

    def all_to_all(self, sent: Buffer, counts: Sequence[int], received: Buffer, received_counts: Sequence[int]) -> Request:
        """What was received stays as it is."""
        return Done()

    def send(self, buffer: Buffer, peer: int, tag: int) -> Request:
        """No process gets it."""
        return Done()

    def receive(self, buffer: Buffer, peer: int | None, tag: int) -> Request:
        """Received as it is."""
        return Done(source=peer or 0)

    def subgroup(self, ranks: Sequence[int], key: int) -> FakeCommunicator:
        """Another fake, of these ranks."""
        return FakeCommunicator(list(ranks).index(self.rank), len(ranks))
