"""Stores: tables of keys by which processes find each other. HashStore, FileStore, TCPStore, PrefixStore, as torch has them."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..._core.cpython import without_signals_at_entry
from .._errors import DistNetworkError, DistStoreError
from .key_values import KeyValues
from .server import Connection, StoreServer

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]

DEFAULT_TIMEOUT = timedelta(minutes=5)


class Store:
    """Keys with values that several processes see. A subclass says where the table is: `_execute`."""

    def __init__(self) -> None:
        self._timeout = DEFAULT_TIMEOUT

    def _execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        raise NotImplementedError(f"{type(self).__name__}.{operation}")

    def _key(self, key: str) -> bytes:
        """How the table names a key of the caller's."""
        if not isinstance(key, str):
            raise TypeError(f"a store's key must be a str, not {type(key).__name__}")
        return key.encode()

    def _run(self, operation: str, *arguments: bytes, timeout: timedelta | None = None) -> list[bytes]:
        return self._execute(operation, arguments, (self._timeout if timeout is None else timeout).total_seconds())

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"set_timeout() takes a datetime.timedelta, not {type(timeout).__name__}")
        self._timeout = timeout

    def set(self, key: str, value: str | bytes) -> None:
        """Set a key, whatever its value was."""
        self._run("set", self._key(key), _bytes(value))

    def get(self, key: str) -> bytes:
        """The value of a key, once it is there."""
        return self._run("get", self._key(key))[0]

    def add(self, key: str, amount: int) -> int:
        """Add to a counter, which begins at 0, and return its new value."""
        return int(self._run("add", self._key(key), b"%d" % amount)[0])

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set a key if it has the expected value, or none and "" is expected; what it has afterwards, or was expected."""
        return self._run("compare_set", self._key(key), _bytes(expected_value), _bytes(desired_value))[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return when all keys are there."""
        self._run("wait", *map(self._key, keys), timeout=timeout)

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._run("check", *map(self._key, keys))[0] == b"1"

    def delete_key(self, key: str) -> bool:
        """Remove a key; whether there was one."""
        return self._run("delete_key", self._key(key))[0] == b"1"

    def num_keys(self) -> int:
        """How many keys the table has, those that the store itself keeps there included."""
        return int(self._run("num_keys")[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Add to the end of a value."""
        self._run("append", self._key(key), _bytes(value))

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of keys, once they are there."""
        return self._run("multi_get", *map(self._key, keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[str | bytes]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise ValueError(f"multi_set(): {len(keys)} keys and {len(values)} values")
        pairs = zip(map(self._key, keys), map(_bytes, values), strict=True)
        self._run("multi_set", *[part for pair in pairs for part in pair])

    def list_keys(self) -> list[str]:
        """The keys that were set through stores like this one."""
        prefix = self._key("")
        return [key.removeprefix(prefix).decode() for key in self._run("list_keys") if key.startswith(prefix)]

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Add an item at the end of a queue."""
        self._run("queue_push", self._key(key), _bytes(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first item of a queue: the next one, or QueueEmptyError where `block` is False and there is none."""
        return self._run("queue_pop", self._key(key), b"%d" % bool(block))[0]

    def queue_len(self, key: str) -> int:
        """How many items a queue has."""
        return int(self._run("queue_len", self._key(key))[0])

    def barrier(self, key: str, world_size: int, timeout: timedelta | None = None) -> None:
        """Return when as many processes have called it with this key."""
        if self.add(f"{key}/arrived", 1) == world_size:
            self.set(f"{key}/complete", "1")
        self.wait([f"{key}/complete"], timeout)

    def has_extended_api(self) -> bool:
        """Whether append, multi_get and multi_set are more than several calls."""
        return True

    def clone(self) -> Store:
        """A store of the same table that may be used from another thread at the same time."""
        return self


def _bytes(value: str | bytes) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError(f"a store's value must be a str or bytes, not {type(value).__name__}")


class HashStore(Store):
    """A table of this process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._table = KeyValues()

    def _execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        return self._table.execute(operation, arguments, timeout_s)


class PrefixStore(Store):
    """Another store under a prefix, so that its keys meet no others."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        if not isinstance(store, Store):
            raise TypeError(f"PrefixStore() takes a Store, not {type(store).__name__}")
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The store below."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        below = self._store
        return below._underlying_non_prefix_store if isinstance(below, PrefixStore) else below

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait: as long as those of the store below."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` of the store below wait."""
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> bytes:
        super()._key(key)  # refuses what is no key
        return self._store._key(f"{self._prefix}/{key}")

    def _run(self, operation: str, *arguments: bytes, timeout: timedelta | None = None) -> list[bytes]:
        return self._store._run(operation, *arguments, timeout=timeout)

    def has_extended_api(self) -> bool:
        """What the store below says."""
        return self._store.has_extended_api()

    def clone(self) -> Store:
        """The same prefix on a clone of the store below."""
        return PrefixStore(self._prefix, self._store.clone())


class FileStore(Store):
    """A table in a file that all processes can open: each change is a line at its end, and a lock orders them.

    The file is removed by the last of `world_size` processes that lets go of it; with -1 it stays.
    """

    _POLL_S = 0.005

    def __init__(self, file_name: str | os.PathLike[str], world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._table = KeyValues()
        self._read = 0
        with self._locked() as file:
            self._change(file, "add", [b"cleanup/opened", b"1"])
        self._close = weakref.finalize(self, _close_file_store, self.path, world_size)

    def _key(self, key: str) -> bytes:
        return b"/" + super()._key(key)

    def _locked(self) -> _LockedFile:
        return _LockedFile(self.path)

    def _change(self, file: _LockedFile, operation: str, arguments: Sequence[bytes]) -> list[bytes]:
        """Run an operation on what the file holds, and write down what it changed."""
        self._read = file.replay(self._table.values, self._read)
        before = dict(self._table.values)
        result = self._table.execute(operation, arguments, 0.0)
        after = self._table.values
        changed = {key: after.get(key) for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
        self._read = file.append(changed)
        return result

    def _execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        if operation.startswith("queue"):
            raise NotImplementedError("queue support not implemented for FileStore")
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                with self._locked() as file:
                    return self._change(file, operation, arguments)
            except DistStoreError as error:
                if time.monotonic() >= deadline:
                    text = str(error).replace("after 0ms", f"after {round(timeout_s * 1000)}ms")
                    raise DistStoreError(text) from None
            time.sleep(self._POLL_S)


class _LockedFile:
    """A file store's file while this process alone may read and write it.

    A record is the length of the key, the key, the length of the value and the value; -1 in place of a length is a key's end.
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> _LockedFile:
        import fcntl

        self._file = open(self._path, "a+b")
        fcntl.flock(self._file, fcntl.LOCK_EX)
        return self

    @without_signals_at_entry
    def __exit__(self, *exc: object) -> None:
        self._file.close()

    def replay(self, values: dict[bytes, bytes], since: int) -> int:
        """Bring a table up to date with what was written since a position; the position of the end."""
        self._file.seek(since)
        data, at = self._file.read(), 0
        while at < len(data):
            key, at = self._field(data, at)
            value, at = self._field(data, at)
            if key is None:
                raise DistStoreError(f"{self._path} is not a file store")
            if value is None:
                values.pop(key, None)
            else:
                values[key] = value
        return since + at

    def _field(self, data: bytes, at: int) -> tuple[bytes | None, int]:
        length = int.from_bytes(data[at : at + 8], "little", signed=True)
        end = at + 8 + max(length, 0)
        if length < -1 or end > len(data):
            raise DistStoreError(f"{self._path} is not a file store, or was cut off")
        return (None if length < 0 else data[at + 8 : end]), end

    def append(self, changed: dict[bytes, bytes | None]) -> int:
        """Write down new values; the position of the end."""
        for key, value in changed.items():
            for field in (key, value):
                length = -1 if field is None else len(field)
                self._file.write(length.to_bytes(8, "little", signed=True) + (field or b""))
        self._file.flush()
        return self._file.seek(0, os.SEEK_END)


def _close_file_store(path: str, world_size: int) -> None:
    """Count a process that lets go of a file store, and remove the file after the last."""
    if world_size < 0 or not Path(path).exists():
        return
    values: dict[bytes, bytes] = {}
    with _LockedFile(path) as file:
        file.replay(values, 0)
        closed = int(values.get(b"cleanup/closed", b"0")) + 1
        file.append({b"cleanup/closed": b"%d" % closed})
        if closed >= world_size:
            Path(path).unlink(missing_ok=True)


class TCPStore(Store):
    """A table that one process serves to all others over TCP: the one that says `is_master`."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        """`use_libuv` chooses between two servers in torch; here there is one, and both values mean it."""
        super().__init__()
        self._timeout = timeout
        self.host = host_name
        self.libuvBackend = bool(use_libuv)
        self._server = StoreServer.serve(port, multi_tenant, master_listen_fd) if is_master else None
        self.port = self._server.port if self._server else port
        self._connection = Connection(host_name, self.port, timeout.total_seconds())
        if wait_for_workers and world_size is not None and world_size > 0:
            self._join(world_size, is_master)

    def _join(self, world_size: int, is_master: bool) -> None:
        joined = int(self._run("add", b"init/", b"1")[0])
        if not is_master:
            return
        deadline = time.monotonic() + self._timeout.total_seconds()
        while joined < world_size:
            if time.monotonic() > deadline:
                raise DistStoreError(
                    f"Timed out after {round(self._timeout.total_seconds()) + 1} seconds waiting for clients. "
                    f"{joined}/{world_size} clients joined."
                )
            time.sleep(0.005)
            joined = int(self._run("add", b"init/", b"0")[0])

    def _key(self, key: str) -> bytes:
        return b"/" + super()._key(key)

    def _execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        return self._connection.execute(operation, arguments, timeout_s)

    def clone(self) -> Store:
        """A store of the same table with a connection of its own."""
        return TCPStore(self.host, self.port, timeout=self._timeout, wait_for_workers=False)

    def __repr__(self) -> str:
        served = f", server={self._server!r}" if self._server else ""
        return f"TCPStore(client=TCPClient({self.host}:{self.port}){served})"

    def __reduce__(self) -> Any:
        raise DistNetworkError("a TCPStore cannot be pickled: connect to it in the other process")
