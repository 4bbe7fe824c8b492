"""What carries bytes between processes, as the rest of the package sees it: communicators and requests.

`mpi` has the one on MPI, `alone` the one of a single process. Buffers are contiguous arrays; a communicator keeps them alive
until the request is done. Calls only begin something; a request's `test()` says whether it is done, and makes progress.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Buffer = NDArray[Any]


class Request(Protocol):
    """Something that was begun."""

    def test(self) -> bool:
        """Whether it is done; raises if it failed. Never waits."""

    def source(self) -> int:
        """The rank that a message came from, once it is done; -1 for anything but a message."""


class Communicator(Protocol):
    """Processes that call the same operations in the same order. Ranks are those of the communicator."""

    rank: int
    size: int
    is_alone: bool  # no other process answers, so that none can call something else

    def all_reduce(self, buffer: Buffer, op: str) -> Request:
        """Every process's buffer becomes the reduction of all."""

    def reduce(self, buffer: Buffer, op: str, root: int) -> Request:
        """The root's buffer becomes the reduction of all; the others keep theirs."""

    def broadcast(self, buffer: Buffer, root: int) -> Request:
        """Every process's buffer becomes the root's."""

    def all_gather(self, part: Buffer, parts: Buffer) -> Request:
        """`parts` becomes every process's part, by rank."""

    def gather(self, part: Buffer, parts: Buffer | None, root: int) -> Request:
        """The root's `parts` becomes every process's part, by rank."""

    def scatter(self, parts: Buffer | None, part: Buffer, root: int) -> Request:
        """Every process's `part` becomes its row of the root's `parts`."""

    def all_to_all(self, sent: Buffer, counts: Sequence[int], received: Buffer, received_counts: Sequence[int]) -> Request:
        """Every process gets its elements of what each other one sent, by rank."""

    def send(self, buffer: Buffer, peer: int, tag: int) -> Request:
        """Send a message."""

    def receive(self, buffer: Buffer, peer: int | None, tag: int) -> Request:
        """Receive a message, from any process if the peer is None."""

    def barrier(self) -> Request:
        """Done when every process has begun it."""

    def subgroup(self, ranks: Sequence[int], key: int) -> Communicator:
        """A communicator of some ranks, made by these ranks together. `key` tells those made at the same time apart."""

    def close(self) -> None:
        """Give its resources back; nothing may be begun afterwards."""


class Done:
    """A request that was done when it began."""

    def __init__(self, source: int = -1) -> None:
        self._source = source

    def test(self) -> bool:
        """It is."""
        return True

    def source(self) -> int:
        """The rank given."""
        return self._source


def as_bytes(buffer: Buffer) -> Buffer:
    """The memory of a contiguous array as bytes, for what is only moved."""
    return buffer.reshape(-1).view(np.uint8)
