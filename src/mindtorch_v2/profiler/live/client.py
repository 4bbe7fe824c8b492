"""The other side of a control socket: what mtprof asks an armed process."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

from .._io.strict_json import dumps
from . import places


class NotArmedError(Exception):
    """The process has no control socket, or none that answers."""


def ask(pid: int, request: dict[str, Any], patience_s: float | None = None) -> Iterator[dict[str, Any]]:
    """Send a request and yield the answers as they come. NotArmedError if the process is not armed; RuntimeError with its text
    if the process could not do it, and if it ended meanwhile."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(patience_s)
    with connection:
        try:
            connection.connect(places.socket_of(pid))
        except (FileNotFoundError, ConnectionRefusedError):
            raise NotArmedError(_hint(pid)) from None
        stream = connection.makefile("rwb")
        stream.write(dumps(request).encode() + b"\n")
        stream.flush()
        for line in stream:
            answer = json.loads(line)
            if answer["event"] == "error":
                raise RuntimeError(answer["text"])
            yield answer


def _hint(pid: int) -> str:
    if places.is_gone(pid):
        return f"there is no process {pid}"
    others = [str(other) for other in places.armed() if other != pid]
    known = f"; armed are {', '.join(others)}" if others else ""
    return f"process {pid} is not armed: start it with MTPROF=arm, or call profiler.arm() in it{known}"
