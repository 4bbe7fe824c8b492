"""How the launchers of a job's machines find each other: who takes part in a round, and as which machine.

A round begins with every launcher that joins, and ends when each is told its number. A launcher whose processes failed asks for
another round; the others see it in the store, stop their processes and join it.
"""

from __future__ import annotations

import contextlib
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from .._errors import DistError
from .._store import places
from .._store.stores import PrefixStore, Store, TCPStore

_POLL_S = 0.05


@dataclass
class RendezvousSettings:
    """Where and with how many machines a job meets."""

    backend: str  # "static" or "c10d"
    host: str
    port: int
    run_id: str
    min_nodes: int
    max_nodes: int
    node_rank: int = 0
    local_addr: str | None = None
    is_host: bool | None = None  # whether this launcher serves the store; None: found out
    join_timeout_s: float = 600.0
    last_call_timeout_s: float = 30.0
    read_timeout_s: float = 60.0


class Round(NamedTuple):
    """One start of the job: this machine's number, and how many processes each machine has."""

    number: int
    node_rank: int
    local_sizes: list[int]

    @property
    def first_rank(self) -> int:
        """The rank of this machine's first process."""
        return sum(self.local_sizes[: self.node_rank])

    @property
    def world_size(self) -> int:
        """The processes of all machines."""
        return sum(self.local_sizes)


def _is_this_machine(host: str) -> bool:
    """Whether a name or an address is one of this machine's."""
    if host in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    with contextlib.suppress(OSError):
        theirs = {info[4][0] for info in socket.getaddrinfo(host, None)}
        if theirs & {"127.0.0.1", "::1"}:
            return True
        own = {info[4][0] for info in socket.getaddrinfo(socket.gethostname(), None)}
        return bool(theirs & own)
    return False


class Rendezvous:
    """The launchers' meetings, over a store that one of them serves."""

    def __init__(self, settings: RendezvousSettings) -> None:
        self.settings = settings
        self.store = self._connect()
        self.port = self.store.port
        self._keys: Store = PrefixStore(f"torchelastic/{settings.run_id}", self.store)
        self._round = -1

    @property
    def master_addr(self) -> str:
        """The address at which processes find the store."""
        return self.settings.host

    def _connect(self) -> TCPStore:
        wanted = self.settings
        limit = timedelta(seconds=wanted.read_timeout_s)
        serves = wanted.is_host
        if serves is None:
            serves = wanted.node_rank == 0 if wanted.backend == "static" else _is_this_machine(wanted.host)
        if serves:
            try:
                return TCPStore(wanted.host, wanted.port, is_master=True, timeout=limit, wait_for_workers=False)
            except DistError:
                # Another launcher on this machine was first; a port that something else has is told below.
                if wanted.backend == "static" or wanted.is_host:
                    raise
        return TCPStore(wanted.host, wanted.port, timeout=limit, wait_for_workers=False)

    def join(self, local_size: int) -> Round:
        """Take part in the next round; returns when it is known who does. RuntimeError if too few come in time."""
        self._round = max(self._round + 1, self._wanted_round())
        keys, wanted = PrefixStore(f"round/{self._round}", self._keys), self.settings
        if wanted.backend == "static":
            mine = wanted.node_rank
            keys.set(f"size/{mine}", str(local_size))
            count = wanted.max_nodes
        else:
            mine = keys.add("joined", 1) - 1
            keys.set(f"size/{mine}", str(local_size))
            count = self._closed(keys, mine)
            if mine >= count:
                raise RuntimeError(f"the job {wanted.run_id!r} has {count} machines already, and takes no more")
        limit = timedelta(seconds=wanted.join_timeout_s)
        try:
            keys.wait([f"size/{node}" for node in range(count)], limit)
        except DistError as error:
            present = [node for node in range(count) if keys.check([f"size/{node}"])]
            raise RuntimeError(
                f"{len(present)} of {count} machines of the job {wanted.run_id!r} came within {limit.total_seconds():g} s: "
                f"those with the node ranks {present}"
            ) from error
        return Round(self._round, mine, [int(keys.get(f"size/{node}")) for node in range(count)])

    def _closed(self, keys: Store, mine: int) -> int:
        """How many machines the round has: decided by the first that came."""
        wanted = self.settings
        if mine:
            keys.wait(["closed"], timedelta(seconds=wanted.join_timeout_s + wanted.last_call_timeout_s))
            return int(keys.get("closed"))
        deadline, last_call = time.monotonic() + wanted.join_timeout_s, None
        while True:
            joined = min(keys.add("joined", 0), wanted.max_nodes)
            now = time.monotonic()
            if joined >= wanted.max_nodes or (last_call is not None and now > last_call):
                keys.set("closed", str(joined))
                return joined
            if joined >= wanted.min_nodes and last_call is None:
                last_call = now + wanted.last_call_timeout_s
            if now > deadline:
                raise RuntimeError(
                    f"{joined} of at least {wanted.min_nodes} machines of the job {wanted.run_id!r} came within "
                    f"{wanted.join_timeout_s:g} s"
                )
            time.sleep(_POLL_S)

    def ask_for_restart(self) -> None:
        """Have the other launchers stop their processes and join another round."""
        self._keys.set("wanted round", str(self._round + 1))

    def restart_is_asked_for(self) -> bool:
        """Whether another launcher wants a round after this one."""
        return self._wanted_round() > self._round

    def _wanted_round(self) -> int:
        return int(self._keys.get("wanted round")) if self._keys.check(["wanted round"]) else 0

    def give_up(self, reason: str) -> None:
        """Have the other launchers end their processes: the job failed here."""
        self._keys.set("failed", reason)

    def failure_elsewhere(self) -> str | None:
        """Why another launcher has given up, None if none has."""
        return self._keys.get("failed").decode() if self._keys.check(["failed"]) else None

    def mpi_job(self, number: int) -> str | None:
        """The name under which the processes of a round started MPI; None if they have not, or the store is gone."""
        store = places.of_mpi(places.of_group(places.of_attempt(self.store, number)))
        with contextlib.suppress(DistError, OSError):
            return places.job(store) if places.has_job(store) else None
        return None

    def leave(self, nodes: int, timeout_s: float) -> None:
        """Wait until all launchers are done, since one of them serves the store; after a while, go."""
        if nodes > 1:
            with contextlib.suppress(DistError, RuntimeError):
                self._keys.barrier(f"leaving/{self._round}", nodes, timedelta(seconds=timeout_s))
