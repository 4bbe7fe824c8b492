"""Fetching: from a sampler's indices to a collated batch."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

Fetcher = Callable[[Any], Any]


def make_fetcher(dataset: Any, streams: bool, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetcher:
    """The function that turns indices into a batch; StopIteration at the end of a stream.

    streams: the dataset is iterated over and not indexed. The loader says so: libraries have loaders of their own.
    """
    if streams:
        return _stream_fetcher(dataset, batched, collate, drop_last)

    def fetch(indices: Any) -> Any:
        if not batched:
            return collate(dataset[indices])
        many = getattr(dataset, "__getitems__", None)
        return collate(many(indices) if callable(many) else [dataset[i] for i in indices])

    return fetch


def _stream_fetcher(dataset: Any, batched: bool, collate: Callable[[Any], Any], drop_last: bool) -> Fetcher:
    stream = iter(dataset)

    def fetch(indices: Any) -> Any:
        if not batched:
            return collate(next(stream))
        items = list(itertools.islice(stream, len(indices)))
        if not items or (drop_last and len(items) < len(indices)):
            raise StopIteration
        return collate(items)

    return fetch
