"""Prefixes of keys in the store by which processes meet: of one start of a job, of its default group, of MPI."""

from __future__ import annotations

from .stores import PrefixStore, Store

GROUP = "default_pg"
_MPI, _JOB = "mpi", "job"


def of_attempt(store: Store, number: int | str) -> Store:
    """The keys of one start of a job: a launcher that starts its processes again serves them by the same store."""
    return PrefixStore(f"/worker/attempt_{number}", store)


def of_group(store: Store) -> Store:
    """The keys of the default group."""
    return PrefixStore(GROUP, store)


def of_mpi(store: Store) -> Store:
    """The keys by which MPI starts, below a group's."""
    return PrefixStore(_MPI, store)


def set_job(store: Store, name: str) -> None:
    """Tell all processes the name under which they start MPI."""
    store.set(_JOB, name)


def job(store: Store) -> str:
    """That name; waits for it."""
    return store.get(_JOB).decode()


def has_job(store: Store) -> bool:
    """Whether it has been told."""
    return store.check([_JOB])
