"""PMI-1, answered from a store: by this MPI finds the other processes of a job that no mpiexec started.

MPICH asks the process manager that started it for its rank, and exchanges addresses through it, over a socket whose number
stands in PMI_FD. Here a thread of the process itself holds the other end, and puts and gets what it is told in the store by
which the processes met. It answers for as long as the process lives: addresses are asked for when they are first needed.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta

from .._errors import DistStoreError
from .._store.stores import PrefixStore, Store

# What a process manager of another kind has put into the environment: then MPI starts by it.
LAUNCHER_VARIABLES = ("PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK", "PMI2_FD", "OMPI_COMM_WORLD_RANK")

_LONGEST_VALUE = 1024


class PmiServer:
    """Answers the process manager's questions of one process of a job."""

    def __init__(self, store: Store, rank: int, size: int, job: str, timeout: timedelta) -> None:
        """`job` names the job on all its hosts: MPICH derives names of shared memory from it, so that it must never repeat."""
        self._store = PrefixStore("pmi", store)
        self._rank, self._size, self._job, self._timeout = rank, size, job, timeout
        self._barriers = 0
        self.error: BaseException | None = None
        self._ours, self._library = socket.socketpair()
        self._answers: dict[str, Callable[[Mapping[str, str]], str]] = {
            "init": lambda said: "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
            "get_maxes": lambda said: f"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max={_LONGEST_VALUE} rc=0",
            "get_appnum": lambda said: "cmd=appnum appnum=0 rc=0",
            "get_universe_size": lambda said: f"cmd=universe_size size={size} rc=0",
            "get_my_kvsname": lambda said: f"cmd=my_kvsname kvsname={job} rc=0",
            "put": self._put,
            "get": self._get,
            "barrier_in": self._barrier,
            "finalize": lambda said: "cmd=finalize_ack rc=0",
        }

    def start(self) -> None:
        """Answer from now on; the environment tells MPI where."""
        host = socket.gethostname()
        self._store.set(f"host/{self._rank}", host)
        os.environ["PMI_FD"] = str(self._library.fileno())
        os.environ["PMI_RANK"] = str(self._rank)
        os.environ["PMI_SIZE"] = str(self._size)
        threading.Thread(target=self._serve, name="pmi", daemon=True).start()

    @staticmethod
    def clear_environment() -> None:
        """Take away what `start` has put there: processes that this one starts are of another job."""
        for name in ("PMI_FD", "PMI_RANK", "PMI_SIZE"):
            os.environ.pop(name, None)

    def answer_in_advance(self) -> None:
        """Put the last answer into the socket: MPICH says that it ends when the process does, and no thread of Python runs."""
        with contextlib.suppress(OSError):
            self._ours.sendall(b"cmd=finalize_ack rc=0\n")

    def _serve(self) -> None:
        with self._ours.makefile("rw", newline="\n") as stream:
            for line in stream:
                said = dict(part.partition("=")[::2] for part in line.split())
                try:
                    answer = self._answers[said["cmd"]](said)
                except Exception as error:
                    self.error = error
                    answer = f"cmd={said.get('cmd', 'unknown')}_result rc=-1 msg=failed"
                stream.write(answer + "\n")
                stream.flush()

    def _put(self, said: Mapping[str, str]) -> str:
        self._store.set(f"{said['kvsname']}/{said['key']}", said["value"])
        return "cmd=put_result rc=0 msg=success"

    def _get(self, said: Mapping[str, str]) -> str:
        if said["key"] == "PMI_process_mapping":
            return f"cmd=get_result rc=0 msg=success value={self._mapping()}"
        key = f"{said['kvsname']}/{said['key']}"
        if not self._store.check([key]):  # after a barrier, what is not there does not come
            return f"cmd=get_result rc=-1 msg=key_{said['key']}_not_found value=unknown"
        return f"cmd=get_result rc=0 msg=success value={self._store.get(key).decode()}"

    def _mapping(self) -> str:
        """The host of each rank, as runs of ranks: (vector,(first host,hosts,ranks on each),...)."""
        keys = [f"host/{rank}" for rank in range(self._size)]
        self._store.wait(keys, self._timeout)
        numbers: dict[bytes, int] = {}
        hosts = [numbers.setdefault(name, len(numbers)) for name in self._store.multi_get(keys)]
        blocks: list[list[int]] = []
        for host in hosts:
            if blocks and blocks[-1][0] == host:
                blocks[-1][1] += 1
            else:
                blocks.append([host, 1])
        text = "(vector," + ",".join(f"({host},1,{count})" for host, count in blocks) + ")"
        # Too long to be told: MPI then finds out by itself which ranks share a host.
        return text if len(text) < _LONGEST_VALUE else ""

    def _barrier(self, said: Mapping[str, str]) -> str:
        self._barriers += 1
        key = f"barrier/{self._barriers}"
        try:
            self._store.barrier(key, self._size, self._timeout)
        except DistStoreError as error:
            arrived = self._store.add(f"{key}/arrived", 0)
            raise DistStoreError(
                f"{arrived} of {self._size} processes had started MPI after {self._timeout.total_seconds():g} s"
            ) from error
        return "cmd=barrier_out rc=0"
