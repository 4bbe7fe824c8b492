"""The control socket of an armed process: answers `mtprof top` and `mtprof attach`.

A connection sends one JSON object on a line and gets JSON objects back, one a line. What it started ends with it, so that a
client that is killed leaves nothing running.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from .._io.files import check_writable
from .._io.strict_json import dumps
from ..config import RECORD_OPTIONS
from ..on_demand import StepCount, recorded_file
from ..recording.hidden_threads import hide_thread
from . import places
from .meter import Meter, process

_LONGEST_REQUEST = 1 << 16
_POLL_S = 0.05
_MOST_OPS = 500

Answer = dict[str, Any]
Gone = Callable[[], bool]  # whether the client is gone


class Control:
    """Listens on the socket of this process until close(); a forked child does not."""

    def __init__(self) -> None:
        if not hasattr(socket, "AF_UNIX"):
            raise NotImplementedError("a control socket needs sockets of the Unix domain, which this platform lacks")
        places.private_folder()
        self.path = places.socket_of(os.getpid())
        self._process = os.getpid()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)  # of a process that was killed and had this id
        self._socket.bind(self.path)
        os.chmod(self.path, 0o600)
        self._socket.listen()
        self._ending = False
        self._thread = threading.Thread(target=self._accept, name="profiler control", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def close(self) -> None:
        """End: the socket is removed."""
        atexit.unregister(self.close)
        if self._ending or self._process != os.getpid():
            return
        self._ending = True
        with contextlib.suppress(OSError):
            os.unlink(self.path)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes accept()
        self._socket.close()

    def _accept(self) -> None:
        hide_thread()
        while not self._ending:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=_serve, args=(connection,), name="profiler control", daemon=True).start()


def _serve(connection: socket.socket) -> None:
    hide_thread()
    with connection, contextlib.suppress(OSError):
        stream = connection.makefile("rwb")
        line = stream.readline(_LONGEST_REQUEST)
        for answer in _answers(line, lambda: _is_gone(connection)):
            stream.write(dumps(answer).encode() + b"\n")
            stream.flush()


def _answers(line: bytes, gone: Gone) -> Iterator[Answer]:
    try:
        request = json.loads(line)
        kind = request["request"]
        if kind not in _REQUESTS:
            raise ValueError(f"unknown request {kind!r}, known are {', '.join(_REQUESTS)}")
        yield from _REQUESTS[kind](request, gone)
    except (BrokenPipeError, ConnectionError):
        raise
    except Exception as error:  # the client is told; the process goes on
        yield {"event": "error", "text": f"{type(error).__name__}: {error}"}


def _is_gone(connection: socket.socket) -> bool:
    """Whether the other side has closed the connection: nothing else makes it readable after the request."""
    return bool(select.select([connection], [], [], 0)[0])


def _status(request: Answer, gone: Gone) -> Iterator[Answer]:
    yield {"event": "status", **process()}


def _top(request: Answer, gone: Gone) -> Iterator[Answer]:
    """Statistics every `interval` seconds, until the client leaves or `count` were sent."""
    interval, count = float(request["interval"]), int(request.get("count", 0))
    limit = min(int(request.get("limit", _MOST_OPS)), _MOST_OPS)
    if not interval > 0:
        raise ValueError(f"an interval is more than 0 seconds, not {interval}")
    with Meter() as meter:
        sent = 0
        while not count or sent < count:
            if _wait(interval, gone):
                return
            yield {"event": "stats", **meter.figures(limit)}
            sent += 1


def _record(request: Answer, gone: Gone) -> Iterator[Answer]:
    """A recording of so many steps or seconds, whichever ends first, written to a file before the last answer."""
    path, seconds, wanted = str(request["path"]), float(request["seconds"]), request.get("steps")
    if not os.path.isabs(path):
        raise ValueError(f"{path!r} is no absolute path")
    check_writable(path)
    options = {keyword: True for option, keyword in RECORD_OPTIONS.items() if option in request.get("options", ())}
    yield {"event": "recording", **process()}
    prof, count = recorded_file(path, options, lambda steps: _until(steps, seconds, gone), wanted)
    yield {
        "event": "complete",
        "path": path,
        "bytes": os.path.getsize(path),
        "events": len(prof._recording()),
        "steps": count,
    }


def _until(steps: StepCount, seconds: float, gone: Gone) -> None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not steps.all_done:
        if _wait(min(_POLL_S, max(0.0, ends - time.monotonic())), gone):
            return


def _wait(seconds: float, gone: Gone) -> bool:
    """Let time pass; True as soon as the client is gone."""
    ends = time.monotonic() + seconds
    while not gone():
        left = ends - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(_POLL_S, left))
    return True


_REQUESTS: dict[str, Callable[[Answer, Gone], Iterator[Answer]]] = {"status": _status, "top": _top, "record": _record}
