"""A process that dies while MPI starts, or is gone when others leave it: nobody waits for it, and no shared memory is left."""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import timedelta

import pytest

from mindtorch_v2.distributed import DistBackendError, HashStore
from mindtorch_v2.distributed._engines import mpi, shared_memory
from mindtorch_v2.distributed._store import places

pytest.importorskip("mpi4py")

PROGRAM = """
import os, signal, sys
from pathlib import Path
import mindtorch_v2.distributed as dist
from mindtorch_v2.distributed._engines import mpi

def die(job):  # where the process would remove the names
    Path(sys.argv[1], os.environ["RANK"]).write_text(job)
    os.kill(os.getpid(), signal.SIGKILL)

mpi.remove_names = die
dist.init_process_group("gloo")
"""


def test_torchrun_removes_the_memory_of_processes_that_were_killed(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    launch = [sys.executable, "-m", "mindtorch_v2.distributed.run", "--standalone", "--nproc-per-node=2"]
    ended = subprocess.run([*launch, str(tmp_path / "train.py"), str(tmp_path)], capture_output=True, text=True, timeout=300)
    assert ended.returncode, ended.stderr
    jobs = {path.read_text() for path in tmp_path.glob("[01]")}
    assert len(jobs) == 1, ended.stderr
    assert shared_memory.remove_names(jobs.pop()) == []


def test_names_of_one_job_are_removed_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_memory, "_FOLDER", tmp_path)
    job = "mindtorch-ad655c004f954b08bc396c3bd1fcfcd6"  # MPICH 5 made mpich_shm_1a0d39f2_0 of it
    for name in ("mpich_shm_1a0d39f2_0", "mpich_vci_1a0d39f2_0", "mpich_shm_36d98b0d_0", "other"):
        (tmp_path / name).touch()
    assert sorted(shared_memory.remove_names(job)) == ["mpich_shm_1a0d39f2_0", "mpich_vci_1a0d39f2_0"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mpich_shm_36d98b0d_0", "other"]


def test_a_start_of_mpi_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(mpi._Started, "failed", False)
    released, ended = threading.Event(), threading.Event()
    with pytest.raises(DistBackendError, match=r"rank 1 of 3: MPI has not started after 0.1 s: a process of the job is gone"):
        mpi._within(timedelta(seconds=0.1), "rank 1 of 3", lambda: released.wait(60) and ended.set())
    assert not ended.is_set()
    released.set()
    assert mpi._Started.failed  # so that the process does not wait for the others at its end


def test_what_fails_while_mpi_starts_is_raised(monkeypatch):
    removed = []
    monkeypatch.setattr(mpi, "remove_names", removed.append)
    monkeypatch.setattr(mpi, "_initialize", lambda rank, size, server: 1 / 0)
    store = HashStore()
    with pytest.raises(ZeroDivisionError):
        mpi._join(store, 0, 2, timedelta(seconds=1))
    assert removed == [places.job(store)]


class _Library:
    """Notes that MPI was left."""

    def __init__(self):
        self.left = 0

    def MPI_Finalize(self):
        self.left += 1


@pytest.fixture
def library(monkeypatch):
    made = _Library()
    monkeypatch.setattr(mpi, "_library", lambda: made)
    monkeypatch.setattr(mpi._Started, "failed", False)
    return made


def test_processes_that_end_together_leave_mpi(library):
    store = HashStore()
    ranks = [threading.Thread(target=mpi._leave, args=(store, rank, 3)) for rank in range(3)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(60)
    assert library.left == 3 and not any(each.is_alive() for each in ranks)


def test_a_process_that_ends_after_another_gave_up_waiting_does_not_wait_for_it(library, monkeypatch):
    monkeypatch.setattr(mpi, "_FINALIZE_S", 0.01)
    store = HashStore()
    mpi._leave(store, 0, 2)
    mpi._leave(store, 1, 2)  # MPI_Finalize would wait for rank 0
    assert not library.left
