"""Where the files of a job are read: in this process, in others of this machine, on Dask, on Ray, or under mpiexec.

All give the same digests, so all answers are the same bytes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

from ..views.tabular import import_extra
from .mapping import WORKER_VERSION, TaskResult, run_task

Task = Sequence[tuple[str, str]]
Progress = Callable[[int, int], object]
_TASKS_AHEAD = 2  # for each worker: more would only fill the memory
_SERIAL_FILES = 48  # fewer are read sooner than processes start
_MPI_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")


class WorkerVersionError(RuntimeError):
    """Workers run another version of this package."""


def under_mpiexec() -> bool:
    """Whether this process is one of several that mpiexec started."""
    return any(os.environ.get(name, "1") not in ("", "0", "1") for name in _MPI_SIZES)


def run_tasks(
    tasks: Sequence[Task], *, processes: int | None = None, dask: str | None = None, ray: str | None = None
) -> Iterator[TaskResult] | None:
    """The results of all tasks, in any order. None: this is a process of mpiexec that only works for the first one.

    processes: how many of this machine; by default its cores, or none for few files. dask, ray: addresses.
    """
    if dask is not None:
        return _checked(_on_dask(tasks, dask))
    if ray is not None:
        return _checked(_on_ray(tasks, ray))
    if under_mpiexec():
        return _under_mpi(tasks)
    files = sum(map(len, tasks))
    workers = min(processes or (1 if files <= _SERIAL_FILES else os.cpu_count() or 1), len(tasks))
    if workers <= 1:
        return map(run_task, tasks)
    return _checked(_on_processes(tasks, workers))


def _checked(results: Iterable[TaskResult]) -> Iterator[TaskResult]:
    for result in results:
        if result.version != WORKER_VERSION:
            raise WorkerVersionError(f"a worker runs version {result.version}, this is {WORKER_VERSION}: install the same one")
        yield result


def _through(executor: Executor, tasks: Sequence[Task], workers: int) -> Iterator[TaskResult]:
    """Results as they come, with a bounded number of tasks under way."""
    pending: set[Future[TaskResult]] = set()
    for task in tasks:
        if len(pending) >= _TASKS_AHEAD * workers:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in done)
        pending.add(executor.submit(run_task, task))
    while pending:
        done, pending = wait(pending, return_when=FIRST_COMPLETED)
        yield from (future.result() for future in done)


def _on_processes(tasks: Sequence[Task], workers: int) -> Iterator[TaskResult]:
    # Not fork: this process may have threads.
    context = get_context("spawn" if sys.platform in ("win32", "darwin") else "forkserver")
    with ProcessPoolExecutor(workers, mp_context=context) as executor:
        yield from _through(executor, tasks, workers)


def _on_dask(tasks: Sequence[Task], address: str) -> Iterator[TaskResult]:
    distributed = import_extra("distributed", "dask", "--dask")
    with distributed.Client(address, set_as_default=False) as client:
        workers = max(sum(client.nthreads().values()), 1)
        with client.get_executor(pure=False) as executor:
            yield from _through(executor, tasks, workers)


def _on_ray(tasks: Sequence[Task], address: str) -> Iterator[TaskResult]:
    ray: Any = import_extra("ray", "ray", "--ray")
    started = not ray.is_initialized()
    if started:
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    try:
        remote = ray.remote(num_cpus=1)(run_task)
        most = _TASKS_AHEAD * max(int(ray.cluster_resources().get("CPU", 1)), 1)
        pending: list[Any] = []
        for task in tasks:
            if len(pending) >= most:
                done, pending = ray.wait(pending)
                yield from ray.get(done)
            pending.append(remote.remote(task))
        while pending:
            done, pending = ray.wait(pending)
            yield from ray.get(done)
    finally:
        if started:
            ray.shutdown()


def _under_mpi(tasks: Sequence[Task]) -> Iterator[TaskResult] | None:
    import_extra("mpi4py", "distributed", "mtprof ranks under mpiexec")
    from mpi4py import MPI

    if MPI.COMM_WORLD.Get_rank() == 0:
        return _checked(_mpi_results(tasks, MPI.COMM_WORLD))
    for _ in _mpi_results((), MPI.COMM_WORLD):  # serves until the first process is through
        pass
    return None


def _mpi_results(tasks: Sequence[Task], world: Any) -> Iterator[TaskResult]:
    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor(world, root=0) as entered:
        executor: Any = entered  # None in all processes but the first
        if executor is not None:
            yield from _through(executor, tasks, max(world.Get_size() - 1, 1))
