"""A recording read from a file, with the results that a live profile has."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from ..formats._recovery import Recovery
from ..formats._source import Progress
from ..formats.detect import read_any
from ..store.store import EventStore
from ..views.event_list import EventList
from . import writers
from .mixin import ResultsMixin


def load(path: str | os.PathLike[str], progress: Progress | None = None, *, max_bytes: int | None = None) -> LoadedProfile:
    """Read a saved profile or a Chrome trace, ours or PyTorch's, gzipped or not, from a file or from a pipe.

    progress(bytes done, bytes in all) is called along the way; a pipe has no more in all than is done.
    max_bytes bounds the contents of the file when unpacked. TraceError: there is no recording in
    the file. `recovery` of the result says what could not be read of it.
    """
    store, recovery = read_any(path, progress, max_bytes)
    return LoadedProfile(store, recovery)


class LoadedProfile(ResultsMixin):
    """A recording from a file, with the same views as a profile that ran in this process."""

    def __init__(self, store: EventStore, recovery: Recovery) -> None:
        self.store = store
        self.recovery = recovery
        if not recovery.intact:
            store.metadata["recovery"] = recovery.to_dict()

    def _recording(self) -> EventStore:
        return self.store

    @property
    def dropped_events(self) -> int:
        """Events that the recorder dropped, because its buffer was full."""
        return self.store.dropped_events

    @cached_property
    def _events(self) -> EventList:
        return EventList.from_store(self.store)

    def events(self) -> EventList:
        """The recorded events in order of start."""
        return self._events

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The events averaged by name, and on request by input shapes, by the innermost n frames, by overload."""
        return self._events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the recording as a Kineto trace (JSON, gzipped if the name ends in .gz)."""
        writers.get("chrome")(self.store, path)

    def export_stacks(self, path: str | os.PathLike[str], metric: str = "self_cpu_time_total") -> None:
        """Write one line per stack, root first, with its metric: input of flame graph tools.

        ValueError if the file has neither stacks nor Python calls.
        """
        writers.get("stacks")(self.store, path, metric=metric)

    def export(self, format: str, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the recording with any exporter of that name, see `results.writers.names()`."""
        writers.get(format)(self.store, path, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the recording in this project's own format."""
        writers.get("saved")(self.store, path)

    def _repr_html_(self) -> str | None:
        """A notebook's view: key_averages() as a table."""
        return self.key_averages()._repr_html_()

    def __len__(self) -> int:
        return len(self.store)

    def __repr__(self) -> str:
        return f"<LoadedProfile: {len(self.store)} events, {self.recovery}>"
