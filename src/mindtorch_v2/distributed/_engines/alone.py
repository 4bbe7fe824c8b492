"""The communicator of a process that is its group's only one: what it sends it has."""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Sequence

from .engine import Buffer, Done, Request


class Alone:
    """A group of one, which needs no engine."""

    rank = 0
    size = 1
    is_alone = True

    def __init__(self) -> None:
        self._sent: defaultdict[int, deque[Buffer]] = defaultdict(deque)

    def all_reduce(self, buffer: Buffer, op: str) -> Request:
        """The buffer is its own reduction."""
        return Done()

    def reduce(self, buffer: Buffer, op: str, root: int) -> Request:
        """The buffer is its own reduction."""
        return Done()

    def broadcast(self, buffer: Buffer, root: int) -> Request:
        """The buffer is the root's."""
        return Done()

    def all_gather(self, part: Buffer, parts: Buffer) -> Request:
        """Copy the only part."""
        parts.reshape(part.shape)[...] = part
        return Done()

    def gather(self, part: Buffer, parts: Buffer | None, root: int) -> Request:
        """Copy the only part."""
        assert parts is not None
        return self.all_gather(part, parts)

    def scatter(self, parts: Buffer | None, part: Buffer, root: int) -> Request:
        """Copy the only part."""
        assert parts is not None
        part[...] = parts.reshape(part.shape)
        return Done()

    def all_to_all(self, sent: Buffer, counts: Sequence[int], received: Buffer, received_counts: Sequence[int]) -> Request:
        """Copy what is sent to the only process."""
        received[...] = sent
        return Done()

    def send(self, buffer: Buffer, peer: int, tag: int) -> Request:
        """Keep the message until it is received."""
        self._sent[tag].append(copy.copy(buffer))
        return Done()

    def receive(self, buffer: Buffer, peer: int | None, tag: int) -> Request:
        """Take a message that was sent before; one that comes later is waited for."""
        return _OwnMessage(self._sent[tag], buffer)

    def barrier(self) -> Request:
        """No other process is waited for."""
        return Done()

    def subgroup(self, ranks: Sequence[int], key: int) -> Alone:
        """Another group of one."""
        return Alone()

    def close(self) -> None:
        """Forget messages that were not received."""
        self._sent.clear()


class _OwnMessage(Done):
    """A message from the process itself."""

    def __init__(self, sent: deque[Buffer], buffer: Buffer) -> None:
        super().__init__(source=0)
        self._waiting, self._buffer = sent, buffer
        self._done = False

    def test(self) -> bool:
        """Whether it was sent."""
        if not self._done and self._waiting:
            self._buffer[...] = self._waiting.popleft()
            self._done = True
        return self._done
