"""What a device did in the passes of the main loop: when it worked, when it idled, and what the host waited for."""

from __future__ import annotations

import re
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...._dispatch import observer
from ...store.intervals import Intervals
from ...store.store import EventStore
from ._evidence import Rows, passes

_HOST_COPY = re.compile("HtoD|DtoH|PCIE_DMA_SQE")
_CUDA = 1  # torch's number of the device type
_BUSY = 0.9  # of the time: from there on the device is what limits a program


class DeviceUse(NamedTuple):
    """The stretches of the passes, and those of them in which the device that works most worked, idled, or copied only."""

    passes: Intervals
    busy: Intervals
    idle: Intervals
    kernels: Rows
    copies: Rows

    @property
    def idle_share(self) -> float:
        """The part of the passes in which the device had nothing to do."""
        return self.share(self.idle.total)

    def share(self, ns: int) -> float:
        """A time of the device as a part of the passes, in full length: what held the host up is time of the device, too."""
        return ns / max(1, self.passes.total)

    @property
    def is_limit(self) -> bool:
        """Whether the device works nearly all the time, so that nothing the host does costs any."""
        return self.idle_share <= 1 - _BUSY


_known: WeakKeyDictionary[EventStore, DeviceUse] = WeakKeyDictionary()


def device_use(store: EventStore) -> DeviceUse | None:
    """How the busiest device was used; None if nothing ran on one."""
    if not store.has_device_rows or not store.is_work.any():
        return None
    known = _known.get(store)
    if known is None:
        known = _known[store] = _use(store)
    return known


def _use(store: EventStore) -> DeviceUse:
    work = np.flatnonzero(store.is_work)
    devices, which = np.unique(store.device_type[work].astype(np.int64) * 1024 + store.device_index[work], return_inverse=True)
    most = int(np.argmax(np.bincount(which, weights=store.duration[work]))) if len(devices) > 1 else 0
    work = work[which == most]
    found = passes(store).steps
    whole = Intervals(found.start, found.end)
    busy = times_of(store, work) & whole
    within = whole.overlap(store.start[work], store.end[work])
    return DeviceUse(
        whole,
        busy,
        whole - busy,
        work[within & (store.kind[work] == observer.KERNEL)],
        work[within & (store.kind[work] == observer.COPY)],
    )


def times_of(store: EventStore, rows: Rows) -> Intervals:
    """When at least one of the rows ran."""
    return Intervals(store.start[rows], store.end[rows])


def touches_host(store: EventStore, copies: Rows) -> NDArray[np.bool_]:
    """Which of the copies are between host and device, by their name or, on an NPU, by what else is told of them."""
    named = np.array([_HOST_COPY.search(name) is not None for name in store.names], np.bool_)
    told = np.array([*(_HOST_COPY.search(details.arguments) is not None for details in store.row_details), False])
    return np.asarray(named[store.name[copies]] | told[store.details[copies]])


def fewer_launches(store: EventStore) -> str:
    """What launches fewer kernels on the devices of a recording."""
    graphs = ", CUDA graphs" if (store.device_type == _CUDA).any() else ""
    return f"torch.compile{graphs}, foreach and fused optimizers"


def waits(store: EventStore) -> Rows:
    """Calls of the device's runtime that return when the device has done its work."""
    names = [number for number, name in enumerate(store.names) if "ynchronize" in name]
    return np.flatnonzero((store.kind == observer.RUNTIME) & np.isin(store.name, names) & (passes(store).of_row >= 0))
