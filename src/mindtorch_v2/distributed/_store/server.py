"""A table of keys over TCP: the server in one process, a connection in each.

A message is a number of fields, each with its length in front; a request is the name of an operation, the seconds to wait and
the arguments, an answer is a word and the results. Nothing that arrives is evaluated; what is no message ends the connection.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
import weakref
from collections.abc import Sequence
from typing import ClassVar

from .._errors import DistNetworkError, DistStoreError, QueueEmptyError
from .key_values import KeyValues

_COUNT = struct.Struct("<I")
_MOST_FIELDS = 1 << 20
_MOST_BYTES = 1 << 30
_GRACE_S = 5.0  # for the answer to come back after the server's own wait has ended
_RETRY_S = 0.02
_OPERATIONS = frozenset(
    (
        "set",
        "get",
        "wait",
        "add",
        "compare_set",
        "delete_key",
        "check",
        "num_keys",
        "list_keys",
        "append",
        "multi_get",
        "multi_set",
        "queue_push",
        "queue_pop",
        "queue_len",
    )
)
_ERRORS: dict[bytes, type[Exception]] = {
    b"DistStoreError": DistStoreError,
    b"QueueEmptyError": QueueEmptyError,
    b"ValueError": ValueError,
}


def _send(connection: socket.socket, fields: Sequence[bytes]) -> None:
    parts = [_COUNT.pack(len(fields))]
    for field in fields:
        parts += [_COUNT.pack(len(field)), field]
    connection.sendall(b"".join(parts))


def _receive(connection: socket.socket) -> list[bytes]:
    (count,) = _COUNT.unpack(_exactly(connection, _COUNT.size))
    if count > _MOST_FIELDS:
        raise ConnectionError(f"a message of {count} fields")
    fields = []
    for _ in range(count):
        (length,) = _COUNT.unpack(_exactly(connection, _COUNT.size))
        if length > _MOST_BYTES:
            raise ConnectionError(f"a field of {length} bytes")
        fields.append(_exactly(connection, length))
    return fields


def _exactly(connection: socket.socket, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        part = connection.recv(min(length - len(data), 1 << 20))
        if not part:
            raise ConnectionError("the connection was closed")
        data += part
    return bytes(data)


class StoreServer:
    """Serves one table; each connection has a thread, which waits where its client waits."""

    _by_port: ClassVar[weakref.WeakValueDictionary[int, StoreServer]] = weakref.WeakValueDictionary()
    _choosing = threading.Lock()

    def __init__(self, port: int, listen_fd: int | None) -> None:
        try:
            self._listening = _listen(port) if listen_fd is None else socket.socket(fileno=listen_fd)
        except OSError as error:
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}, "
                f"code: {-(error.errno or 0)}, message: {error.strerror}"
            ) from None
        self.port: int = self._listening.getsockname()[1]
        self._table = KeyValues()
        threading.Thread(
            target=_accept, args=(self._listening, self._table), name=f"store server {self.port}", daemon=True
        ).start()
        weakref.finalize(self, _close, self._listening)

    @classmethod
    def serve(cls, port: int, shared: bool, listen_fd: int | None) -> StoreServer:
        """A server on a port, 0 for a free one; where it is shared, the one that this process has there already."""
        if not shared:
            return cls(port, listen_fd)
        with cls._choosing:
            server = cls._by_port.get(port) if port else None
            if server is None:
                server = cls._by_port[port] = cls(port, listen_fd)
                cls._by_port[server.port] = server
            return server

    def __repr__(self) -> str:
        return f"TCPServer(port={self.port})"


def _listen(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        with contextlib.suppress(OSError):  # where the system has IPv6 switched off
            return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=1024)
    return socket.create_server(("", port), backlog=1024)


def _close(listening: socket.socket) -> None:
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RDWR)  # ends accept(), which close() alone does not
    listening.close()


def _accept(listening: socket.socket, table: KeyValues) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # closed
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_answer, args=(connection, table), name="store connection", daemon=True).start()


def _answer(connection: socket.socket, table: KeyValues) -> None:
    with connection, contextlib.suppress(OSError, ValueError, UnicodeDecodeError, struct.error):
        while True:
            operation, timeout, *arguments = _receive(connection)
            name = operation.decode()
            if name not in _OPERATIONS:
                return
            try:
                answer = [b"ok", *table.execute(name, arguments, float(timeout))]
            except tuple(_ERRORS.values()) as error:
                answer = [type(error).__name__.encode(), str(error).encode()]
            except TypeError as error:  # a number of arguments that the operation does not take
                answer = [b"ValueError", str(error).encode()]
            _send(connection, answer)


class Connection:
    """A client's end: one request at a time."""

    def __init__(self, host: str, port: int, timeout_s: float) -> None:
        self._lock = threading.Lock()
        self._address = f"({host}, {port})"
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self._socket = socket.create_connection((host, port), max(deadline - time.monotonic(), _RETRY_S))
                break
            except OSError as error:
                if time.monotonic() + _RETRY_S >= deadline:
                    raise DistNetworkError(
                        f"The client socket has timed out after {round(timeout_s * 1000)}ms while trying to connect to "
                        f"{self._address}."
                    ) from error
                time.sleep(_RETRY_S)
        weakref.finalize(self, self._socket.close)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def execute(self, operation: str, arguments: Sequence[bytes], timeout_s: float) -> list[bytes]:
        """Run an operation in the server's table."""
        with self._lock:
            try:
                self._socket.settimeout(timeout_s + _GRACE_S)
                _send(self._socket, [operation.encode(), repr(timeout_s).encode(), *arguments])
                word, *results = _receive(self._socket)
            except OSError as error:
                self._socket.close()
                raise DistNetworkError(f"the connection to the store at {self._address} broke: {error}") from error
        if word == b"ok":
            return results
        raise _ERRORS.get(word, DistStoreError)(results[0].decode(errors="replace") if results else "")
