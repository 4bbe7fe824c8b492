"""torch.distributed.rendezvous: how processes find each other, `env://`, `tcp://` and `file://`, as stores with ranks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import ParseResult, parse_qsl, urlparse, urlunparse
from urllib.request import url2pathname

from ._process_group import DEFAULT_TIMEOUT
from ._store import places
from ._store.stores import FileStore, Store, TCPStore

__all__ = ["register_rendezvous_handler", "rendezvous"]

Meeting = tuple[Store, int, int]  # the store, the rank and the number of processes
Handler = Callable[..., Iterator[Meeting]]

_handlers: dict[str, Handler] = {}


def register_rendezvous_handler(scheme: str, handler: Handler) -> None:
    """Have addresses `scheme://...` handled by a generator function of (url, timeout)."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Meeting]:
    """Stores, ranks and numbers of processes that an address leads to."""
    if not isinstance(url, str | bytes):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int):
        raise RuntimeError(f"`rank` must be an integer. {rank}")
    if not isinstance(world_size, int):
        raise RuntimeError(f"`world_size` must be an integer. {world_size}")
    parts = urlparse(str(url))
    query = dict(parse_qsl(parts.query))
    for name, value in (("rank", rank), ("world_size", world_size)):
        if value != -1:
            if name in query:
                raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
            query[name] = str(value)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    whole = parts._replace(query="&".join(f"{name}={value}" for name, value in query.items()))
    return _handlers[parts.scheme](urlunparse(whole), **kwargs)


def _parts(url: str) -> tuple[ParseResult, dict[str, str]]:
    parts = urlparse(url)
    return parts, dict(parse_qsl(parts.query))


def _tcp(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any) -> Iterator[Meeting]:
    parts, query = _parts(url)
    if not parts.port:
        raise _missing("tcp", "port number")
    for name in ("rank", "world_size"):
        if name not in query:
            raise _missing("tcp", f"{name.replace('world_size', 'world size')} parameter")
    if not parts.hostname:
        raise _missing("tcp", "hostname")
    rank, world_size = int(query["rank"]), int(query["world_size"])
    store = TCPStore(parts.hostname, parts.port, world_size, rank == 0, timeout, multi_tenant=True)
    yield store, rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using tcp:// method")


def _missing(scheme: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what} missing")


def _file(url: str, **kwargs: Any) -> Iterator[Meeting]:
    parts, query = _parts(url)
    path = url2pathname(parts.path)
    if not path:
        raise _missing("file", "path")
    for name, words in (("rank", "rank parameter"), ("world_size", "world size parameter")):
        if name not in query:
            raise _missing("file", words)
    rank, world_size = int(query["rank"]), int(query["world_size"])
    yield FileStore(path, world_size), rank, world_size
    raise RuntimeError("Unable to perform rerendezvous using file:// method")


def _env(url: str, timeout: timedelta = DEFAULT_TIMEOUT, **kwargs: Any) -> Iterator[Meeting]:
    _, query = _parts(url)

    def variable(name: str) -> str:
        value = os.environ.get(name)
        if value is None:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: "
                f"environment variable {name} expected, but not set"
            )
        return value

    rank = int(query["rank"] if "rank" in query else variable("RANK"))
    world_size = int(query["world_size"] if "world_size" in query else variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        # The launcher serves the store; each restart has keys of its own.
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        yield places.of_attempt(TCPStore(host, port, world_size, False, timeout), attempt), rank, world_size
    else:
        yield TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True), rank, world_size
    raise RuntimeError("Unable to perform re-rendezvous using env:// method")


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _env)
register_rendezvous_handler("file", _file)
