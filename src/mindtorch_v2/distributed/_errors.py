"""The exceptions of torch.distributed. All of them are RuntimeErrors, as in torch."""

from __future__ import annotations


class DistError(RuntimeError):
    """Any failure of communication between processes."""


class DistBackendError(DistError):
    """A backend could not do what it was asked for: a peer is gone, late, or sent something else."""


class DistNetworkError(DistError):
    """A connection could not be made, or broke."""


class DistStoreError(DistError):
    """A store did not have a key in time."""


class QueueEmptyError(DistStoreError):
    """`Store.queue_pop(block=False)` of an empty queue."""


for _class in (DistError, DistBackendError, DistNetworkError, DistStoreError, QueueEmptyError):
    _class.__module__ = __name__.rpartition(".")[0]  # where torch has them, and tracebacks name them
