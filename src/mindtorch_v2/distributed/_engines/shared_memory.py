"""The memory that MPICH shares between the processes of a host: its name, and the removal of that name.

MPICH names it after the job, and removes the name when the processes leave MPI. A process that is killed does not, and the
memory would stay until the host is started again.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

_FOLDER = Path("/dev/shm")


def _world_id(job: str) -> int:
    """MPICH's number of a job: FNV-1a of its name, in 32 bits."""
    number = 0x811C9DC5
    for byte in job.encode():
        number = (number ^ byte) * 0x01000193 & 0xFFFFFFFF
    return number


def remove_names(job: str) -> list[str]:
    """Remove the names of a job's shared memory on this host; which there were. Processes that have it mapped keep it."""
    removed = []
    with contextlib.suppress(OSError):
        for path in _FOLDER.glob(f"mpich_*_{_world_id(job):x}_*"):
            path.unlink(missing_ok=True)
            removed.append(path.name)
    return removed
